# SPDX-License-Identifier: Apache-2.0
"""What is read of the actions of a solution, and what they have where their entry is silent."""

from __future__ import annotations

from typing import Any

import pytest

from planner.errors import BrokenPlugin, InvalidInput, path_text
from planner.plan.model import Action, ActionPlan, ProposedAction, Touch
from planner.planners.solution import host_of, missing_host
from planner.planners.weight import WeightPlanner
from planner.testing import action_type, plan

NOP = action_type("nop", estimate_s=7.0)


def planned(*entries: dict[str, Any]) -> tuple[Action, ...]:
    actions = [{"action_type": "nop", **entry} for entry in entries]
    return plan(WeightPlanner, {"actions": actions}, NOP).actions


def test_without_a_word_it_is_tried_once_and_without_a_limit_of_time() -> None:
    (action,) = planned({})
    assert (action.retries, action.timeout_s, action.name) == (0, None, "nop-1")


@pytest.mark.parametrize(("estimate", "seconds"), [({}, 7.0), ({"estimate_s": 0}, 0)])
def test_an_estimate_of_its_own_comes_before_that_of_its_type(
    estimate: dict[str, Any], seconds: float
) -> None:
    (action,) = planned(estimate)
    assert action.estimate_s == seconds


def test_names_are_numbered_past_those_that_are_taken() -> None:
    actions = planned({}, {"name": "nop-2"}, {}, {})
    assert [action.name for action in actions] == ["nop-1", "nop-2", "nop-3", "nop-4"]


SERVER = action_type(
    "server",
    touches=[Touch("instance:i1"), Touch("node:h1"), Touch("node:s1")],
    schema={
        "type": "object",
        "additionalProperties": False,
        "properties": {"size": {"minimum": 1}},
    },
    estimate_s=3.0,
)
OWNER = action_type(
    "owner", schema={"type": "object", "properties": {"resource_id": {"type": "string"}}}
)


def solution(*entries: dict[str, Any], check_types: bool = True, **fields: Any) -> ActionPlan:
    document = {"actions": list(entries), **fields}
    return plan(WeightPlanner, document, SERVER, OWNER, check_types=check_types)


@pytest.mark.parametrize(
    ("entry", "resource_id", "parameters"),
    [
        ({}, None, {}),
        ({"resource_id": "i1"}, "i1", {"resource_id": "i1"}),
        (
            {"resource_id": "i1", "input_parameters": {"size": 2}},
            "i1",
            {"resource_id": "i1", "size": 2},
        ),
        (
            {"action_type": "owner", "input_parameters": {"resource_id": "i2"}},
            "i2",
            {"resource_id": "i2"},
        ),
        (
            {
                "action_type": "owner",
                "resource_id": "i1",
                "input_parameters": {"resource_id": "i1"},
            },
            "i1",
            {"resource_id": "i1"},
        ),
        ({"resource_id": None, "input_parameters": None}, None, {}),
    ],
)
def test_the_resource_stands_beside_and_inside_the_parameters(
    entry: dict[str, Any], resource_id: str | None, parameters: dict[str, Any]
) -> None:
    (action,) = solution({"action_type": "server", **entry}).actions
    assert (action.resource_id, action.input_parameters) == (resource_id, parameters)


def test_a_resource_that_is_no_text_is_left_inside() -> None:
    entry = {"action_type": "server", "input_parameters": {"resource_id": 5}}
    (action,) = solution(entry, check_types=False).actions
    assert (action.resource_id, action.input_parameters) == (None, {"resource_id": 5})


def test_mistakes_of_actions_have_their_places() -> None:
    with pytest.raises(InvalidInput) as refused:
        solution(
            {"action_type": "serve"},
            {"action_type": "server", "input_parameters": {"size": 0}},
            {"action_type": "server", "input_parameters": {"resource_id": "i1"}},
            {"action_type": "owner", "resource_id": "a", "input_parameters": {"resource_id": "b"}},
            {"action_type": "server", "resource_id": "a", "input_parameters": {"resource_id": "b"}},
            {"action_type": "join"},
            {"action_type": "owner", "touches": ["node:a", "node", "eats node:a"]},
            {"action_type": "owner", "name": "x"},
            {"action_type": "owner", "name": "x"},
        )
    expected = [
        ("actions[0].action_type", "'serve'"),
        ("actions[1].input_parameters.size", "0 is less than 1"),
        ("actions[2].input_parameters.resource_id", "not a field"),
        ("actions[3].resource_id", "'a' here, 'b' inside"),
        ("actions[4].resource_id", "'a' here, 'b' inside"),
        ("actions[4].input_parameters.resource_id", "not a field"),
        ("actions[5].action_type", "joins"),
        ("actions[6].touches[1]", "'node' is not a touch"),
        ("actions[6].touches[2]", "'eats node:a' is not a touch"),
        ("actions[8].name", "'x' occurs twice"),
    ]
    mistakes = refused.value.mistakes
    assert [path_text(mistake.path) for mistake in mistakes] == [path for path, _ in expected]
    assert [
        fact for m, (_, fact) in zip(mistakes, expected, strict=True) if fact not in m.text
    ] == []


