# SPDX-License-Identifier: Apache-2.0
"""``/healthz``: the process answers; ``/readyz``: its record answers as well."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import falcon

from applier.api.monitoring.one_look import OneLook
from applier.errors import DamagedRecord, StoreError

LOG = logging.getLogger(__name__)

#: The most seconds that ``/readyz`` takes, and those after which a record counts as slow.
LIMIT_S, SLOW_S = 2.0, 0.5
DEAD = "The record cannot be reached; the log of the service says why."


class Health:
    """Says that the process answers; never asks the record."""

    PUBLIC = True

    def on_get(self, _request: falcon.Request, response: falcon.Response) -> None:
        """Answer."""
        response.media = {"status": "ok"}


class Readiness:
    """Says whether the record answers: ``ready``, ``slow`` or ``dead``.

    A record that is slow but answers is good enough for requests: 200.
    """

    PUBLIC = True

    def __init__(
        self,
        ping: Callable[[], None],
        limit_s: float = LIMIT_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._look, self._limit_s, self._clock = OneLook(ping, limit_s), limit_s, clock
        self._status = "ready"

    def on_get(self, _request: falcon.Request, response: falcon.Response) -> None:
        """Ask the record, and answer within the limit."""
        began = self._clock()
        found, detail = self._found()
        seconds = self._clock() - began
        status = "slow" if found == "ready" and seconds >= SLOW_S else found
        response.status = falcon.HTTP_503 if detail else falcon.HTTP_200
        answer = {"status": status, "seconds": round(seconds, 3)}
        response.media = {**answer, "detail": detail} if detail else answer

    def _found(self) -> tuple[str, str | None]:
        """Return the status, and a sentence if the record did not answer."""
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
        """Log a change, once: everybody may ask."""
        if status != self._status:
            LOG.log(logging.INFO if status == "ready" else logging.WARNING, "%s", text)
        self._status = status
