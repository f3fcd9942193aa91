# SPDX-License-Identifier: Apache-2.0
"""No field of Fuel's public task sets is dropped in silence: tests/cases/fuel/fields.yaml."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import fuel_tasks
import pytest

from planner import documents
from planner.errors import InvalidInput
from planner.plan.model import ActionPlan
from planner.planners.deployment.planner import DeploymentPlanner
from planner.testing import plan

LISTED: Mapping[str, Mapping[str, Any]] = documents.read(
    Path(__file__).parents[3] / "cases/fuel/fields.yaml"
).value
NAMES = {name for listed in LISTED.values() for name in listed}
FIELDS = [
    pytest.param(becomes, name, row, id=f"{name}-{becomes}")
    for becomes, listed in LISTED.items()
    for name, row in listed.items()
]
OTHERS = [
    {"id": "a", "type": "shell", "version": 2, "role": "x"},
    {"id": "b", "type": "shell", "version": 2, "role": "y"},
    {"id": "c", "type": "shell", "version": 2, "role": ["x", "y"]},
]
RELATIONS = ("cross-depends", "cross-depended-by")


def tasks_of(name: str, row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the task without the field, and the task with it."""
    kind, _, inside = name.rpartition(".")
    base = {"id": "t", "type": kind or "shell", "version": 2, "role": ["x"], **row.get("base", {})}
    if kind in RELATIONS:
        base["type"] = "shell"
        yield base
        yield {**base, kind: [{**base[kind][0], inside: row["given"]}]}
    else:
        yield base
        yield {**base, **({"parameters": {inside: row["given"]}} if kind else {name: row["given"]})}


def planned(task: Mapping[str, Any], row: Mapping[str, Any]) -> ActionPlan:
    roles = (["x"], ["y"], ["x"])
    nodes = [{"uid": str(uid), "roles": found} for uid, found in enumerate(roles, 1)]
    document = {"kind": "deployment", "tasks": [*OTHERS, task], "nodes": nodes}
    return plan(DeploymentPlanner, {**document, **row.get("document", {})})


@pytest.mark.parametrize(("becomes", "name", "row"), FIELDS)
def test_a_field_becomes_what_the_list_says(
    becomes: str, name: str, row: Mapping[str, Any]
) -> None:
    without, given = tasks_of(name, row)
    before = planned(without, row)
    if becomes == "refused":
        with pytest.raises(InvalidInput, match=name):
            planned(given, row)
        return
    after = planned(given, row)
    says = [text for text in after.warnings if text not in before.warnings]
    differs = replace(after, warnings=()) != replace(before, warnings=())
    if becomes == "applied":
        assert differs
        assert not any("ignored" in text for text in says)
    elif becomes == "warned":
        assert not differs
        assert [repr(name.rpartition(".")[2]) in text for text in says] == [True]
    else:
        kind = name.partition(".")[0]
        assert {a.action_type for a in after.actions if a.label.endswith("/t")} == {"skipped"}
        assert any(
            f"the action type {kind!r}: tasks of this type are skipped" in w for w in after.warnings
        )


def fields_of(task: Mapping[str, Any]) -> Iterator[str]:
    yield from task
    for field in RELATIONS:
        for one in task.get(field) or () if isinstance(task.get(field), list) else ():
            yield from (f"{field}.{name}" for name in one if isinstance(one, dict))
    yield from (f"{task['type']}.{name}" for name in task.get("parameters") or ())


def test_the_list_has_every_field_of_the_sets_in_the_folder() -> None:
    missing = {
        (file.name, field)
        for file in fuel_tasks.files()
        for task in documents.read(file, last_holds=True).value
        for field in fields_of(task)
        if field not in NAMES
    }
    assert missing == set()


def test_every_set_in_the_folder_is_planned() -> None:
    values = ("CLUSTER_ID", "MASTER_IP", "CN_HOSTNAME", "OPENSTACK_VERSION")
    nodes = [{"uid": "1", "roles": ["primary-controller"]}, {"uid": "2", "roles": ["compute"]}]
    document = {"kind": "deployment", "nodes": nodes, "placeholders": dict.fromkeys(values, 1)}
    for file in fuel_tasks.files():
        made = plan(DeploymentPlanner, {**document, "tasks_files": [str(file)]})
        assert {a.label.partition("/")[0] for a in made.actions} >= {"1", "2"}, file
