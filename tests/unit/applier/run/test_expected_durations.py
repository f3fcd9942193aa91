# SPDX-License-Identifier: Apache-2.0
"""How long actions are taken to need: from the plan, from the record, from the type."""

from __future__ import annotations

from itertools import product

import pytest

from applier.run.expected_durations import Durations, PastDurations, estimates
from applier.scheduling.failures import TypePolicy
from applier.store.runs import Sample
from planner.plan.model import JOIN, Action, ActionPlan
from planner.plan.states import ActionState

OTHERWISE = {"resize": 20.0, "migrate": 99.0}
RUNS = {"migrate": [50.0, 60.0, 55.0, 52.0, 58.0, 51.0, 57.0, 54.0, 70.0, 3600.0]}


def plan_of(*actions: Action) -> ActionPlan:
    return ActionPlan(uuid="p", planner="weight", actions=actions)


def past(runs=RUNS) -> PastDurations:
    samples = {name: [Sample(s) for s in seconds] for name, seconds in runs.items()}
    return PastDurations(lambda names: {n: samples.get(n, []) for n in names}, OTHERWISE)


def known(*actions: Action, **options) -> Durations:
    return past().of(plan_of(*actions), **options)


def test_one_run_that_hung_moves_nothing():
    found = known(Action(uuid="a", action_type="migrate"))
    assert (found.seconds["a"], found.cautious["a"]) == (56.0, 70.0)
    assert found.known_from == {"record": 1}


@pytest.mark.parametrize(
    ("action", "seconds", "source"),
    [
        (Action(uuid="a", action_type="migrate", estimate_s=7), 7, "estimate"),
        (Action(uuid="a", action_type="migrate"), 56, "record"),
        (Action(uuid="a", action_type="resize"), 20, "estimate"),
        (Action(uuid="a", action_type="nop"), 1, "nothing"),
    ],
)
def test_what_the_plan_says_comes_first_then_the_record_then_the_type(action, seconds, source):
    found = known(action)
    assert (found.seconds["a"], dict(found.known_from)) == (seconds, {source: 1})


@pytest.mark.parametrize("name", ["migrate", "resize", "nop", JOIN])
def test_durations_are_known_unless_one_is_based_on_nothing(name):
    states = (ActionState.PENDING, ActionState.SUCCEEDED)
    for estimate_s, recorded, state in product((7, None), (True, False), states):
        plan = plan_of(Action(uuid="a", action_type=name, estimate_s=estimate_s, state=state))
        is_known = past().are_known(plan, recorded=recorded)
        nothing = past().of(plan, recorded=recorded).known_from.get("nothing")
        assert is_known is not bool(nothing), (estimate_s, recorded, state)


def test_what_has_ended_and_joins_take_no_time_and_are_not_counted():
    found = known(
        Action(uuid="a", action_type="migrate", state=ActionState.SUCCEEDED),
        Action(uuid="j", action_type=JOIN),
    )
    assert (found.seconds, dict(found.known_from)) == ({"a": 0.0, "j": 0.0}, {})


def test_the_record_is_asked_once_for_each_type_and_only_if_it_is_needed():
    asked = []
    history = PastDurations(lambda names: asked.append(list(names)) or {}, {})
    history.of(plan_of(Action(uuid="a", action_type="nop", estimate_s=1)))
    history.of(plan_of(Action(uuid="a", action_type="nop")), recorded=False)
    assert asked == []
    for _ in range(2):
        history.of(plan_of(Action(uuid="a", action_type="nop")))
    assert asked == [["nop"]]


def test_any_share_of_earlier_runs_is_told_and_drawn():
    move = Action(uuid="a", action_type="migrate")
    known = past()
    assert [known.expected(move, share) for share in (0.1, 0.5, 0.9, 1.0)] == [50, 56, 70, 3600]
    assert [known.drawn(move, chance) for chance in (0.0, 0.55, 0.999)] == [50, 57, 3600]
    guessed = Action(uuid="b", action_type="migrate", estimate_s=7)
    assert known.expected(guessed, 0.9) == known.drawn(guessed, 0.9) == 7


def on(node: str | None) -> Action:
    tokens = ("type:migrate", *([f"node:{node}"] if node else []), "node:other")
    return Action(uuid=f"on {node}", action_type="migrate", tokens=tokens)


def test_a_slow_node_counts_more_the_more_is_known_of_it():
    quick = [Sample(10.0, None, "c1")] * 40
    for number, expected in [(0, 10), (4, 10), (6, 60), (30, 60)]:
        samples = [*quick, *[Sample(60.0, None, "c2")] * number]
        known = PastDurations(lambda names, found=samples: dict.fromkeys(names, found), {})
        assert known.expected(on("c2"), 0.5) == expected
        assert known.expected(on("c1"), 0.5) == known.expected(on("c3"), 0.5) == 10


def test_only_a_type_with_an_estimate_has_one_even_if_it_is_zero():
    policies = {
        "nop": TypePolicy(estimate_s=0.0),
        "sleep": TypePolicy(estimate_s=7.0),
        "migrate": TypePolicy(retries=2),
    }
    assert estimates(policies) == {"nop": 0.0, "sleep": 7.0}


def test_equal_durations_of_which_not_all_is_known_are_pooled():
    samples = [
        Sample(1.0),
        Sample(1.0, "m1.large"),
        Sample(1.0, None, "c1"),
        Sample(1.0, "m1", "c1"),
    ]
    past = PastDurations(lambda _: {"nop": samples}, {})
    for tokens in ((), ("node:c1",)):
        action = Action(uuid="a", action_type="nop", tokens=tokens)
        assert past.expected(action, 0.5) == 1.0
