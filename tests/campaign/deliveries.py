# SPDX-License-Identifier: Apache-2.0
"""Delivers events to receivers that refuse and are away for hours of a simulated clock.

``python tests/campaign/deliveries.py [--seconds S] [--seed N]``. Two processes deliver to each of
three receivers; now and then one is killed amid a batch, or frozen. Each event arrives, those of a
plan in their order, or is a dead one, after the time of giving up and soon after it. What waits is
counted, and once all receivers accept, nothing is left and all events can be deleted.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from types import SimpleNamespace

from applier.contracts import HistoryEntry
from applier.delivery import delivery
from applier.delivery.delivery import BATCH, BEAT_S, LONGEST_DELAY_S, EventDelivery
from applier.delivery.receivers import Away, Deliver, EventRefused
from applier.notifications.schema import Event
from applier.run.liveness import MISSED_HEARTBEATS
from applier.storage.sql_store import SqlStore

sys.path.insert(0, str(Path(__file__).parents[1] / "contract"))
from sample_plans import MADE, new_plan

HOUR_S = 3600.0
GIVE_UP_S = (HOUR_S / 6, HOUR_S / 2, 2 * HOUR_S)
#: How long a round lasts, until all receivers accept, and the longest step of its clock.
ROUND_S, STEP_S = 6 * HOUR_S, 8.0
PLANS, RECEIVERS, PROCESSES = 12, 3, 2
#: How likely something happens in a step: an event, a change of a receiver, a trouble of a process.
HAPPENS, CHANGES, TROUBLES = 0.03, 0.0005, 0.01
#: How likely a process is killed amid a batch; most are delivered, else a time of giving up could
#: pass without one that is recorded.
KILLED = 0.1
#: How long a process may be frozen.
FROZEN_S = 120.0
#: An event is settled so long after the time of giving up, unless its receiver has changed since:
#: a change is seen by the next try, and the time of giving up by the one after it.
LATE_S = 2 * LONGEST_DELAY_S + FROZEN_S + 2 * MISSED_HEARTBEATS * BEAT_S + 10 * STEP_S


#: A folder that no disk slows down.
MEMORY = Path("/dev/shm")  # noqa: S108


class Killed(BaseException):
    """The process that delivers is no more."""


class Receiver:
    """Accepts, refuses the events of some plans, or is away; notes what it accepts."""

    def __init__(self, name: str, chance: Random) -> None:
        self.name, self._chance = name, chance
        self.got: list[Event] = []
        self.refused: set[str] = set()
        self.is_away = False
        self.changed_at = MADE
        #: How many more events the process delivers before it is killed.
        self._left: int | None = None

    def change(self, plans: Sequence[str], now: datetime) -> None:
        """Behave in another way from now on."""
        self.changed_at = now
        self.is_away = self._chance.random() < 1 / 4
        self.refused = set(self._chance.sample(plans, self._chance.randint(0, len(plans))))

    @contextmanager
    def opened(self) -> Iterator[Deliver]:
        """See :class:`applier.delivery.receivers.Receiver`."""
        is_killed = self._chance.random() < KILLED
        self._left = (
            self._chance.randrange(min(BATCH, 2 ** self._chance.randint(0, 7)))
            if is_killed
            else None
        )
        yield self._accept

    def _accept(self, event: Event) -> None:
        if self._left is not None:
            if self._left == 0:
                raise Killed
            self._left -= 1
        if self.is_away:
            raise Away("no route")
        if event["plan"] in self.refused:
            raise EventRefused("it answers 404 Not Found")
        self.got.append(event)


class Round:
    """Some hours of the simulated clock, with a record of their own."""

    def __init__(self, store: SqlStore, seed: int) -> None:
        self._store, self._chance, self._now_s = store, Random(seed), 0.0
        self._give_up_s = self._chance.choice(GIVE_UP_S)
        self._receivers = [Receiver(f"r{i}", self._chance) for i in range(RECEIVERS)]
        self._number = 0
        delivery.time = SimpleNamespace(monotonic=lambda: self._now_s)  # type: ignore[assignment]
        places = [(r, p) for r in self._receivers for p in range(PROCESSES)]
        self._processes = {place: self._process(place[0]) for place in places}
        #: When the next step of each process is due.
        self._due_s = dict.fromkeys(places, 0.0)
        for receiver in self._receivers:
            store.subscribe(receiver.name, now=self._clock())
        made = [new_plan("a", created_at=self._clock()) for _ in range(PLANS)]
        for plan in made:
            store.save_plan(plan)
        self._plans = [plan.uuid for plan in made]
        self.events = self.dead = 0

    def _clock(self) -> datetime:
        return MADE + timedelta(seconds=self._now_s)

    def _process(self, receiver: Receiver) -> EventDelivery:
        self._number += 1
        return EventDelivery(
            self._store,
            receiver,
            holder=str(self._number),
            give_up_s=self._give_up_s,
            clock=self._clock,
            ending=threading.Event(),
        )

    def run(self) -> Iterator[str]:
        """Let the hours pass, and say what is wrong."""
        next_look_s = 0.0
        while self._now_s < ROUND_S:
            self._step()
            if self._now_s >= next_look_s:
                next_look_s = self._now_s + HOUR_S / 6
                for receiver in self._receivers:
                    yield from self._wrong(receiver)
        for receiver in self._receivers:
            receiver.refused, receiver.is_away = set(), False
        end_s = self._now_s + LATE_S
        while self._now_s < end_s:
            self._step()
        for receiver in self._receivers:
            yield from self._wrong(receiver, at_the_end=True)
        self._store.delete_events(before=self._clock(), now=self._clock())
        if left := self._store.events(limit=10_000).events:
            yield f"{len(left)} events cannot be deleted"

    def _step(self) -> None:
        """Let the clock go on to the next step of a process, and take it."""
        place = min(self._due_s, key=self._due_s.__getitem__)
        receiver, chance = place[0], self._chance
        self._now_s = max(self._now_s, self._due_s[place])
        if self._now_s < ROUND_S:
            if chance.random() < HAPPENS:
                entry = HistoryEntry(verb="note", who="eve", at=self._clock())
                self._store.add_history(chance.choice(self._plans), entry)
            if chance.random() < CHANGES:
                receiver.change(self._plans, self._clock())
            if chance.random() < TROUBLES:
                self._due_s[place] += chance.uniform(0, FROZEN_S)
                return
        try:
            wait_s = self._processes[place].step()
        except Killed:
            self._processes[place], wait_s = self._process(receiver), STEP_S
        self._due_s[place] = self._now_s + max(wait_s, chance.uniform(0, STEP_S))

    def _wrong(self, receiver: Receiver, *, at_the_end: bool = False) -> Iterator[str]:
        """Say what is lost, late, given up too early, out of order, or wrongly counted."""
        name, now = receiver.name, self._clock()
        events = {e["number"]: e for e in self._store.events(limit=100_000).events}
        dead = {d.event["number"]: d for d in self._store.dead_events() if d.subscription == name}
        self.events, self.dead = len(events), self.dead + (len(dead) if at_the_end else 0)
        arrived = list(dict.fromkeys(event["number"] for event in receiver.got))
        waiting = events.keys() - dead.keys() - set(arrived)
        for number in sorted(waiting):
            since = max(_at(events[number]), receiver.changed_at)
            waits_s = (now - since).total_seconds()
            if at_the_end or waits_s > self._give_up_s + LATE_S:
                yield f"{name}: event {number} waits for {waits_s:.0f} s"
        for number, buried in dead.items():
            if (buried.at - _at(buried.event)).total_seconds() < self._give_up_s:
                yield f"{name}: event {number} was given up too early"
        last: dict[str, int] = {}
        for number in arrived:
            if number < last.get(events[number]["plan"], 0):
                yield f"{name}: event {number} came after a later one of its plan"
            last[events[number]["plan"]] = number
        (mine,) = (s for s in self._store.subscriptions() if s.name == name)
        counted = self._store.events_waiting(mine)
        if counted < len(waiting) or (at_the_end and (counted or mine.held_back or mine.away)):
            yield f"{name}: {len(waiting)} events wait, and {counted} are counted: {mine}"


def _at(event: Event) -> datetime:
    return datetime.fromisoformat(event["at"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a campaign; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="no new round after these")
    parser.add_argument("--seed", type=int, default=1, help="another number makes other troubles")
    given = parser.parse_args(arguments)
    logging.disable()
    end, rounds, events, dead = time.monotonic() + given.seconds, 0, 0, 0
    found: list[str] = []
    while not found and (rounds == 0 or time.monotonic() < end):
        rounds += 1
        seed = given.seed * 1000 + rounds
        with (
            tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder,
            closing(SqlStore(f"sqlite:///{Path(folder) / 'plans.db'}")) as store,
        ):
            hours = Round(store, seed)
            found = [f"round {seed}: {text}" for text in hours.run()]
        events, dead = events + hours.events, dead + hours.dead
    print(*found[:20], sep="\n", end="\n" if found else "")
    print(f"{rounds} times {ROUND_S / HOUR_S:g} hours: {events} events, {dead} dead ones")
    print(f"{rounds} passed, 0 failed" if not found else f"{rounds - 1} passed, 1 failed")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
