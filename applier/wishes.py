"""Brings what operators wish of a running plan from the store to its engine."""

from __future__ import annotations

import logging
import threading

from applier.contracts import Wish
from applier.engines import Events, Foreign
from applier.errors import StoreError
from applier.record import Reservation, Store

LOG = logging.getLogger(__name__)

#: The wishes that a running plan can follow.
VERBS = frozenset({"cancel", "pause", "skip", "abort", "limit"})


class WishReader:
    """Asks the store for new wishes, in a thread of its own, from entering to leaving a block.

    ``after`` is the number of the last wish that is known already; new ones are put into ``events``
    in their order. So is what other plans hold of the plan's resources, for as long as they hold
    any: ``foreign`` is what they held last. A store that does not answer is asked again. Each time
    the engine's thread is woken, so that a signal waits no longer than ``interval_s`` for its
    handler.
    """

    def __init__(
        self,
        store: Store,
        plan: str,
        *,
        after: int,
        events: Events,
        interval_s: float,
        foreign: tuple[Reservation, ...] = (),
    ) -> None:
        self._store, self._plan, self._after = store, plan, after
        self._events, self._interval_s, self._foreign = events, interval_s, foreign
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
            if can_follow(self._plan, wish):
                self._events.put(wish)
        if self._foreign:
            found = tuple(self._store.held_by_others(self._plan))
            if found != self._foreign:
                self._foreign = found
                self._events.put(Foreign(found))


def can_follow(plan: str, wish: Wish) -> bool:
    """Say whether a running plan can follow a wish; what it cannot follow is logged."""
    if wish.verb not in VERBS:
        LOG.warning("Plan %s: no wish %r is known", plan, wish.verb)
        return False
    low = [f"{name}={number}" for name, number in wish.limits.items() if number < 1]
    if low:
        LOG.warning("Plan %s: a limit is at least 1, not %s", plan, ", ".join(low))
    return not low
