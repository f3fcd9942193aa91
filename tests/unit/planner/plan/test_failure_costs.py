# SPDX-License-Identifier: Apache-2.0
"""What a failure costs, compared with what the scheduler does when the action fails."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from random_plans import Fate, expected_ends, random_plan

from applier.scheduling.verdict import ActionEnd
from planner.plan.failure_costs import FailureCost, FailureCosts, sentence
from planner.plan.model import ANCHOR, JOIN, Action, ActionPlan
from planner.plan.states import ActionState, Outcome


def act(uuid: str, *needs: str, **fields: object) -> Action:
    return Action(uuid=uuid, action_type="nop", name=uuid, needs=needs, **fields)


def names(actions: list[Action]) -> str:
    return "".join(a.label for a in actions)


def test_all_that_needs_it_directly_or_not() -> None:
    costs = FailureCosts([act("a"), act("b", "a"), act("c", "b"), act("d")])
    assert [names(costs.not_run(uuid)) for uuid in "abcd"] == ["bc", "c", "", ""]
    assert [(c.action.uuid, c.not_run) for c in costs.highest(3)] == [("a", 2), ("b", 1)]


def test_joins_are_not_counted_and_what_ended_costs_nothing() -> None:
    join = Action(uuid="j", action_type=JOIN, needs=("a", "b"))
    done = act("b", state=ActionState.SUCCEEDED, outcome=Outcome.CHANGED)
    costs = FailureCosts([act("a"), done, join, act("c", "j")])
    assert names(costs.not_run("a")) == "c"
    assert costs.highest(3) == [FailureCost(act("a"), 1)]
    assert costs.not_run("b") == []


def test_what_does_nothing_is_never_dangerous() -> None:
    none = (JOIN, ANCHOR, "skipped")
    between = [Action(uuid=name, action_type=name, needs=("a",)) for name in none]
    costs = FailureCosts([act("a"), *between, act("last", *none)]).highest(9)
    assert [cost.action.uuid for cost in costs] == ["a"]


def test_a_plan_in_which_nothing_needs_anything_has_no_costs() -> None:
    assert FailureCosts([act("a"), act("b")]).highest(3) == []
    assert sentence([]) == ""


@given(st.integers(0, 10_000), st.integers(1, 40))
def test_it_agrees_with_the_rules_of_failure(seed: int, size: int) -> None:
    plan = without_handlers(random_plan(seed, size))
    costs = FailureCosts(plan.actions)
    calm = expected_ends(plan, ending())
    for failing in plan.actions:
        if failing.action_type == JOIN or calm[failing.uuid].state is not ActionState.SUCCEEDED:
            continue
        ends = expected_ends(plan, ending(failing.uuid))
        lost = {
            a.uuid
            for a in plan.actions
            if a.action_type != JOIN
            and a is not failing
            and calm[a.uuid].state is ActionState.SUCCEEDED
            and ends[a.uuid].state is not ActionState.SUCCEEDED
        }
        assert {a.uuid for a in costs.not_run(failing.uuid)} == lost
        known = {cost.action.uuid: cost.not_run for cost in costs.highest(len(plan.actions))}
        assert known.get(failing.uuid, 0) == len(lost)


def without_handlers(plan: ActionPlan) -> ActionPlan:
    """Return a plan in which nothing runs only because of a failure."""
    failed = Outcome.FAILED
    return replace(
        plan,
        actions=tuple(
            replace(
                action,
                triggers=tuple(
                    t._replace(outcomes=tuple(o for o in t.outcomes if o is not failed))
                    for t in action.triggers
                ),
            )
            for action in plan.actions
        ),
    )


def ending(failing: str = "") -> Fate:
    """Return a fate in which one action fails and every other changes something."""

    def fate(uuid: str) -> ActionEnd:
        if uuid == failing:
            return ActionEnd(ActionState.FAILED, Outcome.FAILED)
        return ActionEnd(ActionState.SUCCEEDED, Outcome.CHANGED)

    return fate
