# SPDX-License-Identifier: Apache-2.0
"""The groups of templates: what is read of each type, and what is said of what is wrong.

A file of ``tests/cases/groups`` is a template. Beside it are ``groups``: resources that are added
to it one by one. For each it has the fields of the group that it ``is``, or what is ``wrong``, from
the place of the resource.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from planner import documents
from planner.planners.rolling_update import template
from planner.planners.rolling_update.definitions import Configuration
from planner.planners.rolling_update.functions import Resolver
from planner.planners.rolling_update.template import Group
from planner.planners.rolling_update.update_policy import UpdatePolicy

FOLDER = Path(__file__).parents[4] / "cases" / "groups"
CASES = {file.stem: documents.read(file).value for file in sorted(FOLDER.glob("*.yaml"))}


def read(
    case: Mapping[str, Any], resource: Any, *, with_policies: bool = True
) -> tuple[Group | None, list[str]]:
    key = "resources" if "resources" in case else "Resources"
    whole = {**case, key: {**case[key], "group": resource}}
    resolver = Resolver(whole, {}, ())
    found = template.groups(whole, resolver, with_policies=with_policies)
    return found.get("group"), [str(m).removeprefix(f"{key}.group") for m in resolver.mistakes]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_group_is_read_or_what_is_wrong_is_said(
    case: Mapping[str, Any], subtests: pytest.Subtests
) -> None:
    for group in case["groups"]:
        with subtests.test(group["title"]):
            require_read(case, group)


def require_read(case: Mapping[str, Any], group: Mapping[str, Any]) -> None:
    """A group is read as its case says, and without its policy from an old template."""
    found, said = read(case, group["of"])
    assert said == group.get("wrong", [])
    if "is" in group:
        assert (found is None) == (group["is"] is None)
    for field, value in (group.get("is") or {}).items():
        read_value = getattr(found, field)
        if field == "policy" and value is not None:
            assert read_value == UpdatePolicy(**value)
        elif field == "configuration":
            assert (read_value.name, read_value.of("0")) == tuple(value)
        elif field == "notes":
            assert list(read_value) == value
        else:
            assert (read_value, type(read_value)) == (value, type(value)), field
    old, said = read(case, group["of"], with_policies=False)
    assert old is None or old.policy is None
    policies = ("UpdatePolicy", "update_policy", "rolling_updates", "CreationPolicy")
    assert said == [t for t in group.get("wrong", []) if not any(p in t for p in policies)]


@pytest.mark.parametrize(
    ("whole", "sentence"),
    [
        ({}, "document: a template has a mapping of Resources"),
        ({"Resources": []}, "Resources: a template has a mapping of Resources"),
        ({"resources": None}, "resources: a template has a mapping of Resources"),
        ({"Resources": {"a": 1}}, "Resources.a: a resource is a mapping with Type and Properties"),
    ],
)
def test_a_template_without_resources_is_refused(whole: Mapping[str, Any], sentence: str) -> None:
    resolver = Resolver(whole, {}, ())
    assert template.groups(whole, resolver, with_policies=True) == {}
    assert [str(mistake) for mistake in resolver.mistakes] == [sentence]


def test_what_is_no_group_is_none() -> None:
    whole = {"Resources": {"a": {"Type": "Any"}, "b": {"Type": ["x"]}, "c": {}}}
    assert template.groups(whole, Resolver(whole, {}, ()), with_policies=True) == {}


def test_a_group_has_the_size_that_is_desired_or_what_there_is_within_its_bounds() -> None:
    fields: Any = {"name": "g", "places": {}, "policy": None}
    configuration = Configuration(name="c", value={})
    for desired, least, most, capacity, size in (
        (4, 1, 3, 9, 4),
        (0, 1, 3, 9, 0),
        (None, 1, 3, None, 1),
        (None, 1, 3, 0, 1),
        (None, 1, 3, 2, 2),
        (None, 1, 3, 9, 3),
        (None, 1, None, 9, 9),
        (None, 2, None, 1, 2),
    ):
        group = Group(
            configuration=configuration, desired=desired, least=least, most=most, **fields
        )
        assert group.size(capacity) == size
