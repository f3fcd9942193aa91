# SPDX-License-Identifier: Apache-2.0
"""Makes calls to a cloud, repeats them after transient faults, and translates errors.

Transient faults are a lost connection, an HTTP status of 500 or above, and 409, a conflict with
other work of the cloud. Any other error is raised at once, with the reason that the cloud gave.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from keystoneauth1 import exceptions as keystone
from openstack import exceptions

from applier.backoff import delays_s
from applier.contracts import StopSignal
from applier.errors import ActionFailed

Answer = TypeVar("Answer")
#: The seconds between two tries: the first, and the longest.
_FIRST_S, _LONGEST_S = 0.5, 8.0
_CONFLICT = 409
_NEVER = threading.Event()
_LOST = (keystone.ConnectionError, keystone.DiscoveryFailure)


class Calls:
    """Makes calls; after transient faults, a call is repeated for up to ``patience_s`` seconds."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s

    def read(self, call: Callable[[], Answer], stop: StopSignal | None = None) -> Answer | None:
        """Return the answer of a call that changes nothing; None if the object does not exist.

        Raises ConnectionError if the cloud cannot be reached or its last answer is 500 or above,
        ActionFailed after any other error. Once ``stop`` is set, the call is not repeated.
        """
        try:
            return self._repeated(call, lambda: False, stop)
        except exceptions.NotFoundException:
            return None
        except exceptions.HttpException as error:
            if is_transient(error) and error.status_code != _CONFLICT:
                raise ConnectionError(f"the cloud answers: {reason_of(error)}") from error
            raise ActionFailed(reason_of(error)) from error

    def change(
        self,
        what: str,
        call: Callable[[], Answer],
        stop: StopSignal,
        has_begun: Callable[[], bool] = lambda: False,
    ) -> Answer | None:
        """Make a call that begins work in the cloud; return its answer.

        The answer may be lost although the work has begun. So ``has_begun`` is called before the
        call is repeated; if it returns True, None is returned. Raises ActionFailed if the cloud
        refuses the call or ``stop`` was set before it, ConnectionError if the cloud cannot be
        reached. ``what`` names the work in messages.
        """
        if stop.is_set():
            raise ActionFailed(f"{what} was stopped before it began")
        try:
            return self._repeated(call, has_begun, stop)
        except exceptions.HttpException as error:
            raise ActionFailed(f"{what} was refused: {reason_of(error)}") from error

    def _repeated(
        self, call: Callable[[], Answer], has_begun: Callable[[], bool], stop: StopSignal | None
    ) -> Answer | None:
        began = time.monotonic()
        for delay_s in delays_s(_FIRST_S, _LONGEST_S):
            try:
                return call()
            except _LOST as error:
                lost: Exception = error
            except exceptions.HttpException as error:
                if not is_transient(error):
                    raise
                lost = error
            except (exceptions.SDKException, keystone.ClientException) as error:
                raise ActionFailed(reason_of(error)) from error
            is_over = time.monotonic() - began + delay_s > self._patience_s
            if is_over or (stop or _NEVER).wait(delay_s):
                break
            if has_begun():
                return None
        if isinstance(lost, exceptions.HttpException):
            raise lost
        # The text of the library after ': HTTP' repeats the address.
        raise ConnectionError(f"the cloud cannot be reached: {reason_of(lost).split(': HTTP')[0]}")


def is_transient(error: exceptions.HttpException) -> bool:
    """Return whether the same request may succeed later: after 409, or 500 and above."""
    return (error.status_code or 0) >= 500 or error.status_code == _CONFLICT


def reason_of(error: Exception) -> str:
    """Return the reason that the cloud gave, or else the text of the error, on one line."""
    details = getattr(error, "details", None)
    return " ".join(str(details or getattr(error, "message", None) or error).split())
