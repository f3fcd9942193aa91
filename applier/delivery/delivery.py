# SPDX-License-Identifier: Apache-2.0
"""Delivers the events of a store to one receiver, from one of several processes.

After each batch, the number of the last delivered event is recorded. If a process is killed, at
most one batch is delivered again. Events of one plan are delivered in order: while one is refused,
the later ones of its plan wait, and events of other plans are delivered.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from applier import log_fields
from applier.backoff import delays_s
from applier.delivery.progress import BatchProgress
from applier.delivery.receivers import Away, Receiver
from applier.errors import DamagedRecord, StoreError, sound_part
from applier.notifications.schema import Event
from applier.run.liveness import MISSED_HEARTBEATS
from applier.store.entries import EventPage, Subscription, Trouble

if TYPE_CHECKING:
    from applier.storage.sql_store import SqlStore


LOG = logging.getLogger(__name__)

#: How many new events, and how many held ones, are delivered between two writes to the record.
BATCH = 100
#: Seconds between two reads of new events, and between two heartbeats.
POLL_S, BEAT_S = 0.5, 5.0
#: The shortest and the longest seconds between two deliveries of an event.
FIRST_DELAY_S, LONGEST_DELAY_S = 1.0, 300.0


class EventDelivery:
    """Delivers events to a receiver until ``ending`` is set.

    ``holder`` is a uuid of this process. An event that could not be delivered for ``give_up_s``
    seconds is given up: it becomes a dead event.
    """

    def __init__(
        self,
        store: SqlStore,
        receiver: Receiver,
        *,
        holder: str,
        give_up_s: float,
        clock: Callable[[], datetime],
        ending: threading.Event,
    ) -> None:
        self._store, self._receiver, self._holder = store, receiver, holder
        self._give_up = timedelta(seconds=give_up_s)
        self._clock, self._ending = clock, ending
        self._name = receiver.name
        #: The subscription while this process is its holder.
        self._mine: Subscription | None = None
        #: The subscription of another holder, and when its heartbeat was first seen.
        self._seen: tuple[Subscription, float] | None = None
        #: The monotonic time of the next try for each plan that is held back; None: for all events.
        self._retry_at: dict[str | None, float] = {}
        self._next_beat = 0.0
        #: The sentences about damaged events that were logged.
        self._left_out = set[str]()

    def run(self) -> None:
        """Deliver until the end; what fails is logged once, and retried."""
        outage: Iterator[float] | None = None
        is_broken = False
        while not self._ending.is_set():
            try:
                wait_s = self.step()
                outage, is_broken = None, False
            except (StoreError, DamagedRecord) as reason:
                if outage is None:
                    LOG.warning("%s: the record cannot be used; retrying: %s", self._name, reason)
                    outage = delays_s(POLL_S, BEAT_S)
                self._mine, wait_s = None, next(outage)
            except Exception:
                # Without this thread the receiver would get nothing until a restart.
                if not is_broken:
                    LOG.exception("%s: events cannot be delivered; retrying", self._name)
                self._mine, wait_s, is_broken = None, BEAT_S, True
            self._ending.wait(wait_s)
        if self._mine is not None:
            with suppress(StoreError, DamagedRecord):
                self._store.release(self._name, self._holder)

    def step(self) -> float:
        """Deliver and record a batch; return the seconds until the next step. Raises StoreError."""
        mine = self._mine or self._taken()
        if mine is not None and time.monotonic() >= self._next_beat:
            # After a pause of this process, another may have given events up since.
            self._record(self._progress(mine))
            mine = self._mine
        if mine is None:
            return POLL_S
        progress, more = self._batch(mine) if self._is_due(None) else (self._progress(mine), False)
        if progress.subscription != mine:
            self._record(progress)
        return 0.0 if more else POLL_S

    def _taken(self) -> Subscription | None:
        """Become the holder of the subscription, the one process that delivers its events.

        Returns None if another process is, and has not missed its heartbeats.
        """
        self._store.subscribe(self._name, now=self._clock())
        self._mine = self._store.hold(self._name, self._holder, seen=self._dead_holder())
        if self._mine is not None:
            self._seen, self._retry_at = None, {}
            LOG.info("%s: events are delivered after number %d", self._name, self._mine.delivered)
        return self._mine

    def _dead_holder(self) -> Subscription | None:
        """Return the subscription if its holder has missed its heartbeats, else None."""
        now = time.monotonic()
        subscriptions, _ = sound_part(self._store.subscriptions)
        found = next((s for s in subscriptions if s.name == self._name), None)
        if found is None:
            return None
        if self._seen is None or self._seen[0].beats != found.beats:
            self._seen = found, now
        return found if now - self._seen[1] >= MISSED_HEARTBEATS * BEAT_S else None

    def _batch(self, mine: Subscription) -> tuple[BatchProgress, bool]:
        """Deliver new events and held ones that are due; return the progress, True if more wait."""
        page, held = self._events(mine.delivered), self._held_and_due(mine)
        if not page.events and not held:
            return self._progress(mine._replace(delivered=page.last)), False
        progress, late_at = self._progress(mine), time.monotonic() + BEAT_S

        def is_late() -> bool:
            return time.monotonic() > late_at

        try:
            with self._receiver.opened() as deliver:
                for plan, events in held.items():
                    progress.deliver_held(plan, events, deliver, is_late)
                progress.deliver_new(page, deliver, is_late)
        except Away as reason:
            # The block as a whole has failed, such as a write to a file: nothing was delivered.
            progress = self._progress(mine)
            progress.note_away(str(reason))
        progress.give_up_old(page.events, held)
        self._schedule(mine, progress.subscription)
        if progress.dead and progress.subscription.held_back:
            # New events of plans that are held back have joined the held ones, perhaps as old.
            self._retry_at.pop(None, None)
        more = progress.subscription.delivered < page.newest
        return progress, more and progress.subscription.away is None

    def _progress(self, mine: Subscription) -> BatchProgress:
        return BatchProgress(mine, give_up=self._give_up, clock=self._clock)

    def _held_and_due(self, mine: Subscription) -> dict[str, list[Event]]:
        """Return the events whose delivery is to be tried again now, by plan; at most BATCH."""
        found: dict[str, list[Event]] = {}
        left = BATCH
        for plan, trouble in mine.held_back.items():
            if left and self._is_due(plan):
                events = self._events(trouble.number - 1, plan).events
                found[plan] = [e for e in events if e["number"] <= mine.delivered][:left]
                left -= len(found[plan])
        return found

    def _events(self, after: int, plan: str | None = None) -> EventPage:
        """Return a page of events without damaged ones, which nobody can deliver; log each once."""
        page, damaged = sound_part(lambda: self._store.events(after, limit=BATCH, plan=plan))
        for text in sorted({str(row) for row in damaged} - self._left_out):
            LOG.error("%s: %s; it is not delivered", self._name, text)
            self._left_out.add(text)
        return page

    def _is_due(self, plan: str | None) -> bool:
        return time.monotonic() >= self._retry_at.get(plan, 0.0)

    def _schedule(self, before: Subscription, after: Subscription) -> None:
        """Set the time of the next try for each trouble that is new or was tried again."""
        troubles, known = _troubles(after), _troubles(before)
        self._retry_at = {k: at for k, at in self._retry_at.items() if k in troubles}
        for key, trouble in troubles.items():
            if trouble != known.get(key):
                self._retry_at[key] = time.monotonic() + _delay_s(trouble)
        self._log(before, after)

    def _log(self, before: Subscription, after: Subscription) -> None:
        """Log when trouble begins and when it ends."""
        if after.away is not None and before.away is None:
            LOG.warning("%s: events wait: %s", self._name, after.away.why)
        if before.away is not None and after.away is None:
            LOG.info("%s: events are delivered again", self._name)
        for plan in after.held_back.keys() - before.held_back.keys():
            with log_fields.about(plan=plan):
                LOG.warning("%s: an event waits: %s", self._name, after.held_back[plan].why)

    def _record(self, progress: BatchProgress) -> None:
        self._next_beat = time.monotonic() + BEAT_S
        for dead in progress.dead:
            text = "%s: event %d is given up: %s"
            LOG.error(text, self._name, dead.event["number"], dead.why)
        if self._store.record_delivery(progress.subscription, progress.dead):
            self._mine = progress.subscription
        else:
            self._mine = None
            LOG.warning("%s: another process delivers its events now", self._name)


def _troubles(subscription: Subscription) -> dict[str | None, Trouble]:
    """Return the trouble of each plan that is held back; under None, that of an away receiver."""
    of_all: dict[str | None, Trouble] = dict(subscription.held_back.items())
    if subscription.away is not None:
        of_all[None] = subscription.away
    return of_all


def _delay_s(trouble: Trouble) -> float:
    """Return the seconds until the next try: doubled by each try, 0 before the first."""
    if trouble.tries == 0:
        return 0.0
    return float(min(FIRST_DELAY_S * 2 ** min(trouble.tries - 1, 20), LONGEST_DELAY_S))
