# SPDX-License-Identifier: Apache-2.0
"""``/healthz`` responds while the process lives; ``/readyz`` checks the database as well."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import falcon

from applier.api.monitoring.shared_call import SharedCall
from applier.errors import DamagedRecord, StoreError

LOG = logging.getLogger(__name__)

#: The maximum seconds that ``/readyz`` takes, and those from which on the database counts as slow.
LIMIT_S, SLOW_S = 2.0, 0.5
DEAD = "The record cannot be reached; the log of the service says why."


class Health:
    """The resource ``/healthz``, which does not read the database."""

    PUBLIC = True

    def on_get(self, _request: falcon.Request, response: falcon.Response) -> None:
        """Respond with the status ``ok``."""
        response.media = {"status": "ok"}


class Readiness:
    """The resource ``/readyz``: the state of the database, ``ready``, ``slow`` or ``dead``.

    The status is 200 if the database responds within ``limit_s``, even slowly. It is 503 with
    ``slow`` if it does not respond in time, and 503 with ``dead`` if it raises an error.
    """

    PUBLIC = True

    def __init__(
        self,
        ping: Callable[[], None],
        limit_s: float = LIMIT_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._look, self._limit_s, self._clock = SharedCall(ping, limit_s), limit_s, clock
        self._status = "ready"

    def on_get(self, _request: falcon.Request, response: falcon.Response) -> None:
        """Query the database, and respond within ``limit_s`` seconds."""
        began = self._clock()
        found, detail = self._found()
        seconds = self._clock() - began
        status = "slow" if found == "ready" and seconds >= SLOW_S else found
        response.status = falcon.HTTP_503 if detail else falcon.HTTP_200
        answer = {"status": status, "seconds": round(seconds, 3)}
        response.media = {**answer, "detail": detail} if detail else answer

    def _found(self) -> tuple[str, str | None]:
        """Return the status, and a sentence if the database did not respond in time, else None."""
        try:
            self._look()
        except TimeoutError:
            detail = f"The record has not answered for {self._limit_s:g} s."
            self._tell("slow", detail)
            return "slow", detail
        except (StoreError, DamagedRecord) as reason:
            self._tell("dead", str(reason))
            return "dead", DEAD
        self._tell("ready", "The record answers again.")
        return "ready", None

    def _tell(self, status: str, text: str) -> None:
        """Store the status, and log ``text`` if the status has changed."""
        if status != self._status:
            LOG.log(logging.INFO if status == "ready" else logging.WARNING, "%s", text)
        self._status = status
