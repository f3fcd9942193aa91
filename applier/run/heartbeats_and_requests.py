# SPDX-License-Identifier: Apache-2.0
"""Writes heartbeats and reads requests at intervals, in threads beside a running plan."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from contextvars import copy_context
from datetime import datetime

from applier.contracts import Request, RequestVerb
from applier.engines.engine import Events, ReservationsChanged
from applier.errors import DamagedRecord, DamagedRows, NoThread, PlanConflict, StoreError
from applier.store import Reservation, RunStore
from planner.plan.model import ActionPlan

LOG = logging.getLogger(__name__)

#: The verbs of the requests that a running plan can follow.
VERBS = frozenset(RequestVerb) - {RequestVerb.HAND_BACK}


class Periodic:
    """A context manager that calls ``function`` every ``interval_s`` seconds, in its own thread.

    The first call is made after the first interval. The calls end if the function returns False or
    raises an error. Entering the block raises NoThread if the machine has no thread left. Leaving
    it waits for a call that is in progress.
    """

    def __init__(self, name: str, interval_s: float, function: Callable[[], bool]) -> None:
        self._name, self._interval_s, self._function = name, interval_s, function
        self._left = threading.Event()
        self._thread = threading.Thread(
            target=copy_context().run, args=(self._loop,), name=name, daemon=True
        )

    def __enter__(self) -> Periodic:
        try:
            self._thread.start()
        except RuntimeError as reason:
            raise NoThread(f"the {self._name} of a run", reason) from reason
        return self

    def __exit__(self, *error: object) -> None:
        self._left.set()
        self._thread.join()

    def _loop(self) -> None:
        while not self._left.wait(self._interval_s) and self._function():
            pass


class Heartbeats:
    """Writes the heartbeats of a claim, once ``claim`` is set.

    If the claim is lost, the PlanConflict is put into ``events``, and no more heartbeats are
    written. If the store does not answer, the next heartbeat tries again.
    """

    def __init__(
        self, store: RunStore, plan: str, *, events: Events, clock: Callable[[], datetime]
    ) -> None:
        self._store, self._plan, self._events, self._clock = store, plan, events, clock
        self.claim: str | None = None

    def beat(self) -> bool:
        """Write a heartbeat; return False if the claim is lost."""
        if self.claim is None:
            return True
        try:
            self._store.beat(self._plan, self.claim, now=self._clock())
        except PlanConflict as lost:
            self._events.put(lost)
            return False
        except (StoreError, DamagedRecord) as reason:
            # The commits of the engine decide whether the run can continue.
            LOG.warning("Plan %s: no heartbeat could be written: %s", self._plan, reason)
        return True


class RequestReader:
    """Puts the new requests of one plan into ``events``, in their order.

    ``after`` is the number of the last request that was read before.
    """

    def __init__(self, store: RunStore, plan: ActionPlan, *, after: int, events: Events) -> None:
        self._store, self._plan, self._after, self._events = store, plan, after, events
        #: The reservations of other plans that were read last. Until all of them are released,
        #: changes of them are also put into the events.
        self.held_by_others: tuple[Reservation, ...] = ()

    def poll(self) -> bool:
        """Read the new requests; return True."""
        try:
            self._read()
        except (StoreError, DamagedRecord) as reason:
            # The commits of the engine decide whether the run can continue.
            LOG.warning("Plan %s: its requests could not be read: %s", self._plan.uuid, reason)
        # Wakes the engine's thread, so that signals are handled.
        self._events.put(None)
        return True

    def _read(self) -> None:
        try:
            requests = self._store.requests(self._plan.uuid, self._after)
        except DamagedRows as damaged:
            requests = damaged.sound
            for row in damaged.rows:
                LOG.error("Plan %s: %s; it is not followed", self._plan.uuid, row)
                self._after = max(self._after, row.values.get("number", 0))
        for request in requests:
            self._after = max(self._after, request.number)
            if can_follow(self._plan, request):
                self._events.put(request)
        if self.held_by_others:
            found = tuple(self._store.held_by_others(self._plan.uuid))
            if found != self.held_by_others:
                self.held_by_others = found
                self._events.put(ReservationsChanged(found))


def can_follow(plan: ActionPlan, request: Request) -> bool:
    """Return whether a running plan can follow a request; log one that it cannot follow."""
    if request.verb not in VERBS:
        LOG.warning("Plan %s: unknown request %r", plan.uuid, request.verb)
        return False
    if request.limits and _touches_more_at_once(plan, request.limits):
        LOG.warning("Plan %s: it may not touch more at once: %s", plan.uuid, dict(request.limits))
        return False
    low = [f"{name}={number}" for name, number in request.limits.items() if number < 1]
    if low:
        LOG.warning("Plan %s: a limit is at least 1, not %s", plan.uuid, ", ".join(low))
    return not low


def _touches_more_at_once(plan: ActionPlan, wanted: Mapping[str, int]) -> bool:
    from applier.guarding import guard

    return guard.touches_more_at_once(plan, wanted)
