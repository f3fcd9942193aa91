# SPDX-License-Identifier: Apache-2.0
"""How late an action may end, and that no order of the actions takes less than the bound."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from links import linked
from random_plans import expected_ends, random_fate, random_plan

from applier.scheduling.concurrency import Concurrency
from applier.scheduling.course import Course
from applier.scheduling.forecast import Forecast, forecast
from planner.plan.model import JOIN, Action

OFTEN = settings(max_examples=examples(150))


@st.composite
def plans(draw: Any, *, choices: bool) -> tuple[list[Action], dict[str, float]]:
    """Up to eight actions that take 0 to 4 seconds; with ``choices``, one of several may do."""
    actions = draw(linked(8, ["nop", "nop", "nop", JOIN], least=1, choices=choices))
    return list(actions), {a.uuid: float(draw(st.integers(0, 4))) for a in actions}


def predicted(actions: Sequence[Action], durations: dict[str, float]) -> Forecast:
    return forecast(actions, durations, Concurrency(limits={}, max_workers=99))


def longer(found: tuple[list[Action], dict[str, float]], uuid: str, seconds: float) -> float:
    """Return by how much a plan becomes longer if an action does."""
    actions, durations = found
    more = predicted(actions, durations | {uuid: durations[uuid] + seconds})
    return more.timeline.makespan_s - predicted(actions, durations).timeline.makespan_s


@OFTEN
@given(plans(choices=False))
def test_an_action_that_is_late_by_its_slack_delays_nothing_and_by_more_the_plan(
    found: tuple[list[Action], dict[str, float]],
) -> None:
    made = predicted(*found)
    for uuid, slack in made.slack_s.items():
        assert longer(found, uuid, slack) == 0
        assert longer(found, uuid, slack + 1) == 1
    assert not any(made.slack_s[uuid] for uuid in made.critical)
    assert sum(found[1][uuid] for uuid in made.critical) == made.timeline.makespan_s


@OFTEN
@given(plans(choices=True))
def test_where_one_of_several_is_enough_the_slack_promises_nothing_that_is_not_there(
    found: tuple[list[Action], dict[str, float]],
) -> None:
    for uuid, slack in predicted(*found).slack_s.items():
        assert slack >= 0
        assert longer(found, uuid, slack) == 0


# The lower bound of a forecast: no order of the actions takes less.


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
