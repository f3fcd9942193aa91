# SPDX-License-Identifier: Apache-2.0
"""Reads the events of one plan from the record while a run writes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial

from applier.errors import sound_part
from applier.notifications import schema
from applier.operations.events import read_on
from applier.store.subscriptions import EventStore
from planner.model import ActionPlan

#: The length of the subscription. It is prolonged when less than half of that is left.
LASTS = timedelta(minutes=5)
#: How many events are read at once.
PAGE = 200


class PlanEvents:
    """Reads the events of a plan, from the oldest that is kept, in the order of their numbers.

    Repeat three calls: :meth:`subscribe`, load the plan, :meth:`read`. If the recorded events do
    not lead to the state of the plan, because some were deleted or not recorded before the
    subscription, an additional event with that state is returned. It has the number of the last
    event before it, or 0 if there is none. Damaged events are left out; ``tell`` is called with a
    sentence about each.
    """

    def __init__(
        self,
        store: EventStore,
        plan: str,
        *,
        clock: Callable[[], datetime],
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._store, self._plan, self._clock, self._tell = store, plan, clock, tell
        self._until: datetime | None = None
        self._after = 0
        #: Whether the record had more events than the last read returned.
        self.has_more = False
        #: The state of the plan in the last event that was returned.
        self._told: str | None = None

    def subscribe(self) -> None:
        """Subscribe as a reader; prolong that when half of it has passed. Raises StoreError."""
        now = self._clock()
        if self._until is None or self._until < now + LASTS / 2:
            self._until = now + LASTS
            read_on(self._store, now=now, keep_s=LASTS.total_seconds())

    def read(self, plan: ActionPlan) -> Sequence[schema.Event]:
        """Return the next events, none if there are no more.

        ``plan`` must have been loaded after :meth:`subscribe`. So the event of its state, if it was
        recorded, is in the record before this call.
        """
        read = partial(self._store.events, self._after, limit=PAGE, plan=self._plan)
        page, damaged = sound_part(read)
        for row in damaged:
            self._tell(f"{row}; it is left out")
        self._after, self.has_more = page.last, page.last < page.newest
        for event in page.events:
            if event["type"] == schema.PLAN_STATE:
                self._told = event["data"]["state"]
        if page.events or self._told == plan.state:
            return page.events
        self._told = plan.state
        at, message = self._clock(), plan.status_message
        return [schema.of_plan(plan.uuid, plan.state, message, number=page.last, at=at)]
