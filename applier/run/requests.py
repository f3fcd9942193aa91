"""Brings what operators request of a running plan from the store to its engine."""

from __future__ import annotations

import logging
import threading

from applier.contracts import Request
from applier.engines import Events, ReservationsChanged
from applier.errors import StoreError
from applier.store import Reservation, RunStore

LOG = logging.getLogger(__name__)

#: The requests that a running plan can follow.
VERBS = frozenset({"cancel", "pause", "skip", "abort", "limit"})


class RequestReader:
    """Asks the store for new requests, in a thread of its own, from entering to leaving a block.

    ``after`` is the number of the last request that is known already; new ones are put into
    ``events`` in their order. So is what other plans hold of the plan's resources, for as long as
    they hold any: ``held_by_others`` is what they held last. A store that does not answer is asked
    again. Each time the engine's thread is woken, so that a signal waits no longer than
    ``interval_s`` for its handler.
    """

    def __init__(
        self,
        store: RunStore,
        plan: str,
        *,
        after: int,
        events: Events,
        interval_s: float,
        held_by_others: tuple[Reservation, ...] = (),
    ) -> None:
        self._store, self._plan, self._after = store, plan, after
        self._events, self._interval_s, self._held_by_others = events, interval_s, held_by_others
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="request-reader", daemon=True)

    def __enter__(self) -> RequestReader:
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
                LOG.warning("Requests for plan %s cannot be read: %s", self._plan, reason)
            self._events.put(None)

    def _read(self) -> None:
        for request in self._store.requests(self._plan, self._after):
            self._after = request.number
            if can_follow(self._plan, request):
                self._events.put(request)
        if self._held_by_others:
            found = tuple(self._store.held_by_others(self._plan))
            if found != self._held_by_others:
                self._held_by_others = found
                self._events.put(ReservationsChanged(found))


def can_follow(plan: str, request: Request) -> bool:
    """Say whether a running plan can follow a request; what it cannot follow is logged."""
    if request.verb not in VERBS:
        LOG.warning("Plan %s: no request %r is known", plan, request.verb)
        return False
    low = [f"{name}={number}" for name, number in request.limits.items() if number < 1]
    if low:
        LOG.warning("Plan %s: a limit is at least 1, not %s", plan, ", ".join(low))
    return not low
