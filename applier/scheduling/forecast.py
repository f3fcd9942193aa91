"""The forecast: the scheduler, driven by a simulated clock.

It is the very scheduler that the engine drives, so what is predicted and what runs can differ in
durations and failures only. Every action is taken to end well, and to have changed something.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from applier.contracts import Report
from applier.scheduling import order
from applier.scheduling.gates import Gates
from applier.scheduling.scheduler import Scheduler
from applier.scheduling.verdict import ends
from planner.model import JOIN, Action
from planner.states import OPEN, ActionState, Outcome

#: How many forward-backward rounds are tried for a shorter makespan.
ROUNDS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Timeline:
    """When what starts and ends, in seconds from the beginning, by uuid, in order of starts."""

    start_s: Mapping[str, float]
    end_s: Mapping[str, float]
    makespan_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Forecast:
    """A timeline, what decides its length, and the ranks that give it.

    ``lower_bound_s`` is what no order can beat. ``critical`` is a chain of actions, each of which
    starts when the one before it ends, from the beginning to the makespan; ``slack_s`` is by how
    much an action may be late without moving the end, in this schedule.
    """

    timeline: Timeline
    lower_bound_s: float
    slack_s: Mapping[str, float]
    critical: tuple[str, ...]
    ranks: Mapping[str, int]


class Course:
    """What is left of a plan, ready to be simulated any number of times. Linear to make."""

    def __init__(
        self,
        actions: Sequence[Action],
        durations: Mapping[str, float],
        limits: Mapping[str, int],
        max_workers: int,
    ) -> None:
        self.actions = actions
        self.ended = ends(actions)
        self.left = [a for a in actions if a.state in OPEN and a.action_type != JOIN]
        self.durations, self.limits, self.max_workers = durations, limits, max_workers
        self.after = order.links(actions, order.passed(actions, self.ended))

    def run(self, ranks: Mapping[str, int]) -> Timeline:
        """Simulate with these ranks, lowest first."""
        scheduler = Scheduler(
            self.actions,
            self.after,
            limits=self.limits,
            max_workers=self.max_workers,
            ranks=ranks,
            ended=self.ended,
        )
        return _drive(scheduler, self.durations)

    def run_backwards(self, ranks: Mapping[str, int]) -> Timeline:
        """Simulate from the ends to the beginnings; times count from the end."""
        before: dict[str, list[str]] = {name: [] for name in self.after}
        for name, later in self.after.items():
            for follower in later:
                before[follower].append(name)
        bare = [
            Action(uuid=a.uuid, action_type=a.action_type, tokens=a.tokens) for a in self.actions
        ]
        scheduler = Scheduler(
            bare,
            before,
            limits=self.limits,
            max_workers=self.max_workers,
            ranks=ranks,
            ended=self.ended,
        )
        return _drive(scheduler, self.durations)

    def remaining(self) -> dict[str, float]:
        """Give for each name how long the longest path from its start to the end is."""
        longest: dict[str, float] = {}
        for name in reversed(_in_order(self.after)):
            behind = max((longest[n] for n in self.after[name]), default=0.0)
            longest[name] = self.durations.get(name, 0.0) + behind
        return longest

    def ranked(self, priorities: Mapping[str, float]) -> dict[str, int]:
        """Turn priorities, highest first, into unique ranks; equal ones go by place in the plan."""
        first = sorted(self.actions, key=lambda a: -priorities.get(a.uuid, 0.0))
        return {action.uuid: rank for rank, action in enumerate(first)}

    def lower_bound(self, remaining: Mapping[str, float]) -> float:
        """Give what no order can beat: the longest path, and the work for each limit by itself."""
        gates = Gates(self.limits, self.max_workers)
        work: defaultdict[str, float] = defaultdict(float)
        for action in self.left:
            for token in action.tokens:
                if gates.limit(token) is not None:
                    work[token] += self.durations[action.uuid]
        bounds = [seconds / (gates.limit(token) or 1) for token, seconds in work.items()]
        everything = sum(self.durations[a.uuid] for a in self.left)
        return max([*remaining.values(), *bounds, everything / self.max_workers], default=0.0)


def forecast(
    actions: Sequence[Action],
    durations: Mapping[str, float],
    *,
    limits: Mapping[str, int],
    max_workers: int,
    rounds: int = ROUNDS,
) -> Forecast:
    """Say when everything happens, with the best ranks that were found.

    Longest remaining path first; then, ``rounds`` times, scheduled backwards from the ends and
    forwards again in that order; the best of all is kept, so it is never longer than the first.
    ``durations`` are seconds by uuid. Each round costs two simulations.
    """
    course = Course(actions, durations, limits, max_workers)
    remaining = course.remaining()
    ranks = course.ranked(remaining)
    best = course.run(ranks)
    bound = course.lower_bound(remaining)
    current = best
    for _ in range(rounds):
        if best.makespan_s <= bound:
            break
        backwards = course.run_backwards(course.ranked(current.end_s))
        tried = course.ranked(backwards.end_s)
        current = course.run(tried)
        if current.makespan_s < best.makespan_s:
            best, ranks = current, tried
    slack = slacks(course, best)
    return Forecast(
        timeline=best,
        lower_bound_s=bound,
        slack_s=slack,
        critical=critical_path(course, best),
        ranks=ranks,
    )


def _drive(scheduler: Scheduler, durations: Mapping[str, float]) -> Timeline:
    clock: list[tuple[float, int, str]] = []
    start: dict[str, float] = {}
    end: dict[str, float] = {}
    now, turn = 0.0, scheduler.begin()
    while True:
        for uuid in turn.starts:
            start[uuid], end[uuid] = now, now + durations[uuid]
            heapq.heappush(clock, (end[uuid], len(start), uuid))
        if not clock:
            return Timeline(start_s=start, end_s=end, makespan_s=now)
        now = clock[0][0]
        reports = []
        while clock and clock[0][0] == now:
            reports.append(_done(heapq.heappop(clock)[2]))
        turn = scheduler.turn(reports)


def _done(uuid: str) -> Report:
    return Report(
        uuid=uuid,
        old=ActionState.ONGOING,
        state=ActionState.SUCCEEDED,
        outcome=Outcome.CHANGED,
    )


def _in_order(after: Mapping[str, Sequence[str]]) -> list[str]:
    left = dict.fromkeys(after, 0)
    for names in after.values():
        for name in names:
            left[name] += 1
    found = [name for name, n in left.items() if not n]
    for name in found:  # it grows while it is read
        for follower in after[name]:
            left[follower] -= 1
            if not left[follower]:
                found.append(follower)
    return found


def _released(course: Course, timeline: Timeline) -> dict[str, list[str]]:
    """Give for each action those whose end let it start: what it held them up for, or waited for.

    Links first; where none of them ended just then, whoever gave back a token that has a limit, and
    where nobody did, whoever gave back a worker.
    """
    ended_at: defaultdict[float, list[Action]] = defaultdict(list)
    for action in course.left:
        if action.uuid in timeline.end_s:
            ended_at[timeline.end_s[action.uuid]].append(action)
    gates = Gates(course.limits, course.max_workers)
    before = _before(course)
    found: dict[str, list[str]] = {}
    for action in course.left:
        at = timeline.start_s.get(action.uuid)
        if not at:
            continue
        then = ended_at[at]
        links = [a.uuid for a in then if a.uuid in before[action.uuid]]
        limited = {t for t in action.tokens if gates.limit(t) is not None}
        tokens = [a.uuid for a in then if not limited.isdisjoint(a.tokens)]
        found[action.uuid] = links or tokens or [a.uuid for a in then]
    return found


def _before(course: Course) -> Mapping[str, frozenset[str]]:
    """Give for each action everything right before it, plan's own joins looked through."""
    joins = {a.uuid: a for a in course.actions if a.action_type == JOIN}
    shared: dict[int, frozenset[str]] = {}

    def through(uuids: tuple[str, ...]) -> frozenset[str]:
        found = shared.get(id(uuids))
        if found is None:
            plain = {u for u in uuids if u not in joins}
            for join in (joins[u] for u in uuids if u in joins):
                plain |= through(join.parents) | through(join.needs)
            found = shared[id(uuids)] = frozenset(plain)
        return found

    return {
        a.uuid: frozenset(
            {t.action for t in a.triggers}.union(
                through(a.parents), through(a.needs), *map(through, a.needs_any)
            )
        )
        for a in course.left
    }


