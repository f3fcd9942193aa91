# SPDX-License-Identifier: Apache-2.0
"""The fields of tasks: each form that is accepted, and the sentence for what is not."""

from __future__ import annotations

import re
from typing import Any

import pytest

from planner.errors import InvalidInput
from planner.planners.deployment import task_fields
from planner.planners.deployment.planner import DeploymentPlanner, allowed
from planner.planners.deployment.task_fields import translated
from planner.testing import plan


@pytest.mark.parametrize(
    ("version", "major"),
    [
        *[(None, 1), (1, 1), (1.5, 1), ("1", 1), ("1.0.0", 1), (" 1.2 ", 1)],
        *[(2, 2), (2.0, 2), (2.1, 2), ("2", 2), ("2.0.0", 2), ("2.10", 2)],
    ],
)
def test_the_major_version_of_a_task_is_1_or_2(version: object, major: int) -> None:
    assert task_fields.major(version) == major


@pytest.mark.parametrize("version", [0, 3, "3.0.0", "12", "21", "", "2.", "2.x", "v2", True, -1])
def test_any_other_version_is_refused(version: object) -> None:
    with pytest.raises(ValueError, match=re.escape(f"version {version!r} is not supported")):
        task_fields.major(version)


@pytest.mark.parametrize(
    ("strategy", "found"),
    [
        ({}, ("parallel", None)),
        ({"type": "parallel"}, ("parallel", None)),
        ({"type": "parallel", "amount": None}, ("parallel", None)),
        ({"type": "parallel", "amount": 1}, ("parallel", 1)),
        ({"amount": "6"}, ("parallel", 6)),
        ({"type": "one_by_one"}, ("one_by_one", 1)),
        ({"type": "one-by-one", "amount": 5}, ("one_by_one", 1)),
    ],
)
def test_a_strategy_is_a_type_and_how_many_nodes_at_once(
    strategy: object, found: tuple[str, int | None]
) -> None:
    assert task_fields.strategy(strategy) == found


