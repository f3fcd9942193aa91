# SPDX-License-Identifier: Apache-2.0
"""Planners of others have the links of a document for nothing: the draft adds them, or refuses."""

from __future__ import annotations

import re
from typing import Any

import pytest

from planner.contract import Options
from planner.errors import InvalidInput
from planner.model import ActionPlan, Solution
from planner.planners.solution import SolutionPlanner
from planner.testing import edges, needs, plan

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
