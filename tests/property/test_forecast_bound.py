# SPDX-License-Identifier: Apache-2.0
"""The lower bound of a forecast: no order of the actions takes less."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from applier.scheduling.course import Course
from applier.scheduling.forecast import forecast
from applier.scheduling.submissions import Concurrency
from applier.testing.random_plans import expected_ends, random_fate, random_plan
from planner.plan.model import JOIN, Action


def partly_run(seed: int) -> list[Action]:
    """Return the actions of a plan, some of the first of which have ended in an earlier run."""
    plan, chance = random_plan(seed), random.Random(seed)
    ends = expected_ends(plan, random_fate(seed))
    ended = chance.choice((0, chance.randrange(len(plan.actions))))
    return [
        replace(action, state=ends[action.uuid].state, outcome=ends[action.uuid].outcome)
        for action in plan.actions[:ended]
    ] + list(plan.actions[ended:])


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
@settings(max_examples=examples(150))
@given(st.integers(0, 1_000_000))
def test_no_order_takes_less_than_the_bound(workers: int, seed: int) -> None:
    actions, chance = partly_run(seed), random.Random(seed)
    durations = {a.uuid: float(chance.randint(1, 9)) for a in actions}
    limits = random_plan(seed).limits
    workerless = {a.uuid for a in actions if chance.random() < 0.2}
    concurrency = Concurrency(limits=limits, max_workers=workers, workerless=workerless)
    bound = forecast(actions, durations, concurrency).lower_bound_s
    course = Course(actions, durations, concurrency)
    for _ in range(5):
        ranks = dict(zip((a.uuid for a in actions), chance.sample(range(99), 99), strict=False))
        timeline = course.run(ranks)
        assert bound <= timeline.makespan_s
        assert course.lower_bound(timeline) == pytest.approx(bound)


def test_some_of_these_plans_have_actions_that_do_not_run() -> None:
    """Otherwise the bound could count every action, and the property would not notice."""

    def left_out(seed: int) -> bool:
        actions = random_plan(seed).actions
        course = Course(
            actions,
            dict.fromkeys((a.uuid for a in actions), 1.0),
            Concurrency(limits={}, max_workers=3),
        )
        started = course.run({a.uuid: i for i, a in enumerate(actions)}).start_s
        return any(a.uuid not in started for a in actions if a.action_type != JOIN)

    assert sum(map(left_out, range(50))) > 5
