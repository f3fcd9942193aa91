# SPDX-License-Identifier: Apache-2.0
"""Graphs that Fuel's own serializer made, edge by edge, and whole sets of tasks.

An edge is (before, after) by name; joins are expanded. Where Fuel picked one node for policy
``any``, ours waits for one of all that it could have picked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import fuel_tasks
import pytest

from planner import documents
from planner.errors import InvalidInput
from planner.plan.model import ActionPlan
from planner.planners.deployment import message
from planner.planners.deployment.planner import DeploymentPlanner
from planner.testing import plan

FOLDER = Path(__file__).parents[2] / "cases" / "fuel"
CASES: dict[str, dict[str, Any]] = {
    file.stem: json.loads(file.read_text(encoding="utf-8"))
    for file in sorted(FOLDER.glob("*.json"))
}


def tasks_of(case: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the tasks of a case; it is skipped if a released set is asked for and missing."""
    name = case.get("tasks_file", "")
    if name.startswith("fuel-library-"):
        tasks = fuel_tasks.released(name)
    else:
        tasks = documents.read(FOLDER / name).value if name else case["tasks"]
    return [*tasks, *case.get("extra_tasks", ())]


def planned(case: Mapping[str, Any], **fields: Any) -> ActionPlan:
    document = {"kind": "deployment", "names": "exact", "tasks": tasks_of(case), **fields}
    document["nodes"] = case["nodes"]
    return plan(DeploymentPlanner, document, check_types=False)


def named(link: Mapping[str, str]) -> str:
    return f"{'null' if link['node'] == 'sync' else link['node']}/{link['task']}"


def cases_with(field: str) -> list[Any]:
    return [pytest.param(case, id=name) for name, case in CASES.items() if field in case]


@pytest.mark.parametrize("case", cases_with("expected"))
def test_tasks_edges_and_tolerances_are_those_of_fuel(case: Mapping[str, Any]) -> None:
    expected = case["expected"]
    made = planned(case)
    told = message.write(made)
    tasks, edges = {}, set()
    any_of: dict[str, list[set[str]]] = {}
    for node in told["nodes"]:
        uid = "null" if node["node"] == "sync" else node["node"]
        tasks[uid] = sorted(task["task"] for task in node["tasks"])
        for task in node["tasks"]:
            name = f"{uid}/{task['task']}"
            links = [*task.get("requires", ()), *task.get("after", ())]
            edges |= {(named(link), name) for link in links}
            any_of[name] = [set(map(named, group)) for group in task.get("requires_any", ())]
    assert tasks == {uid: ids for uid, ids in expected["tasks"].items() if ids}
    assert edges == set(map(tuple, expected["edges"]))
    for choice in expected.get("any", ()):
        pickable = {first for found in choice["edges_if_picked"].values() for first, _ in found}
        assert not pickable or pickable in any_of[choice["task"]]
    groups = [
        (group["name"], sorted(group["node_ids"]), group["fault_tolerance"])
        for group in expected["fault_tolerance_groups"]
    ]
    assert groups == [
        (t["name"], sorted(t["nodes"]), t["failed_nodes"])
        for t in made.tolerances
        if t["name"] != "no group"
    ]


@pytest.mark.parametrize("case", cases_with("graph_before_error"))
def test_a_loop_is_refused(case: Mapping[str, Any]) -> None:
    edges = case["graph_before_error"]["edges"]
    with pytest.raises(InvalidInput, match="a cycle: ") as refused:
        planned(case)
    assert all(f"{first} -> {then}" in str(refused.value) for first, then in edges[:1])


@pytest.mark.parametrize("case", cases_with("expected_role_based"))
def test_priorities_are_those_of_fuel(case: Mapping[str, Any]) -> None:
    made = planned(case, deployment_engine="role")
    stage = {a.label: (a.reason or "").partition(":")[0] for a in made.actions}
    expected = case["expected_role_based"]
    wanted: dict[str, str] = {}
    order: list[str] = []
    for hooks in ("pre_deployment", "post_deployment"):
        for hook in expected[hooks]:
            name = f"{hooks.replace('_', '-')}-{hook['priority']}"
            wanted |= {f"{uid}/{hook['id']}": name for uid in hook["uids"]}
    for entry in expected["deployment_info"]:
        for task in entry["tasks"]:
            # Fuel runs a task again for each role of a node, ours once.
            wanted.setdefault(f"{entry['uid']}/{task}", f"deployment-{entry['priority']}")
        order += [f"{entry['uid']}/{task}" for task in entry["tasks"]]
    assert {name: at for name, at in stage.items() if not name.startswith("join/")} == wanted
    place = {action.label: i for i, action in enumerate(made.actions)}
    for uid in {name.partition("/")[0] for name in order}:
        own = [place[name] for name in dict.fromkeys(order) if name.startswith(f"{uid}/")]
        assert own == sorted(own)


@pytest.mark.parametrize(
    ("number", "engine", "sentence"),
    [
        ("45", "auto", "no task 'zzz'"),
        ("47", "task", "needs version 2.x of every task: 't' has none"),
        ("75", "role", "no task is called 'nope'"),
    ],
)
def test_what_fuel_refuses_is_refused(number: str, engine: str, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        planned(CASES[number], deployment_engine=engine)


@pytest.mark.parametrize("case", cases_with("expected"))
def test_the_message_is_read_back_into_a_plan_of_equal_digest(case: Mapping[str, Any]) -> None:
    made = planned(case)
    told = json.loads(json.dumps(message.write(made)))
    assert plan(DeploymentPlanner, told, check_types=False).digest == made.digest


def check_whole(tasks: list[dict[str, Any]], *, by_role: bool) -> None:
    roles = {task["id"]: task["role"] for task in tasks if task["type"] == "group"}
    disk = ["disk" if "disk" in roles else "cinder"]
    nodes = [*fuel_tasks.nodes(tasks, 2), {"uid": "6", "roles": disk}]
    made = planned({"tasks": tasks, "nodes": nodes})
    assert any(a.label.startswith("join/deployment-") for a in made.actions) == by_role
    assert len(made.actions) > 200
    told = json.loads(json.dumps(message.write(made)))
    assert by_role or plan(DeploymentPlanner, told, check_types=False).digest == made.digest


@pytest.mark.parametrize("name", ["fuel-library-tasks", "fuel-library-v1-tasks"])
def test_whole_released_sets_are_planned(name: str) -> None:
    check_whole(fuel_tasks.released(f"{name}.yaml"), by_role="v1" in name)


@pytest.mark.parametrize("by_role", [False, True])
def test_a_generated_set_of_their_size_is_planned(by_role: bool) -> None:
    tasks = fuel_tasks.generated()
    assert (len(tasks), sum(fuel_tasks.shape(tasks)["links"].values())) == (175, 635)
    check_whole(fuel_tasks.without_versions(tasks) if by_role else tasks, by_role=by_role)


def test_the_generated_set_has_the_shape_of_release_8() -> None:
    ours, fuels = fuel_tasks.generated(), fuel_tasks.released(fuel_tasks.RELEASE_8)
    assert fuel_tasks.shape(ours) == fuel_tasks.shape(fuels)
