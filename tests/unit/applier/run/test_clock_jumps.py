# SPDX-License-Identifier: Apache-2.0
"""The clock of the host jumps while plans run: by hours, by years, forwards and back."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from random_plans import carry_out, expected_ends, random_fate, random_plan
from trials import Trial

from applier.engines.taskflow_engine import TaskFlowEngine
from applier.errors import ActionFailed
from applier.scheduling.failures import TypePolicy
from applier.scheduling.verdict import ActionEnd
from planner.plan.model import JOIN
from planner.plan.states import PlanState

JUMPS = (
    timedelta(),
    timedelta(hours=1),
    timedelta(hours=-1),
    timedelta(days=3000),
    timedelta(days=-3000),
)


class JumpingClock:
    """Another time each time it is asked."""

    def __init__(self, seed: int) -> None:
        self._chance, self.jumps = random.Random(seed), 0

    def __call__(self) -> datetime:
        self.jumps += 1
        return datetime.now(UTC) + self._chance.choice(JUMPS)


@pytest.mark.parametrize("seed", range(4))
def test_a_plan_runs_as_if_the_clock_stood(store, seed):
    plan = replace(random_plan(seed, 80), state=PlanState.PENDING)
    actions = tuple(
        a if a.action_type == JOIN else replace(a, action_type="nop") for a in plan.actions
    )
    plan = replace(plan, actions=actions)
    fate, tried = random_fate(seed, failing=0.1), set()

    def work(parameters, _context, _stop):
        if parameters["uuid"] not in tried:  # each fails once, and is tried again
            tried.add(parameters["uuid"])
            raise ActionFailed("the first time")
        return carry_out(fate(parameters["uuid"]))

    clock = JumpingClock(seed)
    parameters = [replace(a, input_parameters={"uuid": a.uuid}) for a in plan.actions]
    store.save_plan(replace(plan, actions=tuple(parameters)))
    trial = Trial(
        plan,
        TaskFlowEngine(max_workers=3),
        work,
        max_workers=3,
        inner=store,
        clock=clock,
        policies={"nop": TypePolicy(retries=1, retry_delay_s=0.001, timeout_s=600.0)},
        heartbeat_interval_s=0.005,
        request_interval_s=0.005,
    )
    state = trial.run()
    ends = {a.uuid: ActionEnd(a.state, a.outcome) for a in trial.plan().actions}
    assert ends == expected_ends(plan, fate)
    assert state is trial.plan().state
    assert all(sample.seconds >= 0 for sample in store.durations(["nop"])["nop"])
    order = [attempt.number for a in plan.actions for attempt in store.attempts(plan.uuid, a.uuid)]
    assert sum(number == 1 for number in order) == len(tried)
    assert clock.jumps > len(tried)
