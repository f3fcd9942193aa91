# SPDX-License-Identifier: Apache-2.0
"""A plan in the making: what is shared stays shared, and every action has its tokens.

Planners of others have the links of a document for nothing: the draft adds them, or refuses.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from planner.contract import Options
from planner.errors import InvalidInput
from planner.plan.model import JOIN, ActionPlan, Effect, ProposedAction, Solution, Touch
from planner.plan.states import PlanState
from planner.planners.draft import Draft
from planner.planners.solution import SolutionPlanner
from planner.testing import NOW, edges, needs, plan, surroundings

LEAVING = (Touch("instance:i1"), Touch("node:c1", Effect.LEAVES))
MOVE = ProposedAction(name="move", action_type="migrate", touches=LEAVING)
DOWN = (Touch("node:c1", Effect.TAKES_DOWN),)
OFF = ProposedAction(name="off", action_type="power", touches=DOWN)


def draft_of(*actions: ProposedAction) -> Draft:
    return Draft("mine", Solution(actions=actions, name="n"), surroundings())


def test_parents_that_are_one_object_stay_one_object() -> None:
    a, b, c, d = (ProposedAction(name=name, action_type="nop") for name in "abcd")
    draft = draft_of(a, b, c, d)
    both = (draft.add(a, (), ""), draft.add(b, (), ""))
    draft.add(c, both, "")
    draft.add(d, both, "")
    made = draft.plan()
    assert made.actions[2].parents is made.actions[3].parents
    assert edges(made)["d"] == ["a", "b"]


def test_a_join_holds_no_token_and_has_a_name_of_its_own() -> None:
    a = ProposedAction(name="join-2", action_type="nop")
    draft = draft_of(a)
    joins = [draft.join((draft.add(a, (), ""),), "all of it")]
    joins += [draft.join((joins[-1],), "once more"), draft.join((joins[-1],), "again")]
    made = [action for action in draft.plan().actions if action.action_type == JOIN]
    assert [action.name for action in made] == ["join-1", "join-3", "join-4"]
    assert all(action.tokens == () for action in made)
    assert len(draft) == 4


def test_tokens_are_the_type_and_each_resource_once() -> None:
    move = ProposedAction(name="a", action_type="migrate", touches=(*LEAVING, Touch("node:c1")))
    draft = draft_of(move)
    draft.add(move, (), "first of all")
    (action,) = draft.plan().actions
    assert action.tokens == ("type:migrate", "instance:i1", "node:c1")
    assert action.reason == "first of all"


def test_a_need_that_the_planner_stands_against_is_a_warning_that_names_both() -> None:
    draft = draft_of(OFF, MOVE)
    draft.add(MOVE, (draft.add(OFF, (), ""),), "")
    made = draft.plan(warnings=["first"])
    first, second = made.warnings
    assert first == "first"
    assert second.startswith("off does not wait for move (node:c1 ")
    assert second.endswith(" off first")
    assert needs(made) == {"off": [], "move": []}


def test_a_plan_without_actions_is_done() -> None:
    made = draft_of().plan(limits={"node:*": 1})
    assert made.state is PlanState.SUCCEEDED
    assert (made.planner, made.name, made.created_at, made.limits) == (
        "mine",
        "n",
        NOW,
        {"node:*": 1},
    )


def test_what_precedes_through_others_stands_against_a_need_as_well() -> None:
    nap, rest = (ProposedAction(name=name, action_type="nop") for name in ("nap", "rest"))
    draft = draft_of(OFF, nap, rest, MOVE)
    first = draft.add(OFF, (), "")
    both = (draft.add(nap, (first,), ""), draft.add(rest, (), ""))
    draft.add(MOVE, both, "")
    made = draft.plan()
    assert [warning.split(" does not")[0] for warning in made.warnings] == ["off"]
    assert needs(made)["off"] == []


def test_a_need_beside_the_parents_is_kept_and_orders() -> None:
    draft = draft_of(OFF, MOVE)
    draft.add(OFF, (), "")
    draft.add(MOVE, (), "")
    made = draft.plan()
    assert (made.warnings, needs(made)["off"]) == ((), ["move"])
    assert [action.name for action in made.actions] == ["move", "off"]


DOCUMENT: dict[str, Any] = {
    "actions": [
        {"name": "report", "action_type": "nop", "after": ["warm-up"]},
        {"name": "warm-up", "action_type": "nop", "needs": ["install"]},
        {"name": "install", "action_type": "nop"},
    ]
}


class AtOncePlanner(SolutionPlanner):
    """Knows nothing of links: no action has parents."""

    NAME = "at_once"

    def plan(self, problem: Solution, options: Options) -> ActionPlan:
        draft = self.draft(problem)
        for action in problem.actions:
            draft.add(action, (), "at once")
        return draft.plan()


class OneByOnePlanner(SolutionPlanner):
    """Knows nothing of links either: each action follows the one before it in the document."""

    NAME = "one_by_one"

    def plan(self, problem: Solution, options: Options) -> ActionPlan:
        draft = self.draft(problem)
        for i, action in enumerate(problem.actions):
            draft.add(action, (i - 1,) if i else (), "one by one")
        return draft.plan()


def test_a_planner_that_knows_no_links_keeps_them() -> None:
    made = plan(AtOncePlanner, DOCUMENT)
    assert [action.name for action in made.actions] == ["install", "warm-up", "report"]
    assert edges(made)["report"] == ["warm-up"]
    assert needs(made)["warm-up"] == ["install"]
    assert made.actions[2].reason is not None
    assert "after warm-up" in made.actions[2].reason


def test_parents_that_contradict_a_link_are_refused_with_the_path() -> None:
    with pytest.raises(InvalidInput) as refused:
        plan(OneByOnePlanner, DOCUMENT)
    (mistake,) = refused.value.mistakes
    assert mistake.path == ("actions", 0, "after", 0)
    assert re.findall(r"[a-z]+[_-][a-z_-]+|report", mistake.text) == [
        "report",
        "warm-up",
        "one_by_one",
        "report",
    ]


def test_one_instance_is_worked_on_in_the_order_of_the_links() -> None:
    touched = {"action_type": "nop", "touches": ["instance:i1"]}
    second = {"name": "second", "after": ["first"], **touched}
    made = plan(AtOncePlanner, {"actions": [second, {"name": "first", **touched}]})
    assert needs(made)["second"] == ["first"]
    assert made.warnings == ()
