# SPDX-License-Identifier: Apache-2.0
"""The checker of cases finds what differs; the check of planners finds what is wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.errors import InvalidInput
from planner.plan.model import ActionPlan, Solution, Touch
from planner.planners.weight import WeightPlanner
from planner.testing import (
    NOW,
    action_type,
    check_case,
    check_planner,
    edges,
    needs,
    options,
    plan,
    surroundings,
)

CASE = {"title": "two moves", "actions": ["migrate-1", "migrate-2", "resize-1"]}
PARENTS = {"resize-1": ["migrate-1", "migrate-2"]}


def complaint(case: dict[str, Any]) -> str:
    with pytest.raises(AssertionError) as wrong:
        check_case(WeightPlanner, {**CASE, **case})
    return str(wrong.value)


def test_a_case_that_holds_is_silent() -> None:
    case = {"parents": PARENTS, "needs": {}, "state": "RECOMMENDED", "plan_limits": {}}
    check_case(WeightPlanner, {**CASE, **case, "warnings": []})


def test_differing_edges_are_shown() -> None:
    parents = {"resize-1": ["migrate-1", "nop-1"], "nop-1": []}
    head, missing, too_much, unknown = complaint({"parents": parents}).splitlines()
    assert head == "two moves:"
    assert "parents: - nop-1 -> resize-1 " in missing
    assert "parents: + migrate-2 -> resize-1 " in too_much
    assert "no nop-1 " in unknown


def test_an_action_that_the_case_does_not_name_has_no_parents() -> None:
    assert "+ migrate-1 -> resize-1 is too much" in complaint({"parents": {}})


def test_the_order_of_parents_counts() -> None:
    text = complaint({"parents": {"resize-1": ["migrate-2", "migrate-1"]}})
    found, expected = text.split("expected")
    assert "['migrate-1', 'migrate-2']" in found
    assert "['migrate-2', 'migrate-1']" in expected


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ({"needs": {"resize-1": ["migrate-1"]}}, "needs: - migrate-1 -> resize-1 is missing"),
        ({"state": "SUCCEEDED"}, "state: expected SUCCEEDED, got RECOMMENDED"),
        ({"plan_limits": {"node:*": 1}}, "plan_limits: expected {'node:*': 1}, got {}"),
        ({"order": ["resize-1"]}, "order: expected ['resize-1'], got ['migrate-1',"),
        ({"warnings": ["beware"]}, "warnings: expected ['beware'], got []"),
        ({"error": "no"}, "expected a refusal with 'no', got {"),
    ],
)
def test_whatever_else_differs_is_shown(expected: dict[str, Any], text: str) -> None:
    assert text in complaint(expected)


def test_another_refusal_than_the_expected_is_shown() -> None:
    text = complaint({"options": {"ordering": "x"}, "error": ["ordering", "nothing"]})
    expected, got = text.split(", got: ")
    assert expected.endswith("['ordering', 'nothing']")
    assert got.startswith("options.ordering")
    assert complaint({"options": {"ordering": "x"}}).startswith("expected a plan, got: ")


def test_an_unexpected_warning_is_shown() -> None:
    text = complaint({"actions": ["warp-1"], "warnings": [["no weight", "5 is used"], "x"]})
    assert "'warp' has no weight: 0 is used" in text


def test_surroundings_have_a_clock_that_stands_and_ids_that_count() -> None:
    around = surroundings()
    assert around.now() == around.now() == NOW
    assert [around.new_id()[-2:] for _ in range(2)] == ["01", "02"]


def test_several_new_ids_ascend() -> None:
    ids = iter(["plan", "b", "c", "a", "d"])
    around = replace(surroundings(), new_id=ids.__next__)
    assert (around.new_id(), around.new_ids(3), around.new_id()) == ("plan", ["a", "b", "c"], "d")


def test_types_of_one_s_own_are_known_beside_the_installed() -> None:
    mine = action_type("mine", touches=[Touch("node:c1")], estimate_s=3, schema={"required": ["a"]})
    around = surroundings(mine, action_type("nop", estimate_s=9))
    assert around.action_type("mine") is mine
    assert around.action_type("nop").estimate({}) == 9
    assert around.action_type("sleep").TYPE == "sleep"
    assert [mistake.text for mistake in around.check("mine", {})] == ["the field 'a' is missing"]


def test_options_are_the_defaults_and_what_is_given() -> None:
    found = options(WeightPlanner, ordering="slots")
    assert (found.ordering, found.weights["nop"]) == ("slots", 70)
    with pytest.raises(InvalidInput, match="option ordering"):
        options(WeightPlanner, ordering="x")


def test_edges_and_needs_go_by_name() -> None:
    touched = {"touches": ["instance:i1"], "action_type": "migrate"}
    document = {"actions": [{"name": "a", **touched}, {"name": "b", **touched}]}
    made = plan(WeightPlanner, document, check_types=False)
    assert edges(made) == {"a": [], "b": []}
    assert needs(made) == {"a": [], "b": ["a"]}


class Spoiled(WeightPlanner):
    """Makes a plan, and then something of it."""

    def plan(self, problem: Solution, options: Any) -> ActionPlan:
        return self.spoil(super().plan(problem, options))

    def spoil(self, made: ActionPlan) -> ActionPlan:
        return made


class Looking(Spoiled):
    def spoil(self, made: ActionPlan) -> ActionPlan:
        own = ["firmware of host c1 not checked", "'nop': its parameters were not checked"]
        return replace(made, warnings=(*made.warnings, *own))


def test_only_the_warnings_on_unchecked_types_are_left_out() -> None:
    case = {"actions": ["migrate-1"], "warnings": ["firmware of host c1", "'nop'"]}
    check_case(Looking, case)
    with pytest.raises(AssertionError, match=r"got .*firmware of host c1 not checked"):
        check_case(Looking, {**case, "warnings": []})


class Forgetful(Spoiled):
    def spoil(self, made: ActionPlan) -> ActionPlan:
        return replace(made, actions=made.actions[:1])


class Backwards(Spoiled):
    def spoil(self, made: ActionPlan) -> ActionPlan:
        return replace(made, actions=made.actions[::-1])


class Moody(Spoiled):
    mood = 0

    def spoil(self, made: ActionPlan) -> ActionPlan:
        Moody.mood += 1
        return replace(made, warnings=(f"mood {Moody.mood}",))


class Greedy(Spoiled):
    def parse(self, document: Any) -> Solution:
        document["actions"].reverse()
        return super().parse(document)


class Secretive(Spoiled):
    def spoil(self, made: ActionPlan) -> ActionPlan:
        first = replace(made.actions[0], input_parameters={"x": (1, 2)})
        return replace(made, actions=(first, *made.actions[1:]))


@pytest.mark.parametrize(
    ("planner", "text"),
    [
        (Forgetful, "proposed actions are missing or duplicate"),
        (Backwards, "the actions are not in schedule order"),
        (Moody, "equal documents give different plans"),
        (Greedy, "planning changed the document|different plans"),
        (Secretive, "read back from JSON, the plan is not equal"),
    ],
)
def test_what_a_planner_does_wrong_is_named(planner: type[Spoiled], text: str) -> None:
    document = {"actions": [{"action_type": "nop"}, {"action_type": "sleep"}]}
    with pytest.raises(AssertionError, match=text):
        check_planner(planner, [document], check_types=False)


def test_a_planner_that_does_right_passes() -> None:
    documents = [
        {"actions": []},
        {"actions": [{"action_type": "nop"}] * 3, "options": {"ordering": "slots"}},
    ]
    check_planner(WeightPlanner, documents)
    check_planner(WeightPlanner, [{"actions": [{"action_type": "mine"}]}], action_type("mine"))
