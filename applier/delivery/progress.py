# SPDX-License-Identifier: Apache-2.0
"""Delivers a batch of events, and computes the progress to record; its only I/O is ``deliver``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from applier.delivery.receivers import Away, Deliver, EventRefused
from applier.notifications.schema import Event
from applier.store.entries import DeadEvent, EventPage, Subscription, Trouble


class BatchProgress:
    """The progress of one batch, beginning with a subscription as it is on record.

    At its end, the caller records ``subscription`` and ``dead``. ``give_up`` is how long delivery
    of an event is tried before the event becomes a dead one.
    """

    def __init__(
        self, subscription: Subscription, *, give_up: timedelta, clock: Callable[[], datetime]
    ) -> None:
        self.subscription = subscription
        self.dead: list[DeadEvent] = []
        self._give_up, self._clock = give_up, clock
        self._is_stopped = False

    def deliver_new(self, page: EventPage, deliver: Deliver, is_late: Callable[[], bool]) -> None:
        """Deliver the events that follow the last delivered one, until the receiver is away.

        Events of plans that are held back (because one of their events was refused) are left for
        :meth:`deliver_held`. It ends early once ``is_late`` returns True.
        """
        for event in page.events:
            if self._is_stopped or is_late():
                return
            if event["plan"] not in self.subscription.held_back:
                try:
                    deliver(event)
                except EventRefused as reason:
                    self._refuse(event, str(reason))
                except Away as reason:
                    self.note_away(str(reason))
                    return
            self._come_to(event["number"])
        if not self._is_stopped:
            self._come_to(page.last)

    def deliver_held(
        self, plan: str, events: Sequence[Event], deliver: Deliver, is_late: Callable[[], bool]
    ) -> None:
        """Deliver the events of a plan that were held back; if there are none, release the plan.

        It ends early once ``is_late`` returns True.
        """
        for event in events:
            if self._is_stopped or is_late():
                return
            try:
                deliver(event)
            except EventRefused as reason:
                if self._refuse(event, str(reason)):
                    return
            except Away as reason:
                self.note_away(str(reason))
                return
            else:
                self._hold_back(plan, self._untried(event["number"] + 1))
        if not events:
            held = {p: t for p, t in self.subscription.held_back.items() if p != plan}
            self.subscription = self.subscription._replace(held_back=held)

    def note_away(self, why: str) -> None:
        """Note that the receiver is away: deliver nothing more in this batch."""
        before = self.subscription.away or self._untried(self.subscription.delivered + 1)
        away = before._replace(tries=before.tries + 1, why=why)
        self.subscription = self.subscription._replace(away=away)
        self._is_stopped = True

    def give_up_old(self, events: Iterable[Event], held: Mapping[str, Sequence[Event]]) -> None:
        """Make dead events of new and of held ones that have waited too long for one that is away.

        ``held`` are those of plans that are held back.
        """
        away = self.subscription.away
        if away is None:
            return
        for plan, waiting in held.items():
            self._give_up_held(plan, waiting, away.why)
        for event in events:
            if not self._is_old(event, away.since):
                return
            if event["plan"] not in self.subscription.held_back:
                self._bury(event, away.why)
            self.subscription = self.subscription._replace(delivered=event["number"])

    def _give_up_held(self, plan: str, events: Iterable[Event], why: str) -> None:
        """Make dead events of the first ones of a plan, as long as they are too old."""
        for event in events:
            trouble = self.subscription.held_back[plan]
            if not self._is_old(event, trouble.since):
                return
            if event["number"] >= trouble.number:
                self._bury(event, why)
                self._hold_back(plan, trouble._replace(number=event["number"] + 1, tries=0, why=""))

    def _refuse(self, event: Event, why: str) -> bool:
        """Hold back the plan of an event; return False if the event is too old and became dead."""
        plan = event["plan"]
        before = self.subscription.held_back.get(plan)
        if before is None:
            before = self._untried(event["number"])
        elif before.number != event["number"]:
            # The clock goes on: else each event of the plan would be tried for as long again.
            before = before._replace(number=event["number"], tries=0)
        is_old = self._is_old(event, before.since)
        if is_old:
            self._bury(event, why)
            trouble = before._replace(number=event["number"] + 1, tries=0, why="")
        else:
            trouble = before._replace(tries=before.tries + 1, why=why)
        self._hold_back(plan, trouble)
        return not is_old

    def _untried(self, number: int) -> Trouble:
        return Trouble(number=number, since=self._clock(), tries=0, why="")

    def _hold_back(self, plan: str, trouble: Trouble) -> None:
        held = {**self.subscription.held_back, plan: trouble}
        self.subscription = self.subscription._replace(held_back=held)

    def _come_to(self, number: int) -> None:
        self.subscription = self.subscription._replace(delivered=number, away=None)

    def _is_old(self, event: Event, since: datetime) -> bool:
        """Return whether delivery of an event, first at ``since``, was tried for ``give_up``."""
        first = max(since, datetime.fromisoformat(event["at"]))
        return self._clock() - first >= self._give_up

    def _bury(self, event: Event, why: str) -> None:
        name = self.subscription.name
        self.dead.append(DeadEvent(subscription=name, event=event, why=why, at=self._clock()))
