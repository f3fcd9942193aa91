# SPDX-License-Identifier: Apache-2.0
"""Why a group is updated: what counts as a change of its definition, and how it is told."""

from __future__ import annotations

from typing import Any

import pytest

from planner.planners.rolling_update.causes import change, differences
from planner.planners.rolling_update.definitions import Configuration
from planner.planners.rolling_update.template import Group
from planner.planners.rolling_update.update_policy import UpdatePolicy

POLICY = UpdatePolicy()


def group(
    value: dict[str, Any], name: str = "c", *, policy: UpdatePolicy | None = POLICY, **more: Any
) -> Group:
    fields: dict[str, Any] = {"places": {}, "desired": 1, "least": 0, "most": None, **more}
    configuration = Configuration(name=name, value=value)
    return Group(name="g", configuration=configuration, policy=policy, **fields)


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ({}, {}, []),
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": "1"}, []),
        ({"a": 1.5}, {"a": "1.5"}, []),
        ({"a": True}, {"a": "true"}, []),
        ({"a": True}, {"a": 1}, ["a"]),
        ({"a": None}, {}, []),
        ({"a": 1}, {}, ["a"]),
        ({}, {"a": 1}, ["a"]),
        ({"a": 1, "b": 2}, {"b": 3, "c": 4}, ["a", "b", "c"]),
        ({"a": [1, "2"]}, {"a": ["1", 2]}, []),
        ({"a": [1, 2]}, {"a": [2, 1]}, ["a"]),
        ({"a": [1]}, {"a": [1, 1]}, ["a"]),
        ({"a": [{"b": 1}]}, {"a": [{"b": "1"}]}, []),
        ({"a": [{"b": 1}]}, {"a": [{"b": 2}]}, ["a"]),
        ({"a": [{"b": 1}]}, {"a": [{"c": 1}]}, ["a"]),
        ({"a": {"b": 1, "c": {"d": 1}}}, {"a": {"b": 2, "c": {"d": 2}}}, ["a.b", "a.c.d"]),
        ({"a": {"b": 1}}, {"a": 1}, ["a"]),
        ({"a": [1]}, {"a": 1}, ["a"]),
    ],
)
def test_the_keys_whose_values_differ_are_listed(
    old: dict[str, Any], new: dict[str, Any], changed: list[str]
) -> None:
    assert differences(old, new) == changed


UNCHANGED = "g is not updated: new has another name than c, but the same content"


@pytest.mark.parametrize(
    ("old", "new", "why", "warnings"),
    [
        (None, group({"a": 1}), None, []),
        (group({"a": 1}), group({"a": 1}), None, []),
        (group({"a": 1}), group({"a": 2}), "a of c changed", []),
        (group({"a": 1, "b": 1}), group({"a": 2, "b": 2}), "a and b of c changed", []),
        (group({"a": 1}), group({"b": 1, "d": 1}), "a, b and d of c changed", []),
        (group({"a": 1}), group({"a": 2}, "new"), "a of new in place of c changed", []),
        (
            group({"a": 1}, places={"Zones": ["x"]}),
            group({"a": 1}, places={"Zones": ["y"]}),
            "Zones changed",
            [],
        ),
        (
            group({"a": 1}, places={"Zones": ["x"]}),
            group({"a": 2}, places={"Subnets": ["y"]}),
            "a of c and Zones and Subnets changed",
            [],
        ),
        (group({"a": 1}), group({"a": 1}, "new"), None, [UNCHANGED]),
        (group({"a": 1}), group({"a": 1}, "new", policy=None), None, []),
        (
            group({"a": 1}),
            group({"a": 2}, policy=None),
            None,
            [
                "g is not updated although a of c changed: it has no update policy, "
                "so members keep the old definition"
            ],
        ),
    ],
)
def test_a_group_is_updated_for_what_changed_where_it_has_a_policy(
    old: Group | None, new: Group, why: str | None, warnings: list[str]
) -> None:
    found = change(new, old)
    assert (found.cause, list(found.warnings)) == (why, warnings)
