# SPDX-License-Identifier: Apache-2.0
"""Drives the scheduler through one run of a plan, with a simulated clock."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from applier.contracts import Report
from applier.rehearsal.attempts import AttemptEnd
from applier.rehearsal.homes import HomesOfPlan
from applier.run.outcome import fold
from applier.scheduling.course import Course
from applier.scheduling.decisions import Halt, HaltReason
from applier.scheduling.holding import Breaker
from applier.scheduling.scheduler import Scheduler
from applier.scheduling.verdict import FailureRules, OnFailure
from planner.model import JOIN, Action
from planner.states import WELL, ActionState, PlanState

#: The guards that stop a run.
ON_FAILURE, TOLERANCES, BUDGET = "on_failure=pause", "tolerances", "failure_budget"


class Rehearsed(NamedTuple):
    """One rehearsed run.

    ``ends`` has the state of each action in the end, by uuid: PENDING if it did not start, ONGOING
    if it hangs for ever. Then ``state`` is None and ``makespan_s`` infinite. ``guard`` is the guard
    that kept more actions from starting, or None. ``homeless_most`` instances were without a home
    at one time, and ``homeless_left`` in the end.
    """

    state: PlanState | None
    ends: Mapping[str, ActionState]
    makespan_s: float
    guard: str | None
    homeless_most: int
    homeless_left: int


#: Returns the end of an attempt of an action; attempts count from 1.
EndOf = Callable[[Action, int], AttemptEnd]
#: Returns the breaker that stops one run after failures; the argument is a clock in seconds.
MakeBudget = Callable[[Callable[[], float]], Breaker]


class Rehearsal:
    """A plan, prepared for any number of runs with the same rules."""

    def __init__(
        self,
        course: Course,
        ranks: Mapping[str, int],
        rules: FailureRules,
        homes: HomesOfPlan,
        make_budget: MakeBudget | None = None,
    ) -> None:
        self._make_budget = make_budget
        self._course, self._ranks, self._rules, self._homes = course, ranks, rules, homes
        self._actions = {a.uuid: a for a in course.actions}
        self._joins = frozenset(a.uuid for a in course.actions if a.action_type == JOIN)

    def run(self, end_of: EndOf) -> Rehearsed:
        """Simulate one run, whose attempts end as ``end_of`` returns; return its results."""
        course = self._course
        concurrency = course.concurrency
        now, number = 0.0, 0
        rules = self._rules
        if self._make_budget is not None:
            rules = replace(rules, breaker=self._make_budget(lambda: now))
        scheduler = Scheduler(course.actions, course.after, concurrency, rules, self._ranks)
        clock: list[tuple[float, int, str, AttemptEnd | None]] = []
        states = {a.uuid: a.state for a in course.actions}
        attempts = Counter[str]()
        homes = self._homes.at_start()
        decisions = scheduler.begin()
        while True:
            for report in decisions.ended:
                states[report.uuid] = report.state
            for uuid, delay in decisions.delays:
                states[uuid], number = ActionState.PENDING, number + 1
                heapq.heappush(clock, (now + delay, number, uuid, None))
            for uuid in decisions.starts:
                states[uuid], number = ActionState.ONGOING, number + 1
                attempts[uuid] += 1
                end = end_of(self._actions[uuid], attempts[uuid])
                heapq.heappush(clock, (now + end.seconds, number, uuid, end))
            if scheduler.done or not clock or clock[0][0] == math.inf:
                break
            now = clock[0][0]
            reports, elapsed = [], []
            while clock and clock[0][0] == now:
                _, _, uuid, ended = heapq.heappop(clock)
                if ended is None:
                    elapsed.append(uuid)
                    continue
                states[uuid] = ended.state
                reports.append(_report(uuid, ended))
                if ended.state in WELL:
                    homes.note(self._actions[uuid])
            decisions = scheduler.decide(reports, elapsed=elapsed)
        return self._result(scheduler, states, now, homes.most, len(homes.homeless))

    def _result(
        self,
        scheduler: Scheduler,
        states: dict[str, ActionState],
        now: float,
        homeless_most: int,
        homeless_left: int,
    ) -> Rehearsed:
        state: PlanState | None = None
        if not scheduler.running:
            joins = [states[uuid] for uuid in self._joins]
            left = [found for uuid, found in states.items() if uuid not in self._joins]
            state, _ = fold(left, scheduler.halt, joins=joins)
        makespan_s = math.inf if scheduler.running else now
        guard = self._guard(scheduler.halt)
        return Rehearsed(state, states, makespan_s, guard, homeless_most, homeless_left)

    def _guard(self, halt: Halt | None) -> str | None:
        if halt is None:
            return None
        if halt.stopped is HaltReason.EXCEEDED:
            return TOLERANCES
        # With on_failure=pause, the first failure pauses: no budget is smaller.
        return ON_FAILURE if self._rules.on_failure is OnFailure.PAUSE else BUDGET


def _report(uuid: str, end: AttemptEnd) -> Report:
    return Report(uuid=uuid, old=ActionState.ONGOING, state=end.state, outcome=end.outcome)
