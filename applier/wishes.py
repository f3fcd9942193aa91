"""Brings what operators wish of a running plan from the store to its engine."""

from __future__ import annotations

import logging
import threading

from applier.contracts import Store
from applier.engines import Events
from applier.errors import StoreError

LOG = logging.getLogger(__name__)

#: The wishes that a running plan can follow.
VERBS = frozenset({"cancel", "pause", "skip"})


class WishReader:
    """Asks the store for new wishes, in a thread of its own, from entering to leaving a block.

    ``after`` is the number of the last wish that is known already; new ones are put into ``events``
    in their order. A store that does not answer is asked again. Each time the engine's thread is
    woken, so that a signal waits no longer than ``interval_s`` for its handler.
    """

    def __init__(
        self, store: Store, plan: str, *, after: int, events: Events, interval_s: float
    ) -> None:
        self._store, self._plan, self._after = store, plan, after
        self._events, self._interval_s = events, interval_s
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="wish-reader", daemon=True)

    def __enter__(self) -> WishReader:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._left.set()
        self._thread.join()

    def _loop(self) -> None:
        while not self._left.wait(self._interval_s):
            try:
                self._read()
            except StoreError as reason:
                # The engine's own commits decide whether the plan can go on.
                LOG.warning("Wishes for plan %s cannot be read: %s", self._plan, reason)
            self._events.put(None)

    def _read(self) -> None:
        for wish in self._store.wishes(self._plan, self._after):
            self._after = wish.number
            if wish.verb in VERBS:
                self._events.put(wish)
            else:
                LOG.warning("Plan %s: no wish %r is known", self._plan, wish.verb)