def test_what_is_not_checked_gets_one_warning_for_each_type() -> None:
    entries = [{"action_type": name} for name in ("server", "other", "server", "other")]
    known, unknown, *others = solution(*entries, check_types=False).warnings
    assert ["no plugin" in warning for warning in (known, unknown)] == [False, True]
    assert "'server'" in known
    assert "'other'" in unknown
    assert not [warning for warning in others if "checked" in warning]
    assert not [w for w in solution(entries[0]).warnings if "checked" in w]


def test_touches_are_those_of_the_entry_else_of_the_type_by_the_names_of_hosts() -> None:
    facts = {
        "hosts": {"h1": {"name": "one"}, "h2": {"name": None}, "h3": {}},
        "services": {"s1": {"host": "two"}},
    }
    (action,) = solution({"action_type": "server"}, facts=facts).actions
    assert action.tokens == ("type:server", "instance:i1", "node:one", "node:two")
    (action,) = solution({"action_type": "server"}).actions
    assert action.tokens == ("type:server", "instance:i1", "node:h1", "node:s1")
    entry = {"action_type": "server", "touches": ["node:h1", "uses node:h2", "node:h3"]}
    (action,) = solution(entry, facts=facts).actions
    assert action.tokens == ("type:server", "node:one", "node:h2", "node:h3")
    (action,) = solution({"action_type": "server", "touches": []}, facts=facts).actions
    assert action.tokens == ("type:server",)


def test_what_a_solution_says_of_itself_is_in_the_plan() -> None:
    said = {
        "name": "n",
        "audit_uuid": "a",
        "strategy_name": "s",
        "efficacy_indicators": [{"name": "e"}],
        "global_efficacy": [{"name": "g"}],
    }
    made = solution({"action_type": "server"}, **said)
    found = {field: getattr(made, field) for field in said}
    assert found == {field: tuple(v) if isinstance(v, list) else v for field, v in said.items()}
    made = solution({"action_type": "server"}, **dict.fromkeys(("name", "audit_uuid")))
    assert (made.name, made.audit_uuid, made.efficacy_indicators) == (None, None, ())


def broken(*_: object) -> Any:
    raise RuntimeError("no")


@pytest.mark.parametrize("method", ["touches", "describe", "estimate"])
def test_a_plugin_that_raises_is_broken_and_its_parameters_are_named(method: str) -> None:
    kind = type("Broken", (SERVER,), {method: broken, "TYPE": "broken"})
    entry = {"action_type": "broken", "input_parameters": {"size": 2}}
    with pytest.raises(BrokenPlugin, match=r"RuntimeError: no.*\{'size': 2\}"):
        plan(WeightPlanner, {"actions": [entry]}, kind)


@pytest.mark.parametrize(
    ("kind", "parameters", "facts", "host"),
    [
        ("migrate", {"source_node": "c1"}, {"instances": {"i1": {"host": "c2"}}}, "c1"),
        ("migrate", {"source_node": ""}, {"instances": {"i1": {"host": "c2"}}}, "c2"),
        ("migrate", {"source_node": 5}, {"instances": {"i1": {"host": "c2"}}}, "c2"),
        ("resize", {"source_node": "c1"}, {"instances": {"i1": {"host": "c2"}}}, "c2"),
        ("resize", {}, {"instances": {"i2": {"host": "c2"}}}, None),
        ("resize", {}, {"instances": {"i1": {}}}, None),
        ("resize", {}, {}, None),
    ],
)
def test_the_host_of_an_instance_is_its_source_node_else_a_fact(
    kind: str, parameters: dict[str, Any], facts: dict[str, Any], host: str | None
) -> None:
    action = ProposedAction(
        name="a", action_type=kind, resource_id="i1", input_parameters=parameters
    )
    assert host_of(action, facts) == host
    missing = missing_host(3, action)
    assert missing.path == ("actions", 3)
    assert ("source_node" in missing.text) is (kind == "migrate")
    assert "facts.instances.i1.host" in missing.text
