# SPDX-License-Identifier: Apache-2.0
"""Times, critical paths and slacks of plans that are small enough to be worked out by hand."""

from __future__ import annotations

import random

import pytest
from random_plans import random_plan

from applier.scheduling.concurrency import Concurrency
from applier.scheduling.course import Course, Ranking
from applier.scheduling.forecast import Forecast, forecast
from planner.plan.model import JOIN, Action
from planner.plan.place_rules import HeldPlace, PlaceRule
from planner.plan.states import ActionState, Outcome


def action(uuid: str, **fields) -> Action:
    return Action(uuid=uuid, **{"action_type": "nop", **fields})


def predicted(*actions: Action, seconds: dict[str, float], **options) -> Forecast:
    given = Concurrency(**{"limits": {}, "max_workers": 9, **options})
    found = forecast(actions, seconds, given)
    assert Ranking(actions, seconds, given).timeline.makespan_s == found.timeline.makespan_s
    assert Ranking(actions, seconds, given).ranks == found.ranks
    return found


def test_a_token_that_is_given_back_makes_a_path_critical():
    found = predicted(
        action("a", tokens=("node:1",)), action("b", tokens=("node:1",)), action("c"),
        seconds={"a": 4.0, "b": 3.0, "c": 4.0},
        limits={"node:*": 1},
    )  # fmt: skip
    assert found.timeline.start_s == {"a": 0.0, "c": 0.0, "b": 4.0}
    assert found.critical == ("a", "b")
    assert found.slack_s == {"a": 0.0, "b": 0.0, "c": 3.0}
    assert found.lower_bound_s == found.timeline.makespan_s == 7.0


def test_a_worker_that_comes_free_makes_a_path_critical():
    found = predicted(
        action("a"), action("b"), action("c"),
        seconds={"a": 4.0, "b": 3.0, "c": 2.0},
        max_workers=2,
    )  # fmt: skip
    assert found.timeline.start_s == {"a": 0.0, "b": 0.0, "c": 3.0}
    assert found.critical == ("b", "c")
    assert found.slack_s == {"a": 1.0, "b": 0.0, "c": 0.0}


def test_a_link_is_told_before_a_token_and_a_token_before_a_worker():
    """b starts when a, w and t end; its link to a is what it waited for."""
    found = predicted(
        action("w"), action("t", tokens=("node:1",)), action("a"),
        action("b", parents=("a",), tokens=("node:1",)),
        seconds={"w": 2.0, "t": 2.0, "a": 2.0, "b": 1.0},
        limits={"node:*": 1}, max_workers=3,
    )  # fmt: skip
    assert found.critical == ("a", "b")
    assert found.slack_s == {"w": 1.0, "t": 1.0, "a": 0.0, "b": 0.0}


def test_who_leaves_a_place_is_critical_even_if_it_takes_no_time():
    def step(node: str, name: str, *needs: str) -> Action:
        return action(f"{node}/{name}", needs=needs, places=(HeldPlace("serial:p", node),))

    found = predicted(
        step("x", "patch"), step("x", "check", "x/patch"),
        step("y", "patch"), step("y", "check", "y/patch"),
        seconds={"x/patch": 4.0, "x/check": 0.0, "y/patch": 2.0, "y/check": 0.0},
        limits={"serial:p": 1}, places={"serial:p": PlaceRule()},
    )  # fmt: skip
    assert found.timeline.makespan_s == 6.0
    assert set(found.slack_s.values()) == {0.0}
    assert found.critical == ("x/patch", "x/check", "y/patch")


def test_the_bound_counts_the_work_of_each_limit_and_of_the_workers():
    tokens = {"tokens": ("type:nop",)}
    three = [action(name, **tokens) for name in "abc"]
    seconds = dict.fromkeys("abc", 2.0)
    assert predicted(*three, seconds=seconds, limits={"type:nop": 2}).lower_bound_s == 3.0
    assert predicted(*three, seconds=seconds, max_workers=2).lower_bound_s == 3.0
    assert predicted(*three, seconds=seconds).lower_bound_s == 2.0
    free = predicted(*three, seconds=seconds, max_workers=2, workerless={"c"})
    assert free.lower_bound_s == free.timeline.makespan_s == 2.0


def test_a_longer_path_goes_first():
    """In the order of the plan it would take 6 seconds."""
    found = predicted(
        action("a"), action("b"), action("c"), action("d", parents=("c",)),
        seconds={"a": 1.0, "b": 1.0, "c": 1.0, "d": 3.0},
        max_workers=2,
    )  # fmt: skip
    assert found.timeline.start_s["c"] == 0.0
    assert found.timeline.makespan_s == 4.0
    assert sorted(found.ranks, key=found.ranks.get)[0] == "c"


def test_what_has_ended_takes_no_time():
    found = predicted(
        action("a", state=ActionState.SUCCEEDED, outcome=Outcome.CHANGED),
        action("b", parents=("a",)),
        seconds={"a": 50.0, "b": 2.0},
    )
    assert found.timeline.start_s == {"b": 0.0}
    assert found.timeline.makespan_s == 2.0
    assert found.critical == ("b",)


def test_left_is_what_is_open_and_no_join():
    actions = (
        action("a", state=ActionState.SUCCEEDED, outcome=Outcome.CHANGED),
        action("b", state=ActionState.ONGOING),
        action("j", action_type=JOIN, parents=("b",)),
        action("c", parents=("j",)),
    )
    course = Course(actions, {}, Concurrency(limits={}, max_workers=2))
    assert [a.uuid for a in course.left] == ["b", "c"]


def test_a_plan_in_which_nothing_is_left_takes_no_time():
    found = predicted(seconds={})
    assert (found.timeline.makespan_s, found.lower_bound_s) == (0.0, 0.0)
    assert (found.critical, found.slack_s) == ((), {})


#: Two workers take 12 seconds in the first order that is tried, and 10 in the best one.
IMPROVED = (
    action("a"), action("b"), action("c"), action("d", parents=("b", "c")),
    action("e", parents=("c",)),
)  # fmt: skip
TAKES = {"a": 5.0, "b": 2.0, "c": 3.0, "d": 5.0, "e": 5.0}


def test_scheduling_backwards_and_forwards_again_finds_a_shorter_order():
    first = forecast(IMPROVED, TAKES, Concurrency(limits={}, max_workers=2), rounds=0)
    assert first.timeline.makespan_s == 12.0
    assert predicted(*IMPROVED, seconds=TAKES, max_workers=2).timeline.makespan_s == 10.0


@pytest.mark.parametrize(("many", "makespan"), [(5, 10.0), (4, 12.0)])
def test_no_shorter_order_is_looked_for_in_a_plan_with_too_many_actions(
    many, makespan, monkeypatch
):
    monkeypatch.setattr("applier.scheduling.course.MANY", many)
    assert predicted(*IMPROVED, seconds=TAKES, max_workers=2).timeline.makespan_s == makespan


@pytest.mark.parametrize("seed", range(20))
def test_more_rounds_are_never_longer_and_the_ranks_give_what_was_found(seed):
    plan = random_plan(seed, 25)
    chance = random.Random(seed)
    seconds = {a.uuid: float(chance.randint(1, 5)) for a in plan.actions}
    two = Concurrency(limits=plan.limits, max_workers=2)
    found = [forecast(plan.actions, seconds, two, rounds=rounds) for rounds in (0, 1, 2, 3)]
    spans = [one.timeline.makespan_s for one in found]
    assert spans == sorted(spans, reverse=True)
    again = Course(plan.actions, seconds, two).run(found[-1].ranks)
    assert again == found[-1].timeline
