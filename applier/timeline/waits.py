# SPDX-License-Identifier: Apache-2.0
"""Computes when and why each action waited, and the end of which other action let it start. Pure.

An action waits for the actions before it, and then for its tokens and a worker, or for a hold of
the whole plan. The record does not have the reason, so it is computed from the times of all
actions: a limit counts as the reason if it was reached for at least half of the wait. The time is
linear in actions and links, apart from sorting.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from applier.scheduling.concurrency import Concurrency
from applier.scheduling.gates import Gates
from applier.timeline.holds import Holds
from applier.timeline.times import Times
from applier.timeline.values import Hold, Reason, TimeSpan, Wait
from planner.plan.model import JOIN, Action, ActionPlan
from planner.plan.place_rules import HeldPlace
from planner.plan.states import OPEN, WELL, ActionState

#: Waits that are shorter than this fraction of the time axis are left out.
SLIGHT = 1 / 500


class LastEnd(NamedTuple):
    """The end of an action in seconds, and its uuid; for a join, the last of the ends before it."""

    at_s: float
    uuid: str


_FIRST_START = "the first start: a run begins with checks"
_NOTHING_KNOWN = "no limit was reached"
#: The last end for an action that has no predecessors.
_BEGINNING = LastEnd(0.0, "")


class Waiting(NamedTuple):
    """The waits of an action, and the uuid of the action whose end let it start, if any."""

    waits: tuple[Wait, ...]
    after: str | None


NO_WAIT = Waiting((), None)


@dataclass(frozen=True, kw_only=True, slots=True)
class RunLimits:
    """The limits of a run: what may run at once, and holds by windows, pauses and other plans.

    ``held`` maps each resource that another plan holds now to a text about that. ``holds`` are the
    times in which no action of the plan, or none with a certain token, could start.
    """

    concurrency: Concurrency
    held: Mapping[str, str] = field(default_factory=dict)
    holds: Sequence[Hold] = ()


class Observed(NamedTuple):
    """When the actions of a plan ran or will run, why each waited, and the critical path.

    ``waiting`` is by uuid; ``critical`` are the uuids of the critical path, in its order.
    ``whole_s`` is the makespan in seconds that was forecast for the whole plan; ``is_known`` is
    false if the duration of an action was not known before the first start. ``taken`` is the
    sentence about how long the plan ran, empty before its first run.
    """

    times: Times
    waiting: Mapping[str, Waiting]
    critical: Sequence[str]
    whole_s: float
    is_known: bool = True
    taken: str = ""


def waits(plan: ActionPlan, found: Times, limits: RunLimits) -> dict[str, Waiting]:
    """Return, by uuid, the waits of each action that ran or is expected to run."""
    return _Waits(plan, found, limits).all()


def are_unexplained(waiting: Mapping[str, Waiting]) -> bool:
    """Return whether a wait has no known reason, or only that a run begins with checks."""
    found = (wait.what for one in waiting.values() for wait in one.waits)
    return any(what in (_FIRST_START, _NOTHING_KNOWN) for what in found)


def critical_path(found: Times, waiting: Mapping[str, Waiting]) -> tuple[str, ...]:
    """Return the uuids of the actions that determined the end of the plan, in the order of starts.

    It is the chain back from the action that ended last: each started when the one before it ended.
    """
    runs = [uuid for uuid in found.intervals if uuid in found.runs]
    path: dict[str, None] = {}
    last = max(runs, key=lambda uuid: found.intervals[uuid].end_s, default=None)
    while last is not None and last not in path:
        path[last] = None
        last = waiting[last].after if last in waiting else None
    return tuple(reversed(path))


class _Waits:
    def __init__(self, plan: ActionPlan, found: Times, limits: RunLimits) -> None:
        self._actions = {a.uuid: a for a in plan.actions}
        self._times, self._held = found, limits.held
        self._holds = Holds(limits.holds)
        self._slight_s = found.span_s * SLIGHT
        starts = (found.intervals[uuid].start_s for uuid in found.runs)
        self._first_start_s = min(starts, default=0.0)
        concurrency = limits.concurrency
        self._workers, self._workerless = concurrency.max_workers, concurrency.workerless
        self._tokens_of = concurrency.tokens_of
        self._gates = Gates(concurrency.limits, self._workers)
        ran = [a for a in plan.actions if a.uuid in found.runs]
        self._all_workers = self._busy(
            (a for a in ran if a.uuid not in self._workerless), self._workers
        )
        holders: defaultdict[str, list[Action]] = defaultdict(list)
        for action in ran:
            for token in dict.fromkeys(concurrency.tokens_of(action)):
                holders[token].append(action)
        self._tokens = {
            token: self._busy(actions, limit)
            for token, actions in holders.items()
            if (limit := self._gates.limit(token)) is not None
        }
        self._tokens |= self._busy_places(ran)
        #: The last end of each tuple of uuids, and the first end that was good, by the id() of the
        #: tuple: many actions share these objects.
        self._lasts: dict[int, LastEnd] = {}
        self._firsts: dict[int, LastEnd] = {}
        self._ends: dict[str, LastEnd] = {}
        for action in plan.actions:
            self._end(action.uuid)

    def _busy(self, actions: Iterable[Action], limit: int) -> BusyTimes:
        times = self._times
        held = [(a.uuid, times.intervals[a.uuid]) for a in actions]
        held += [(uuid, one) for uuid, _ in held for one in times.earlier.get(uuid, ())]
        return BusyTimes(held, limit, self._slight_s)

    def _busy_places(self, ran: Iterable[Action]) -> dict[str, BusyTimes]:
        """Return when places were held: by a member from its first start to its last end."""
        own: dict[HeldPlace, list[Action]] = {}
        for action in ran:
            for place in action.places:
                own.setdefault(place, []).append(action)
        held: defaultdict[str, list[tuple[str, TimeSpan]]] = defaultdict(list)
        for place, actions in own.items():
            intervals = [self._times.intervals[a.uuid] for a in actions]
            last = max(actions, key=lambda a: self._times.intervals[a.uuid].end_s)
            whole = TimeSpan(min(i.start_s for i in intervals), max(i.end_s for i in intervals))
            held[place.token].append((last.uuid, whole))
        return {
            token: BusyTimes(spans, limit, self._slight_s)
            for token, spans in held.items()
            if (limit := self._gates.limit(token)) is not None
        }

    def all(self) -> dict[str, Waiting]:
        return {
            uuid: self._waiting(action)
            for uuid, action in self._actions.items()
            if uuid in self._times.runs
        }

    def _waiting(self, action: Action) -> Waiting:
        start = self._times.intervals[action.uuid].start_s
        earlier = self._times.earlier.get(action.uuid, ())
        first = min([start, *(one.start_s for one in earlier)])
        need = _latest([self._last(action.needs), *map(self._first_well, action.needs_any)])
        order = _latest(
            [self._last(action.parents), *(self._end(t.action) for t in action.triggers)]
        )
        ready = min(max(need.at_s, order.at_s), first)
        until_need = min(need.at_s, first)
        found = [
            Wait(0.0, until_need, Reason.NEED, self._name(need)),
            Wait(until_need, ready, Reason.ORDER, self._name(order)),
        ]
        after = _latest([need, order]).uuid or None
        if first - ready > self._slight_s:
            for begin, end, hold in self._holds.pieces(action, ready, first, self._planned(action)):
                wait, other = self._for_room(action, begin, end, hold)
                found.append(wait)
                after = other or after
        for one, then in zip(earlier, [*(e.start_s for e in earlier[1:]), start], strict=False):
            found.append(Wait(one.end_s, then, Reason.OTHER, "its next attempt"))
        return Waiting(tuple(w for w in found if w.end_s - w.start_s > self._slight_s), after)

    def _planned(self, action: Action) -> float:
        planned = self._times.planned.get(action.uuid)
        return 0.0 if planned is None else planned.end_s - planned.start_s

    def _for_room(
        self, action: Action, ready: float, start: float, hold: Hold | None
    ) -> tuple[Wait, str | None]:
        """Return the wait of an action whose predecessors have ended.

        Also return the uuid of the action whose end freed a token or a worker for it, if any.
        """
        if hold is not None:
            return Wait(ready, start, hold.reason, hold.what), None
        if action.state is ActionState.PENDING:
            for token in action.tokens:
                if token in self._held:
                    return Wait(ready, start, Reason.PLAN, self._held[token]), None
        reached = [
            (self._tokens[t].seconds(ready, start), Reason.LIMIT, t, self._tokens[t])
            for t in dict.fromkeys((*(p.token for p in action.places), *self._tokens_of(action)))
            if t in self._tokens
        ]
        if action.uuid not in self._workerless:
            busy = self._all_workers
            reached.append((busy.seconds(ready, start), Reason.WORKER, "", busy))
        # Of equal ones, max() returns the first: a token rather than a worker.
        taken, reason, token, most = max(reached, key=lambda r: r[0], default=_NO_LIMIT)
        if most is None or taken < (start - ready) / 2:
            return Wait(ready, start, Reason.OTHER, self._other(start)), None
        last = most.last_ended(start)
        what = f"all {self._workers} workers"
        if reason is Reason.LIMIT:
            what = f"{token} (at most {self._gates.limit(token)} at once)"
        return Wait(ready, start, reason, what), None if last == action.uuid else last

    def _other(self, start: float) -> str:
        """Return the text about a wait without a known reason."""
        if start <= self._first_start_s + self._slight_s:
            return _FIRST_START
        return _NOTHING_KNOWN

    def _name(self, end: LastEnd) -> str:
        return self._actions[end.uuid].label if end.uuid else ""

    def _end(self, uuid: str) -> LastEnd:
        """Return the end of an action; for a join, the last end of the actions before it."""
        if uuid not in self._ends:
            action = self._actions[uuid]
            if action.action_type == JOIN:
                groups = [action.parents, action.needs, *action.needs_any]
                self._ends[uuid] = _latest(map(self._last, groups))
            else:
                self._ends[uuid] = LastEnd(self._times.intervals[uuid].end_s, uuid)
        return self._ends[uuid]

    def _last(self, uuids: tuple[str, ...]) -> LastEnd:
        if id(uuids) not in self._lasts:
            self._lasts[id(uuids)] = _latest(map(self._end, uuids))
        return self._lasts[id(uuids)]

    def _first_well(self, group: tuple[str, ...]) -> LastEnd:
        """Return the first good end of a group of which one must end well; else its last end."""
        if id(group) not in self._firsts:
            well = [self._end(u) for u in group if self._actions[u].state in WELL | OPEN]
            self._firsts[id(group)] = min(well, key=_at, default=self._last(group))
        return self._firsts[id(group)]


def _at(end: LastEnd) -> float:
    return end.at_s


def _latest(ends: Iterable[LastEnd]) -> LastEnd:
    """Return the last end; of equal ones, the first in order, whatever its uuid."""
    return max(ends, key=_at, default=_BEGINNING)


class BusyTimes:
    """The times at which at least ``limit`` of the intervals ``held`` were open at once.

    ``held`` are pairs of a name and an interval. A gap of at most ``slight_s`` seconds between two
    such times is part of them, because in a run, the next action starts a moment after the last one
    ended. The constructor takes O(n log n), each method O(log n).

    >>> busy = BusyTimes([("a", TimeSpan(0, 2)), ("b", TimeSpan(1, 4)), ("c", TimeSpan(2, 3))], 2)
    >>> busy.seconds(0, 9), busy.seconds(2, 2.5), busy.last_ended(3), busy.last_ended(1)
    (2.0, 0.5, 'c', None)
    """

    def __init__(
        self, held: Iterable[tuple[str, TimeSpan]], limit: int, slight_s: float = 0.0
    ) -> None:
        self._names: list[str] = []
        #: End, length and position in the names of each interval.
        self._ends: list[tuple[float, float, int]] = []
        moments: list[tuple[float, int]] = []
        for name, (start_s, end_s) in held:
            moments += [(start_s, 1), (end_s, -1)]
            self._ends.append((end_s, end_s - start_s, -len(self._names)))
            self._names.append(name)
        self._ends.sort()
        self._from: list[float] = []
        self._to: list[float] = []
        count = 0
        # At one moment, ends come before starts.
        for at, change in sorted(moments):
            count += change
            if change > 0 and count == limit:
                if self._to and at - self._to[-1] <= slight_s:
                    self._to.pop()
                else:
                    self._from.append(at)
            elif change < 0 and count == limit - 1:
                self._to.append(at)
        self._sums = [0.0]
        for start_s, end_s in zip(self._from, self._to, strict=True):
            self._sums.append(self._sums[-1] + end_s - start_s)

    def seconds(self, start_s: float, end_s: float) -> float:
        """Return for how many seconds between two times the limit was reached."""
        return max(0.0, self._until(end_s) - self._until(start_s))

    def _until(self, at: float) -> float:
        found = bisect_right(self._from, at)
        if not found:
            return 0.0
        return self._sums[found - 1] + min(at, self._to[found - 1]) - self._from[found - 1]

    def last_ended(self, at: float) -> str | None:
        """Return the name of the interval that ended last, but not after ``at``; None if none has.

        Of several that ended at the same time, the longest is chosen.
        """
        found = bisect_right(self._ends, at, key=lambda end: end[0])
        return self._names[-self._ends[found - 1][2]] if found else None


_NO_LIMIT: tuple[float, Reason, str, BusyTimes | None] = (0.0, Reason.OTHER, "", None)
