# SPDX-License-Identifier: Apache-2.0
"""Posts events to an address, as CloudEvents 1.0 in JSON.

With a secret, each request is signed as https://www.standardwebhooks.com describes. The fields
``source`` and ``id`` identify an event: one that was delivered twice has both in common.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import requests

from applier.configuration.option_types import WEB, is_url
from applier.delivery.receivers import Away, Deliver, EventRefused, Receiver, SendingThread
from applier.errors import ConfigurationError
from applier.notifications.schema import Event, line

#: Seconds that a receiver may take to accept a connection, and for each part of its answer.
CONNECT_S, ANSWER_S = 5.0, 10.0
#: Seconds for a request with all of its answer, and until connections are closed.
WHOLE_S, CLOSE_S = CONNECT_S + ANSWER_S, 5.0
#: The most bytes that are read of an answer: a connection is used again only if all were read.
MOST_BYTES = 64 * 1024
#: HTTP statuses of a receiver that accepts no event at present. Others, except 2xx, refuse one.
_AWAY = (429, 502, 503, 504)
_SECRET_PREFIX = "whsec_"  # noqa: S105 - the marker of secrets in the format


class Webhook(Receiver):
    """A receiver at an address; ``secret`` is the content of the file with its key."""

    def __init__(
        self,
        name: str,
        address: str,
        secret: str | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name = f"webhook {name}"
        self._address, self._clock = address, clock
        self._key = None if secret is None else key_of(name, secret)
        require_address(name, address)
        #: The thread of the last block. It lives on only while an answer is not complete.
        self._thread: SendingThread | None = None

    @contextmanager
    def opened(self) -> Iterator[Deliver]:
        if self._thread is not None and self._thread.is_alive():
            raise Away("it has not answered yet")
        session = requests.Session()
        self._thread = thread = SendingThread(session.close)
        try:
            yield lambda event: self._deliver(session, thread, event)
        finally:
            thread.end(CLOSE_S)

    def _deliver(self, session: requests.Session, thread: SendingThread, event: Event) -> None:
        try:
            thread.call(lambda: self._post(session, event), WHOLE_S)
        except TimeoutError:
            raise Away(f"no whole answer within {WHOLE_S:g} s") from None

    def _post(self, session: requests.Session, event: Event) -> None:
        body = line(cloud_event(event)).encode("ascii")
        headers = {"Content-Type": "application/cloudevents+json", **self._signature(event, body)}
        try:
            with session.post(
                self._address,
                data=body,
                headers=headers,
                timeout=(CONNECT_S, ANSWER_S),
                allow_redirects=False,
                stream=True,
            ) as answer:
                judge(answer)
                read(answer)
        except requests.RequestException as error:
            raise Away(reason_of(error)) from None
        except (OSError, ValueError) as error:
            # The answer is not HTTP.
            raise Away(f"the answer is broken: {type(error).__name__}") from None

    def _signature(self, event: Event, body: bytes) -> dict[str, str]:
        name, at = str(event["number"]), str(int(self._clock()))
        headers = {"webhook-id": name, "webhook-timestamp": at}
        if self._key is not None:
            signed = hmac.digest(self._key, f"{name}.{at}.".encode() + body, hashlib.sha256)
            headers["webhook-signature"] = f"v1,{base64.b64encode(signed).decode('ascii')}"
        return headers


def judge(answer: requests.Response) -> None:
    """Raise Away or EventRefused if the status of an answer is no success."""
    said = f"it answers {answer.status_code} {answer.reason}"
    if answer.status_code in _AWAY:
        raise Away(said)
    if not 200 <= answer.status_code < 300:
        raise EventRefused(said)


def read(answer: requests.Response) -> None:
    """Read an answer, up to MOST_BYTES; raises RequestException if it breaks off."""
    count = 0
    for piece in answer.iter_content(MOST_BYTES):
        count += len(piece)
        if count >= MOST_BYTES:
            return


def cloud_event(event: Event) -> dict[str, Any]:
    """Return an event as a CloudEvent in the structured mode.

    >>> event = {"type": "plan.state", "number": 7, "at": "2026-01-02T03:04:05+00:00",
    ...          "plan": "6a1f", "data": {}}
    >>> found = cloud_event(event)
    >>> found["id"], found["type"], found["source"]
    ('7', 'actionplan.plan.state', 'urn:uuid:6a1f')
    """
    return {
        "specversion": "1.0",
        "id": str(event["number"]),
        "source": f"urn:uuid:{event['plan']}",
        "type": f"actionplan.{event['type']}",
        "time": event["at"],
        **({"subject": event["action"]} if "action" in event else {}),
        "datacontenttype": "application/json",
        "data": event,
    }


def key_of(name: str, secret: str) -> bytes:
    """Return the key in the text of a secret: base64 after ``whsec_``, or else the text itself."""
    text = secret.strip()
    try:
        key = (
            base64.b64decode(text.removeprefix(_SECRET_PREFIX), validate=True)
            if text.startswith(_SECRET_PREFIX)
            else text.encode()
        )
    except ValueError:
        raise ConfigurationError(
            f"[events] secret_files {name}: what follows whsec_ is not base64"
        ) from None
    if not key:
        raise ConfigurationError(f"[events] secret_files {name}: the file is empty")
    return key


def require_address(name: str, address: str) -> None:
    """Raise ConfigurationError for an address that is no URL of HTTP."""
    if not is_url(address, WEB):
        # Without the address: it may hold a password.
        raise ConfigurationError(f"[events] webhooks {name}: accepted: http://... or https://...")


def reason_of(error: requests.RequestException) -> str:
    """Return why a request failed, without its address, which may hold a secret."""
    if isinstance(error, requests.ConnectTimeout):
        return f"no connection within {CONNECT_S:g} s"
    if isinstance(error, requests.Timeout):
        return f"no answer within {ANSWER_S:g} s"
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        if isinstance(cause, TimeoutError):
            return f"no answer within {ANSWER_S:g} s"
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, requests.exceptions.SSLError):
        return "TLS fails: its certificate is not accepted"
    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        return "its answer breaks off"
    return type(error).__name__
