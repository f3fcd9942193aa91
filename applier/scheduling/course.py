# SPDX-License-Identifier: Apache-2.0
"""Simulates a run of a plan, and ranks its actions: drives the scheduler with a simulated clock.

Every action is assumed to take its expected time, to succeed and to change something.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from applier.contracts import Report
from applier.scheduling import waiting
from applier.scheduling.concurrency import Concurrency
from applier.scheduling.decisions import Decisions
from applier.scheduling.gates import Gates
from applier.scheduling.scheduler import Scheduler
from applier.scheduling.verdict import ends
from planner.plan.model import JOIN, Action
from planner.plan.place_rules import HeldPlace, PlaceRule
from planner.plan.states import OPEN, ActionState, Outcome

#: The default number of forward-backward rounds that look for a shorter makespan.
ROUNDS = 3
#: For plans with more actions than this, no rounds are made: they would take too long.
MANY = 5000


@dataclass(frozen=True, kw_only=True, slots=True)
class Timeline:
    """Start and end of each action by uuid, in seconds from the beginning, in order of starts."""

    start_s: Mapping[str, float]
    end_s: Mapping[str, float]
    makespan_s: float


class Course:
    """The open actions of a plan, prepared for any number of simulations.

    An action that runs already is simulated from its start. Making a course takes linear time.
    """

    def __init__(
        self,
        actions: Sequence[Action],
        durations: Mapping[str, float],
        concurrency: Concurrency,
    ) -> None:
        self.actions = [
            replace(a, state=ActionState.PENDING) if a.state is ActionState.ONGOING else a
            for a in actions
        ]
        self.left = [a for a in self.actions if a.state in OPEN and a.action_type != JOIN]
        self.durations, self.concurrency = durations, concurrency
        self.after = waiting.links(self.actions, waiting.completed(actions, ends(actions)))

    def run(self, ranks: Mapping[str, int]) -> Timeline:
        """Simulate a run in which, of several possible actions, the lowest rank starts first."""
        return self._simulated(self.actions, self.after, ranks)

    def run_backwards(self, ranks: Mapping[str, int]) -> Timeline:
        """Simulate with all links reversed; the times are seconds before the end."""
        bare = [
            Action(
                uuid=a.uuid,
                action_type=a.action_type,
                tokens=a.tokens,
                places=a.places,
                state=a.state,
                outcome=a.outcome,
            )
            for a in self.actions
        ]
        before: dict[str, list[str]] = {name: [] for name in self.after}
        for name, later in self.after.items():
            for follower in later:
                before[follower].append(name)
        return self._simulated(bare, before, ranks)

    def _simulated(
        self,
        actions: Sequence[Action],
        after: Mapping[str, Sequence[str]],
        ranks: Mapping[str, int],
    ) -> Timeline:
        scheduler = Scheduler(actions, after, self.concurrency, ranks=ranks)
        return drive(scheduler, scheduler.begin(), self.durations)

    def remaining(self, durations: Mapping[str, float]) -> dict[str, float]:
        """Return, for each action and join, the seconds of the longest path from its start."""
        countdown = waiting.Countdown(self.after, {})
        ordered = countdown.ready()
        for name in ordered:  # which grows meanwhile
            ordered += countdown.done(name)
        longest: dict[str, float] = {}
        for name in reversed(ordered):
            behind = max((longest[n] for n in self.after[name]), default=0.0)
            longest[name] = durations.get(name, 0.0) + behind
        return longest

    def ranked(self, priorities: Mapping[str, float]) -> dict[str, int]:
        """Turn priorities into unique ranks, 0 for the highest; equal ones keep plan order."""
        first = sorted(self.actions, key=lambda a: -priorities.get(a.uuid, 0.0))
        return {action.uuid: rank for rank, action in enumerate(first)}

    def gates(self) -> Gates:
        """Return new gates with the limits of this course."""
        return Gates(self.concurrency.limits, self.concurrency.max_workers)

    def lower_bound(self, timeline: Timeline) -> float:
        """Return a lower bound of the makespan: the longest path, or the work under one limit.

        Only the actions that run in ``timeline`` count. It may be any simulation of this course,
        because the order of the starts does not change which actions run.
        """
        ran = {uuid: self.durations[uuid] for uuid in timeline.start_s}
        gates = self.gates()
        work: defaultdict[tuple[str, int], float] = defaultdict(float)
        for action in self.left:
            for token in self.concurrency.tokens_of(action):
                limit = gates.limit(token)
                if action.uuid in ran and limit is not None:
                    work[token, limit] += ran[action.uuid]
        for (token, _), seconds in self._held_s(ran).items():
            limit = gates.limit(token)
            if limit is not None:
                widest = max([limit, *(n for _, n in self._rule(token).widens)])
                work[token, widest] += seconds
        bounds = [seconds / limit for (_, limit), seconds in work.items()]
        workerless, max_workers = self.concurrency.workerless, self.concurrency.max_workers
        everything = sum(seconds for uuid, seconds in ran.items() if uuid not in workerless)
        return max([*self.remaining(ran).values(), *bounds, everything / max_workers])

    def _rule(self, token: str) -> PlaceRule:
        return self.concurrency.places.get(token, PlaceRule())

    def _held_s(self, ran: Mapping[str, float]) -> dict[HeldPlace, float]:
        """Return how long each member holds its place at least: its longest path of own actions."""
        longest: dict[HeldPlace, float] = defaultdict(float)
        ends: dict[tuple[str, HeldPlace], float] = {}
        for action in self.left:
            for place in action.places:
                if action.uuid in ran:
                    before = max((ends.get((u, place), 0.0) for u in action.before()), default=0.0)
                    end = ends[action.uuid, place] = before + ran[action.uuid]
                    longest[place] = max(longest[place], end)
        return longest


def drive(
    scheduler: Scheduler,
    decisions: Decisions,
    durations: Mapping[str, float],
    tell: Callable[[float], None] = lambda _: None,
) -> Timeline:
    """Simulate from the last decisions of a scheduler until no action runs.

    ``durations`` are seconds by uuid. ``tell`` is called with the time before each next decision.
    """
    clock: list[tuple[float, int, str]] = []
    start: dict[str, float] = {}
    end: dict[str, float] = {}
    now = 0.0
    while True:
        for uuid in decisions.starts:
            start[uuid], end[uuid] = now, now + durations[uuid]
            heapq.heappush(clock, (end[uuid], len(start), uuid))
        if not clock:
            return Timeline(start_s=start, end_s=end, makespan_s=now)
        now = clock[0][0]
        reports = []
        while clock and clock[0][0] == now:
            reports.append(_done(heapq.heappop(clock)[2]))
        tell(now)
        decisions = scheduler.decide(reports)


def _done(uuid: str) -> Report:
    return Report(
        uuid=uuid,
        old=ActionState.ONGOING,
        state=ActionState.SUCCEEDED,
        outcome=Outcome.CHANGED,
    )


class Ranking:
    """The best ranks that were found for the actions of a plan, and the timeline of a run by them.

    The first simulation gives priority to the longest remaining path. Each of the ``rounds``
    simulates the plan backwards, and then forwards with the resulting order. The shortest timeline
    of all counts. ``durations`` are seconds by uuid. A round takes two simulations; plans with more
    than :data:`MANY` actions have none: then nothing is simulated until the timeline is read.
    """

    def __init__(
        self,
        actions: Sequence[Action],
        durations: Mapping[str, float],
        concurrency: Concurrency,
        *,
        rounds: int = ROUNDS,
    ) -> None:
        self.course = course = Course(actions, durations, concurrency)
        #: By uuid, 0 for the first.
        self.ranks: Mapping[str, int] = course.ranked(course.remaining(durations))
        self._timeline: Timeline | None = None
        if rounds and len(course.actions) <= MANY:
            self._improve(rounds)

    @property
    def timeline(self) -> Timeline:
        """The timeline of a run with these ranks."""
        self._timeline = self._timeline or self.course.run(self.ranks)
        return self._timeline

    def _improve(self, rounds: int) -> None:
        course, best = self.course, self.timeline
        current, bound = best, course.lower_bound(best)
        for _ in range(rounds):
            if best.makespan_s <= bound:
                break
            backwards = course.run_backwards(course.ranked(current.end_s))
            tried = course.ranked(backwards.end_s)
            current = course.run(tried)
            if current.makespan_s < best.makespan_s:
                best, self.ranks = current, tried
        self._timeline = best
