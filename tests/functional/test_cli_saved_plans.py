# SPDX-License-Identifier: Apache-2.0
"""Saved plans that were changed by hand or come from elsewhere: refused, and nothing is stored."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from command_line import CommandLine

Value = dict[str, Any]


def of_action(**fields: Any) -> Callable[[Value], None]:
    """Return a change of the first action."""
    return lambda plan: plan["actions"][0].update(fields)


def of_plan(**fields: Any) -> Callable[[Value], None]:
    """Return a change of the plan."""
    return lambda plan: plan.update(fields)


def cycle(plan: Value) -> None:
    """Let the first two actions wait for each other."""
    first, second = plan["actions"][:2]
    first["parents"], second["parents"] = [second["uuid"]], [first["uuid"]]


CHANGES = {
    "an action that a run ended": (
        of_action(state="SUCCEEDED", outcome="changed"),
        "actions[0].state: SUCCEEDED is what a run writes",
    ),
    "an attempt": (of_action(attempts=2), "actions[0].attempts: 2 is what a run writes"),
    "a plan that runs": (of_plan(state="ONGOING"), "state: the plan is ONGOING"),
    "the word last": (of_plan(uuid="last"), "uuid: 'last' is not a UUID"),
    "a pattern": (of_plan(uuid="%"), "uuid: '%' is not a UUID"),
    "an option": (of_plan(uuid="--help"), "uuid: '--help' is not a UUID"),
    "30 February": (
        of_plan(created_at="2026-02-30T00:00:00Z"),
        "created_at: '2026-02-30T00:00:00Z' is not a time that exists",
    ),
    "before year 1": (
        of_action(started_at="0001-01-01T00:00:00+14:00"),
        "started_at: '0001-01-01T00:00:00+14:00' is not a time that exists",
    ),
    "parameters": (
        of_action(input_parameters={"duration": "long"}),
        "actions[0].input_parameters.duration: 'long' is not a number",
    ),
    "an unknown type": (
        of_action(action_type="slep"),
        "actions[0].action_type: no action type 'slep'; did you mean 'sleep'?",
    ),
    "a cycle": (cycle, "actions[0].parents[0]: a cycle: "),
    "an unknown parent": (
        of_action(parents=["11111111-1111-4111-8111-111111111111"]),
        "actions[0].parents[0]: a comes after 11111111-1111-4111-8111-111111111111, which is not",
    ),
    "too long": (of_action(estimate_s=1e308), "actions[0].estimate_s: 1e+308 is more than"),
    "too many retries": (of_action(retries=10**30), "actions[0].retries: 1"),
    "too many digits": (of_plan(limits={"node:*": 10**320}), "limits.node:*: 1"),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("verb", [("create",), ("apply", "--yes")])
def test_a_plan_that_is_wrong_is_refused_with_its_line_and_not_stored(
    actionplan: CommandLine, name: str, verb: tuple[str, ...]
) -> None:
    change, expected = CHANGES[name]
    actions = (
        {"name": n, "action_type": "sleep", "input_parameters": {"duration": 0}} for n in "ab"
    )
    actionplan.document("plan.yaml", *actions)
    actionplan.good("create", "plan.yaml", "--dry-run", "--out", "plan.json")
    value = json.loads((actionplan.folder / "plan.json").read_text(encoding="utf-8"))
    del value["digest"]
    change(value)
    (actionplan.folder / "plan.json").write_text(json.dumps(value, indent=1), encoding="utf-8")
    ended = actionplan(*verb, "plan.json")
    assert (ended.code, actionplan.plans()) == (1, [])
    told = [line for line in ended.err.splitlines() if expected in line]
    assert told, ended.err
    assert "plan.json:" in told[0]


def test_apply_stores_nothing_that_it_then_refuses(actionplan: CommandLine) -> None:
    actionplan.document("plan.yaml", {"action_type": "from_elsewhere"})
    ended = actionplan("apply", "plan.yaml", "--yes", "--no-check-types")
    assert ended.code == 1
    assert "needs action types that no plugin offers: from_elsewhere" in ended.err
    assert actionplan.plans() == []


def test_durations_at_the_end_of_their_range_are_shown(actionplan: CommandLine) -> None:
    longest = {"action_type": "nop", "estimate_s": 999_999_999}
    actionplan.document("plan.yaml", *[{"name": f"a{i}", **longest} for i in range(3)])
    actionplan.good("create", "plan.yaml")
    for words in (("list",), ("show", "last"), ("simulate", "last")):
        actionplan.good(*words)
