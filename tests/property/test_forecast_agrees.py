# SPDX-License-Identifier: Apache-2.0
"""Forecast and engine: the same order of starts, and by a simulated clock the same times.

The engine is the real one, with its recorder and its store; only its workers and its events are
simulated, so that an action takes exactly what it is said to take.
"""

from __future__ import annotations

import heapq
import queue
import random
from contextlib import closing
from datetime import UTC, datetime

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from random_plans import random_plan
from temporary_store import TemporaryStore
from trials import CLAIMANT, changed, plugin

from applier.actions.markers import Pause
from applier.engines import attempts_in_progress, linear
from applier.engines.engine import PlanRun
from applier.engines.environment import ActionEnvironment
from applier.engines.recorder import Recorder
from applier.engines.taskflow_engine import TaskFlowEngine
from applier.engines.tasks import task_maker, workerless
from applier.scheduling.concurrency import Concurrency
from applier.scheduling.course import Ranking
from applier.scheduling.forecast import forecast
from planner.plan.model import JOIN, Action, ActionPlan

NOW = datetime(2026, 11, 21, tzinfo=UTC)
PLUGINS = {"nop": plugin(changed), "pause": Pause}


class Simulation:
    """A clock, an event queue and workers in one: time passes when the engine waits."""

    def __init__(self, durations) -> None:
        self.now, self.durations = 0.0, durations
        self.starts, self.ends = {}, {}
        self._coming, self._count = [], 0

    def clock(self):
        return self.now

    # The workers

    def submit(self, execute):
        report = execute()
        self._count += 1
        end = self.now + self.durations[report.uuid]
        heapq.heappush(self._coming, (end, self._count, report))

    # The queue

    def put(self, _event):
        pass

    def empty(self):
        return not self._coming or self._coming[0][0] > self.now

    def get(self, timeout=None):
        if timeout is not None and (not self._coming or self._coming[0][0] > self.now + timeout):
            self.now += timeout
            raise queue.Empty
        self.now = max(self.now, self._coming[0][0])
        return heapq.heappop(self._coming)[2]


class Clock:
    """A listener that notes when what starts and ends."""

    def __init__(self, simulation) -> None:
        self.simulation, self.joins = simulation, set()

    def on_reports(self, reports):
        for report in reports:
            times = self.simulation.starts if report.state == "ONGOING" else self.simulation.ends
            if report.uuid not in self.joins:
                times[report.uuid] = self.simulation.now

    def on_plan(self, state, message):
        pass


def with_pauses(plan, seed):
    """Let some of the actions be pauses."""
    chance, actions = random.Random(seed), []
    for action in plan.actions:
        value = action.to_dict()
        if action.action_type == "nop" and chance.random() < 0.2:
            value |= {"action_type": "pause", "input_parameters": {"seconds": chance.randint(0, 9)}}
        actions.append(Action.from_dict(value))
    return ActionPlan.from_dict({**plan.to_dict(), "actions": [a.to_dict() for a in actions]})


def durations_of(plan, seed):
    chance = random.Random(seed)
    return {
        a.uuid: float(a.input_parameters.get("seconds", chance.randint(1, 9)))
        for a in plan.actions
        if a.action_type != JOIN
    }


def engine_times(plan, durations, workers, ranks):
    """Run the plan under a simulated clock; return the starts and ends of its actions."""
    simulation = Simulation(durations)
    clock = Clock(simulation)
    clock.joins = {a.uuid for a in plan.actions if a.action_type == JOIN}
    environment = ActionEnvironment(plugins=PLUGINS, cloud=lambda: None)
    with closing(TemporaryStore()) as store, pytest.MonkeyPatch.context() as patch:
        store.save_plan(plan)
        claim = store.claim_plan(plan.uuid, CLAIMANT, now=NOW)
        saved = store.load_plan(plan.uuid)
        patch.setattr(
            attempts_in_progress.ThreadPool, "grow", lambda _pool, _number, _extra=0: None
        )
        patch.setattr(
            attempts_in_progress.ThreadPool, "submit", lambda _pool, work: simulation.submit(work)
        )
        patch.setattr(linear.time, "monotonic", simulation.clock)
        # A forecast knows no commits, and no time for which one is put off.
        patch.setattr(linear, "_TOGETHER_S", 0.0)
        TaskFlowEngine(max_workers=workers).run(
            PlanRun(
                plan=plan,
                recorder=Recorder(store, saved, claim, clock=lambda: NOW, listeners=[clock]),
                events=simulation,
                make_task=task_maker(plan.actions, environment),
                ranks=ranks,
                concurrency=Concurrency(
                    limits=plan.limits,
                    max_workers=workers,
                    workerless=workerless(plan.actions, PLUGINS),
                ),
            )
        )
    return simulation.starts, simulation.ends


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
@settings(max_examples=examples(150))
@given(st.integers(0, 1_000_000), st.booleans())
def test_what_was_predicted_is_what_runs(workers, seed, pauses):
    plan = random_plan(seed)
    if pauses:
        plan = with_pauses(plan, seed)
    durations = durations_of(plan, seed)
    concurrency = Concurrency(
        limits=plan.limits, max_workers=workers, workerless=workerless(plan.actions, PLUGINS)
    )
    predicted = forecast(plan.actions, durations, concurrency)
    ranks = Ranking(plan.actions, durations, concurrency).ranks
    assert ranks == predicted.ranks, "whoever runs it has the ranks of the forecast"
    starts, ends = engine_times(plan, durations, workers, ranks)
    assert list(starts) == list(predicted.timeline.start_s), "the same order of starts"
    assert starts == predicted.timeline.start_s, "the same times"
    ran = {uuid: end for uuid, end in ends.items() if uuid in starts}
    assert ran == predicted.timeline.end_s
