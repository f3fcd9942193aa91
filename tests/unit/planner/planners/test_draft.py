# SPDX-License-Identifier: Apache-2.0
"""A plan in the making: what is shared stays shared, and every action gets its tokens."""

from __future__ import annotations

from planner.model import JOIN, Effect, ProposedAction, Solution, Touch
from planner.planners.draft import Draft
from planner.states import PlanState
from planner.testing import NOW, edges, needs, surroundings

MOVE = (Touch("instance:i1"), Touch("node:c1", Effect.LEAVES))


def draft_of(*actions: ProposedAction) -> Draft:
    return Draft("mine", Solution(actions=actions, name="n"), surroundings())


def test_parents_that_are_one_object_stay_one_object() -> None:
    a, b, c, d = (ProposedAction(name=name, action_type="nop") for name in "abcd")
    draft = draft_of(a, b, c, d)
    both = (draft.add(a, (), ""), draft.add(b, (), ""))
    draft.add(c, both, "")
    draft.add(d, both, "")
    plan = draft.plan()
    assert plan.actions[2].parents is plan.actions[3].parents
    assert edges(plan)["d"] == ["a", "b"]


def test_a_join_holds_no_token_and_has_a_name_of_its_own() -> None:
    a = ProposedAction(name="join-2", action_type="nop")
    draft = draft_of(a)
    joins = [draft.join((draft.add(a, (), ""),), "all of it")]
    joins += [draft.join((joins[-1],), "once more"), draft.join((joins[-1],), "again")]
    plan = draft.plan()
    made = [action for action in plan.actions if action.action_type == JOIN]
    assert [action.name for action in made] == ["join-1", "join-3", "join-4"]
    assert all(action.tokens == () for action in made)
    assert len(draft) == 4


def test_tokens_are_the_type_and_each_resource_once() -> None:
    move = ProposedAction(name="a", action_type="migrate", touches=(*MOVE, Touch("node:c1")))
    draft = draft_of(move)
    draft.add(move, (), "first of all")
    (action,) = draft.plan().actions
    assert action.tokens == ("type:migrate", "instance:i1", "node:c1")
    assert action.reason == "first of all"


def test_a_need_that_the_planner_stands_against_is_a_warning_that_names_both() -> None:
    off = ProposedAction(
        name="off", action_type="power", touches=(Touch("node:c1", Effect.TAKES_DOWN),)
    )
    move = ProposedAction(name="move", action_type="migrate", touches=MOVE)
    draft = draft_of(off, move)
    draft.add(move, (draft.add(off, (), ""),), "")
    plan = draft.plan(warnings=["first"])
    first, second = plan.warnings
    assert first == "first"
    assert second.startswith("off does not wait for move (node:c1 ")
    assert second.endswith(" off first")
    assert needs(plan) == {"off": [], "move": []}


def test_a_plan_without_actions_is_done() -> None:
    plan = draft_of().plan(limits={"node:*": 1})
    assert plan.state is PlanState.SUCCEEDED
    assert (plan.planner, plan.name, plan.created_at, plan.limits) == (
        "mine",
        "n",
        NOW,
        {"node:*": 1},
    )


def test_what_precedes_through_others_stands_against_a_need_as_well() -> None:
    off = ProposedAction(
        name="off", action_type="power", touches=(Touch("node:c1", Effect.TAKES_DOWN),)
    )
    nap, rest = (ProposedAction(name=name, action_type="nop") for name in ("nap", "rest"))
    move = ProposedAction(name="move", action_type="migrate", touches=MOVE)
    draft = draft_of(off, nap, rest, move)
    first = draft.add(off, (), "")
    both = (draft.add(nap, (first,), ""), draft.add(rest, (), ""))
    draft.add(move, both, "")
    plan = draft.plan()
    assert [warning.split(" does not")[0] for warning in plan.warnings] == ["off"]
    assert needs(plan)["off"] == []


def test_a_need_beside_the_parents_is_kept_and_orders() -> None:
    off = ProposedAction(
        name="off", action_type="power", touches=(Touch("node:c1", Effect.TAKES_DOWN),)
    )
    move = ProposedAction(name="move", action_type="migrate", touches=MOVE)
    draft = draft_of(off, move)
    draft.add(off, (), "")
    draft.add(move, (), "")
    plan = draft.plan()
    assert (plan.warnings, needs(plan)["off"]) == ((), ["move"])
    assert [action.name for action in plan.actions] == ["move", "off"]
