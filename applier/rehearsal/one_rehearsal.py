# SPDX-License-Identifier: Apache-2.0
"""Drives the scheduler through one run of a plan, with a simulated clock.

It also counts the instances that have no home meanwhile.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from applier.contracts import Report
from applier.rehearsal.faults import AttemptEnd
from applier.scheduling.course import Course
from applier.scheduling.decisions import Breaker, Halt, HaltReason
from applier.scheduling.failures import FailureRules, OnFailure
from applier.scheduling.final_state import fold
from applier.scheduling.scheduler import Scheduler
from planner.plan.model import JOIN, Action, Effect, Touch
from planner.plan.states import WELL, ActionState, PlanState

#: Action types after which an instance does not run, and those after which it runs again.
OFF = frozenset({"stop", "shelve", "delete_instance"})
ON = frozenset({"start", "unshelve", "create_instance"})
_SWITCHES = {Effect.TAKES_DOWN: True, Effect.BRINGS_UP: False}


@dataclass(kw_only=True, slots=True)
class Homes:
    """Where the instances of one run are, and which hosts are down.

    An instance has no home while the plan has stopped, shelved or deleted it, or has taken down the
    host on which it is. The host of an instance is known only if an action of the plan moves it.
    """

    effects: Mapping[str, Sequence[Touch]]
    host_of: dict[str, str | None]
    on_host: dict[str, set[str]] = field(default_factory=dict)
    off: set[str] = field(default_factory=set)
    down: set[str] = field(default_factory=set)
    homeless: set[str] = field(default_factory=set)
    most: int = 0

    def note(self, action: Action) -> None:
        """Update instances and hosts after an action has succeeded."""
        touches = self.effects.get(action.uuid, ())
        for resource, effect in touches:
            if effect in _SWITCHES:
                (self.down.add if _SWITCHES[effect] else self.down.discard)(resource)
                self._judge(self.on_host.get(resource, ()))
        instances = [t.resource for t in touches if t.resource.startswith("instance:")]
        if action.action_type in OFF:
            self.off.update(instances)
        elif action.action_type in ON:
            self.off.difference_update(instances)
        elif any(t.effect is Effect.LEAVES for t in touches):
            entered = next((t.resource for t in touches if t.effect is Effect.ENTERS), None)
            for instance in instances:
                self._move(instance, entered)
        self._judge(instances)
        self.most = max(self.most, len(self.homeless))

    def _move(self, instance: str, host: str | None) -> None:
        old = self.host_of.get(instance)
        if old is not None:
            self.on_host[old].discard(instance)
        self.host_of[instance] = host
        if host is not None:
            self.on_host.setdefault(host, set()).add(instance)

    def _judge(self, instances: Iterable[str]) -> None:
        for instance in instances:
            if instance in self.off or self.host_of.get(instance) in self.down:
                self.homeless.add(instance)
            else:
                self.homeless.discard(instance)


class HomesOfPlan:
    """Creates a :class:`Homes` for each run. ``touches`` are those of each action by uuid."""

    def __init__(self, actions: Sequence[Action], touches: Mapping[str, Sequence[Touch]]) -> None:
        self._effects = {uuid: found for uuid, found in touches.items() if _counts(found)}
        self._first: dict[str, str | None] = {}
        for action in actions:
            found = touches.get(action.uuid, ())
            left = next((t.resource for t in found if t.effect is Effect.LEAVES), None)
            for touch in found:
                if left is not None and touch.resource.startswith("instance:"):
                    self._first.setdefault(touch.resource, left)

    def at_start(self) -> Homes:
        """Return the homes before any action."""
        homes = Homes(effects=self._effects, host_of=dict(self._first))
        for instance, host in self._first.items():
            if host is not None:
                homes.on_host.setdefault(host, set()).add(instance)
        return homes


def _counts(touches: Sequence[Touch]) -> bool:
    """Return whether an action with these touches may change whether an instance has a home."""
    return any(t.resource.startswith("instance:") or t.effect in _SWITCHES for t in touches)


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