def critical_path(course: Course, timeline: Timeline) -> tuple[str, ...]:
    """Give a chain of actions without a gap that ends with the plan: what its length hangs on."""
    if not timeline.end_s:
        return ()
    released = _released(course, timeline)
    last = max(timeline.end_s, key=lambda uuid: timeline.end_s[uuid])
    path, seen = [last], {last}
    while True:
        earlier = [u for u in released.get(path[-1], ()) if u not in seen]
        if not earlier:
            return tuple(reversed(path))
        longest = max(earlier, key=lambda uuid: timeline.end_s[uuid] - timeline.start_s[uuid])
        path.append(longest)
        seen.add(longest)


def slacks(course: Course, timeline: Timeline) -> dict[str, float]:
    """Give for each action by how much it may be late without moving the end of the schedule.

    Whoever starts when it ends, by a link, a token or a worker, moves with it.
    """
    after: defaultdict[str, list[str]] = defaultdict(list)
    for uuid, earlier in _released(course, timeline).items():
        for other in earlier:
            after[other].append(uuid)
    for uuid, sources in _before(course).items():
        if uuid in timeline.start_s:
            for other in sources:
                after[other].append(uuid)
    slack: dict[str, float] = {}
    for uuid in sorted(timeline.end_s, key=lambda u: (-timeline.end_s[u], -timeline.start_s[u])):
        latest = min(
            (timeline.start_s[other] + slack[other] for other in after[uuid] if other in slack),
            default=timeline.makespan_s,
        )
        slack[uuid] = max(0.0, latest - timeline.end_s[uuid])
    return slack


def durations_of(
    actions: Iterable[Action], otherwise: Mapping[str, float], default_s: float = 1.0
) -> dict[str, float]:
    """Give the seconds that each action is taken to need: its estimate, else that of its type."""
    return {
        a.uuid: float(
            a.estimate_s if a.estimate_s is not None else otherwise.get(a.action_type, default_s)
        )
        for a in actions
    }
