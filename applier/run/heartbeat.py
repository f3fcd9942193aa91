"""Says on record that whoever runs a plan lives, also while its engine is busy."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import datetime

from applier.engines import Events
from applier.errors import PlanConflict, StoreError
from applier.store import RunStore

LOG = logging.getLogger(__name__)


class Heartbeat:
    """Beats for one claim, in a thread of its own, from entering to leaving a block.

    When the claim is lost, that goes into ``events``, and the beat ends: nothing more may be
    written then. A store that does not answer is asked again.
    """

    def __init__(
        self,
        store: RunStore,
        plan: str,
        claim: str,
        *,
        events: Events,
        clock: Callable[[], datetime],
        interval_s: float,
    ) -> None:
        self._store, self._plan, self._claim = store, plan, claim
        self._events, self._clock, self._interval_s = events, clock, interval_s
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="heartbeat", daemon=True)

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._left.set()
        self._thread.join()

    def _loop(self) -> None:
        while not self._left.wait(self._interval_s):
            try:
                self._store.beat(self._plan, self._claim, now=self._clock())
            except PlanConflict as lost:
                self._events.put(lost)
                return
            except StoreError as reason:
                # The engine's own commits decide whether the plan can go on.
                LOG.warning("Plan %s: no heartbeat can be written: %s", self._plan, reason)
