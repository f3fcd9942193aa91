# SPDX-License-Identifier: Apache-2.0
"""Makes calls to a cloud, repeats them after transient faults, and translates errors.

Transient faults are a lost connection, an HTTP status of 500 or above, and 409, a conflict with
other work of the cloud. Any other error is raised at once, with the reason that the cloud gave.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from keystoneauth1 import exceptions as keystone
from openstack import exceptions

from applier.backoff import delays_s
from applier.contracts import StopSignal
from applier.errors import ActionFailed

Answer = TypeVar("Answer")
#: The seconds between two tries: the first, and the longest.
_FIRST_S, _LONGEST_S = 0.5, 8.0
_CONFLICT = 409
#: The statuses of a gateway that got no answer from the cloud: the cloud may go on with the work.
_NO_ANSWER = (502, 504)
_NEVER = threading.Event()
#: Keystone's own statuses of 500 and above, for a token, are no HttpException of openstacksdk.
_LOST = (keystone.ConnectionError, keystone.DiscoveryFailure, keystone.HttpServerError)
_RAISED = (*_LOST, exceptions.HttpException)


class Calls:
    """Makes calls; after transient faults, a call is repeated for up to ``patience_s`` seconds."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s

    def read(self, call: Callable[[], Answer]) -> Answer | None:
        """Return the answer of a call that changes nothing; None if the object does not exist.

        Raises ConnectionError if the cloud cannot be reached or its last answer is 500 or above,
        ActionFailed after any other error.
        """
        try:
            return self._repeated(call, lambda: False, _NEVER)
        except exceptions.NotFoundException:
            return None
        except exceptions.HttpException as error:
            if is_transient(error) and error.status_code != _CONFLICT:
                raise _in_doubt(error) from error
            raise ActionFailed(reason_of(error)) from error

    def change(
        self,
        what: str,
        call: Callable[[], Answer],
        stop: StopSignal,
        has_begun: Callable[[], bool] = lambda: False,
    ) -> Answer | None:
        """Make a call that begins work in the cloud; return its answer.

        The answer may be lost although the work has begun. So after a lost connection, or 500 or
        above, ``has_begun`` is called before the call is repeated or given up; if it returns True,
        None is returned. Raises ActionFailed if the cloud refuses the call or ``stop`` was set
        before it, ConnectionError if an answer was lost: if the cloud cannot be reached, or a
        gateway got no answer from it. ``what`` names the work in messages.
        """
        if stop.is_set():
            raise ActionFailed(f"{what} was stopped before it began")
        try:
            return self._repeated(call, has_begun, stop)
        except exceptions.HttpException as error:
            raise ActionFailed(f"{what} was refused: {reason_of(error)}") from error

    def _repeated(
        self, call: Callable[[], Answer], has_begun: Callable[[], bool], stop: StopSignal
    ) -> Answer | None:
        began, may_have_begun, is_in_doubt = time.monotonic(), False, False
        for delay_s in delays_s(_FIRST_S, _LONGEST_S):
            try:
                return call()
            except _RAISED as error:
                fault: Exception = error
            except (exceptions.SDKException, keystone.ClientException) as error:
                raise ActionFailed(reason_of(error)) from error
            is_refused = not is_transient(fault)
            may_have_begun |= not is_refused and _status_of(fault) != _CONFLICT
            is_in_doubt |= is_lost(fault)
            is_late = time.monotonic() - began + delay_s > self._patience_s
            is_over = is_refused or is_late or stop.wait(delay_s)
            if may_have_begun and has_begun():
                return None
            if is_over:
                break
        if is_in_doubt and not is_refused:
            raise _in_doubt(fault)
        raise fault


def request_id(response: Any) -> str | None:
    """Return the id of a request that was accepted; raise the HttpException of a refused one."""
    exceptions.raise_from_response(response)
    name: str | None = response.headers.get("x-openstack-request-id")
    return name


def never_twice(call: Callable[[], Answer]) -> Callable[[], Answer]:
    """Return a call that makes no second request after a lost answer: it raises the error again."""
    lost: list[Exception] = []

    def once() -> Answer:
        if lost:
            raise lost[0]
        try:
            return call()
        except _RAISED as error:
            if is_lost(error):
                lost.append(error)
            raise

    return once


def is_transient(error: Exception) -> bool:
    """Return whether a request may succeed later: its answer was lost, or is 409, 500 or above."""
    status = _status_of(error)
    return is_lost(error) or status >= 500 or status == _CONFLICT


def is_lost(error: Exception) -> bool:
    """Return whether the answer was lost, so that the cloud may go on with the request."""
    return isinstance(error, _LOST) or _status_of(error) in _NO_ANSWER


def _status_of(error: Exception) -> int:
    return getattr(error, "status_code", None) or 0


def _in_doubt(error: Exception) -> ConnectionError:
    if isinstance(error, exceptions.HttpException):
        return ConnectionError(f"the cloud answers: {reason_of(error)}")
    # The text of the library after ': HTTP' repeats the address.
    return ConnectionError(f"the cloud cannot be reached: {reason_of(error).split(': HTTP')[0]}")


def reason_of(error: Exception) -> str:
    """Return the reason that the cloud gave, or else the text of the error, on one line."""
    details = getattr(error, "details", None)
    return " ".join(str(details or getattr(error, "message", None) or error).split())
