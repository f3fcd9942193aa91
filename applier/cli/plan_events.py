# SPDX-License-Identifier: Apache-2.0
"""Reads the events of one plan from the record while they are written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from applier.notifications import schema
from applier.operations.events import read_on
from applier.store.subscriptions import EventStore
from planner.model import ActionPlan

#: How long the subscription lasts without a read. It is prolonged when half of that has passed.
LASTS = timedelta(minutes=5)
#: How many events are read at once.
PAGE = 200


class PlanEvents:
    """Reads the events of a plan, from the oldest that is kept, in the order of their numbers.

    Call :meth:`subscribe`, load the plan, and call :meth:`read`, again and again. If the events do
    not tell the state of the plan (some were deleted, or came before the subscription), there is an
    event that does: its number is that of the last event before it, and 0 without any.
    """

    def __init__(self, store: EventStore, plan: str, *, clock: Callable[[], datetime]) -> None:
        self._store, self._plan, self._clock = store, plan, clock
        self._until: datetime | None = None
        self._after = 0
        #: Whether there were more events than the last read returned.
        self.has_more = False
        #: The state of the plan that was told last.
        self._told: str | None = None

    def subscribe(self) -> None:
        """Subscribe as a reader, or prolong that if it is time; raises StoreError."""
        now = self._clock()
        if self._until is None or self._until < now + LASTS / 2:
            self._until = now + LASTS
            read_on(self._store, now=now, keep_s=LASTS.total_seconds())

    def read(self, plan: ActionPlan) -> Sequence[schema.Event]:
        """Return the next events, none if there are no more.

        ``plan`` was loaded before, and after the subscription, so its state is told by the events
        up to those that are there now.
        """
        page = self._store.events(self._after, limit=PAGE, plan=self._plan)
        self._after, self.has_more = page.last, page.last < page.newest
        for event in page.events:
            if event["type"] == schema.PLAN_STATE:
                self._told = event["data"]["state"]
        if page.events or self._told == plan.state:
            return page.events
        self._told = plan.state
        at, message = self._clock(), plan.status_message
        return [schema.of_plan(plan.uuid, plan.state, message, number=page.last, at=at)]
