# SPDX-License-Identifier: Apache-2.0
"""What changed since an earlier plan of a deployment, and what is no longer there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.plan.model import ActionPlan
from planner.plan.states import ActionState, StateReason
from planner.planners.deployment.planner import DeploymentPlanner
from planner.testing import applied, plan


def planned(tasks: list[dict[str, Any]], **more: Any) -> ActionPlan:
    whole = [{"type": "puppet", "version": 2, "role": "x", **task} for task in tasks]
    nodes = [{"uid": "1", "roles": ["x"]}]
    document = {"kind": "deployment", "tasks": whole, "nodes": nodes, **more}
    return plan(DeploymentPlanner, document, check_types=False)


def since(earlier: list[dict[str, Any]], now: list[dict[str, Any]]) -> ActionPlan:
    return planned(now, changed_since=applied(planned(earlier)).to_dict())


def notes(made: ActionPlan) -> list[str]:
    return [text for text in made.warnings if "not checked" not in text]


@pytest.mark.parametrize(
    ("number", "more"), [(1, ""), (4, ""), (5, ""), (6, " and 1 more"), (8, " and 3 more")]
)
def test_five_of_those_that_are_gone_are_named_and_the_others_counted(
    number: int, more: str
) -> None:
    made = since([{"id": "a"}, *({"id": f"gone{i}"} for i in range(number))], [{"id": "a"}])
    named = ", ".join(f"1/gone{i}" for i in range(min(number, 5)))
    assert notes(made) == [
        f"no longer there since plan 00000000: {named}{more}",
        "nothing changed since plan 00000000",
    ]
    assert made.actions == ()


def test_what_depends_on_a_change_names_the_first_cause_also_through_others() -> None:
    tasks = [{"id": "a"}, {"id": "b", "requires": "a"}, {"id": "c", "requires": "b"}, {"id": "d"}]
    changed = [{**tasks[0], "parameters": {"manifest": "new"}}, *tasks[1:]]
    made = since(tasks, changed)
    assert {action.label: action.reason for action in made.actions} == {
        "1/a": "its manifest changed",
        "1/b": "depends on 1/a, which changed",
        "1/c": "depends on 1/a, which changed",
    }
    assert notes(made) == []


@pytest.mark.parametrize(
    ("before", "now", "why"),
    [
        ({}, {"parameters": {"manifest": "a"}}, "its manifest changed"),
        ({"parameters": {"manifest": "a"}}, {}, "its manifest changed"),
        ({"parameters": {"b": 1, "a": 1}}, {"parameters": {"b": 2, "a": 2}}, "its a, b changed"),
        ({"type": "shell"}, {}, "it was of type shell"),
        ({"condition": "false"}, {}, "its condition is true now"),
        ({}, {"condition": "false"}, "its condition is false now"),
        ({}, {}, None),
        ({"timeout": 5}, {"timeout": 6}, None),
        ({"condition": "false"}, {"condition": "false", "parameters": {"a": 1}}, None),
    ],
)
def test_a_task_is_run_again_for_what_its_action_does(
    before: dict[str, Any], now: dict[str, Any], why: str | None
) -> None:
    made = since([{"id": "t", **before}], [{"id": "t", **now}])
    assert {action.label: action.reason for action in made.actions} == ({"1/t": why} if why else {})


def test_a_new_task_runs_unless_its_condition_is_false() -> None:
    now = [
        {"id": "a"},
        {"id": "b"},
        {"id": "c", "condition": "false"},
        {"id": "s", "type": "stage"},
    ]
    made = since([{"id": "a"}], now)
    assert {action.label: action.reason for action in made.actions} == {
        "1/b": "it is not in plan 00000000"
    }


@pytest.mark.parametrize("state", ActionState)
def test_what_did_not_succeed_counts_as_changed_with_what_depends_on_it(state: ActionState) -> None:
    tasks: list[dict[str, Any]] = [{"id": "a"}, {"id": "b", "requires": ["a"]}, {"id": "c"}]
    first, *others = applied(planned(tasks)).actions
    earlier = replace(planned(tasks), actions=(replace(first, state=state), *others))
    again = planned(tasks, changed_since=earlier.to_dict())
    expected = {
        "1/a": f"it is {state} in plan 00000000",
        "1/b": "depends on 1/a, which changed",
    }
    is_done = state is ActionState.SUCCEEDED
    assert {a.label: a.reason for a in again.actions} == ({} if is_done else expected)


def test_what_was_skipped_because_it_was_done_has_not_changed() -> None:
    (action,) = planned([{"id": "a"}]).actions
    reasons = (StateReason.ALREADY_DONE, StateReason.OPERATOR)
    left = []
    for reason in reasons:
        skipped = replace(action, state=ActionState.SKIPPED, state_reason=reason)
        earlier = replace(planned([{"id": "a"}]), actions=(skipped,))
        left.append(len(planned([{"id": "a"}], changed_since=earlier.to_dict()).actions))
    assert left == [0, 1]