@pytest.mark.parametrize(
    ("strategy", "sentence"),
    [
        ("parallel", "a strategy is a mapping with 'type' and, for parallel, 'amount'"),
        ({"kind": "parallel"}, "a strategy is a mapping with 'type' and, for parallel, 'amount'"),
        ({"type": "all"}, "'all' is not a type of strategy: accepted are parallel and one-by-one"),
        ({"amount": 0}, "amount: 0 is not a whole number of 1 or more"),
        ({"amount": 1.5}, "amount: 1.5 is not a whole number of 1 or more"),
    ],
)
def test_any_other_strategy_is_refused(strategy: object, sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        task_fields.strategy(strategy)


@pytest.mark.parametrize(
    ("value", "whole", "number"),
    [
        (1, False, 1),
        (0.5, False, 0.5),
        ("180", False, 180),
        (0, True, 0),
        (1, True, 1),
        ("2.0", True, 2),
    ],
)
def test_a_number_is_above_0_or_whole(value: object, whole: bool, number: float) -> None:
    assert task_fields.number(value, whole=whole) == number


@pytest.mark.parametrize(
    ("value", "whole", "sentence"),
    [
        (0, False, "0 is not more than 0"),
        ("-1", False, "'-1' is not more than 0"),
        (-1, True, "-1 is not a whole number of 0 or more"),
        (0.5, True, "0.5 is not a whole number of 0 or more"),
        ("x", True, "'x' is not a number"),
        (True, False, "True is not a number"),
    ],
)
def test_any_other_number_is_refused(value: object, whole: bool, sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        task_fields.number(value, whole=whole)


@pytest.mark.parametrize(
    ("value", "kind", "patterns"),
    [
        (None, "nowhere", ()),
        ([], "nowhere", ()),
        ("*", "every", ()),
        (["*"], "every", ()),
        ("master", "master", ()),
        (["master"], "master", ()),
        ("a", "patterns", ("a",)),
        (["a"], "patterns", ("a",)),
        (["a", "master"], "patterns", ("a", "master")),
    ],
)
def test_a_task_runs_on_the_nodes_of_its_role(
    value: object, kind: str, patterns: tuple[str, ...]
) -> None:
    assert task_fields.where(value) == (kind, patterns)


@pytest.mark.parametrize(
    ("relation", "kind", "patterns"),
    [
        ({}, "every", ()),
        ({"role": "*"}, "every", ()),
        ({"role": None}, "sync", ()),
        ({"role": [None]}, "sync", ()),
        ({"role": "self"}, "self", ()),
        ({"role": ["self"]}, "self", ()),
        ({"role": "master"}, "master", ()),
        ({"role": ["a", "b"]}, "patterns", ("a", "b")),
        ({"role": "a", "tags": "b"}, "patterns", ("b",)),
        ({"role": "a", "tags": None}, "sync", ()),
    ],
)
def test_a_relation_means_the_nodes_of_its_tags_or_role(
    relation: dict[str, Any], kind: str, patterns: tuple[str, ...]
) -> None:
    assert task_fields.role_of(relation) == (kind, patterns)


@pytest.mark.parametrize(
    ("value", "nodes"),
    [
        *[(None, 11), (0, 0), (1, 1), ("3", 3), (" 7 ", 7), (12, 12)],
        *[("0%", 0), ("19%", 1), ("20%", 2), ("100 %", 10)],
        *[(-1, 9), (-10, 0), (-11, 0), ("-20%", 8), ("-100%", 0), ("-1%", 9)],
    ],
)
def test_so_many_of_ten_nodes_may_fail(value: object, nodes: int) -> None:
    assert allowed(value, 10) == nodes


@pytest.mark.parametrize("value", ["", "x", "1.5", "10%%", "1234567890", "٣"])
def test_any_other_tolerance_is_refused(value: str) -> None:
    sentence = f"{value!r} is neither a number of nodes nor a percentage such as 20%"
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        allowed(value, 10)


def test_parameters_have_the_names_of_action_types_and_what_is_about_the_task_is_left_out() -> None:
    given = {
        "puppet_manifest": "m",
        "puppet_modules": ":/a::/b:",
        "cmd": "c",
        "uris": 1,
        "own": 2,
        "strategy": {},
        "fault_tolerance": 1,
        "interval": 5,
        "dir_permissions": "0755",
        "timeout": 30,
        "retries": 4,
    }
    task = {"type": "shell", "parameters": given}
    found = translated(task)
    assert found == {
        "manifest": "m",
        "modules": ["/a", "/b"],
        "command": "c",
        "dir_mode": "0755",
        "uris": 1,
        "own": 2,
    }
    assert translated({"type": "reboot"}) == {}


@pytest.mark.parametrize(("own", "found"), [({}, (30, 4)), ({"timeout": 5, "retries": 0}, (5, 0))])
def test_timeout_and_retries_of_a_task_replace_those_of_its_parameters(
    own: dict[str, Any], found: tuple[float, int]
) -> None:
    parameters = {"manifest": "m", "timeout": 30, "retries": 4}
    task = {"id": "t", "type": "puppet", "version": 2, "role": "x", "parameters": parameters}
    nodes = [{"uid": 1, "roles": "x"}]
    document = {"kind": "deployment", "tasks": [{**task, **own}], "nodes": nodes}
    (action,) = plan(DeploymentPlanner, document, check_types=False).actions
    assert (action.timeout_s, action.retries) == found


def refusals(**task: Any) -> list[str]:
    whole = {"id": "t", "type": "puppet", "version": 2, "role": "x", **task}
    document = {"kind": "deployment", "tasks": [whole], "nodes": [{"uid": 1, "roles": "x"}]}
    with pytest.raises(InvalidInput) as refused:
        plan(DeploymentPlanner, document, check_types=False)
    return [str(mistake) for mistake in refused.value.mistakes]


PATTERN = (
    "'(' is not accepted as a regular expression: missing ), unterminated subpattern at position 0"
)


@pytest.mark.parametrize(
    ("task", "mistakes"),
    [
        *[({field: "("}, [f"tasks[0].{field}: {PATTERN}"]) for field in ("role", "requires")],
        ({"role": None, "roles": "("}, [f"tasks[0].roles: {PATTERN}"]),
        ({"tags": ["a", "("]}, [f"tasks[0].tags: {PATTERN}"]),
        ({"role": None, "groups": "("}, [f"tasks[0].groups: {PATTERN}"]),
        ({"requires": ["a", "("]}, [f"tasks[0].requires[1]: {PATTERN}"]),
        ({"required_for": ["("]}, [f"tasks[0].required_for[0]: {PATTERN}"]),
        ({"cross-depends": "("}, [f"tasks[0].cross-depends: {PATTERN}"]),
        ({"cross-depends": ["a", {"name": "("}]}, [f"tasks[0].cross-depends[1]: {PATTERN}"]),
        (
            {"cross-depended-by": {"name": "a", "role": "("}},
            [f"tasks[0].cross-depended-by: {PATTERN}"],
        ),
        ({"cross-depends": {"role": "a"}}, ["tasks[0].cross-depends: the field 'name' is missing"]),
        (
            {"version": 3},
            ["tasks[0].version: version 3 is not supported: accepted are 1.x, 2.x and null"],
        ),
        (
            {"strategy": {"amount": 0}},
            ["tasks[0].strategy: amount: 0 is not a whole number of 1 or more"],
        ),
        (
            {"parameters": {"timeout": "0", "retries": "-1", "strategy": {"amount": 0}}},
            [
                "tasks[0].parameters.retries: '-1' is not a whole number of 0 or more",
                "tasks[0].parameters.strategy: amount: 0 is not a whole number of 1 or more",
                "tasks[0].parameters.timeout: '0' is not more than 0",
            ],
        ),
        (
            {"condition": {"a": 1}},
            ["tasks[0].condition: a condition is a text such as settings:a.b == true"],
        ),
        ({"condition": "a ="}, ["tasks[0].condition: not a condition: '=' is not understood"]),
    ],
)
def test_what_is_wrong_with_a_field_of_a_task_is_said_with_its_place(
    task: dict[str, Any], mistakes: list[str]
) -> None:
    assert sorted(refusals(**task)) == mistakes


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        *[(value, None) for value in (None, True, "true", " True ", "settings:on")],
        *[(value, "its condition is false") for value in (False, "false", " FALSE ")],
        ("not   settings:on", "its condition is false: not settings:on"),
        ({"yaql_exp": "true"}, None),
        ({"yaql_exp": "$.x"}, None),
        ({"yaql_exp": False}, "its condition is false"),
    ],
)
def test_a_task_is_skipped_where_its_condition_is_false(condition: Any, reason: str | None) -> None:
    task = {"id": "t", "type": "puppet", "version": 2, "role": "x", "condition": condition}
    document = {"tasks": [task], "nodes": [{"uid": 1, "roles": "x"}], "settings": {"on": True}}
    made = plan(DeploymentPlanner, {"kind": "deployment", **document}, check_types=False)
    (action,) = made.actions
    assert (action.action_type == "skipped") is (reason is not None)
    assert action.input_parameters.get("reason") == reason
