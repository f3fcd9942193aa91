# SPDX-License-Identifier: Apache-2.0
"""What holds for every role-based deployment: named properties of its stages."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import combinations
from typing import Any

import networkx as nx
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from links import labels_earlier

from planner.plan.model import JOIN, Action, ActionPlan
from planner.planners.deployment.planner import DeploymentPlanner
from planner.testing import plan

FLEETING = settings(max_examples=examples(80), suppress_health_check=list(HealthCheck))
ROLES = ["a", "b", "c"]
#: At most so many nodes of a group at once.
STRATEGIES = {
    None: {"type": "parallel"},
    1: {"type": "one_by_one"},
    2: {"type": "parallel", "amount": 2},
}
Document = dict[str, Any]


def few(values: Iterable[str], at_least: int = 0) -> st.SearchStrategy[list[str]]:
    known = list(values)
    if not known:
        return st.just([])
    return st.lists(st.sampled_from(known), unique=True, min_size=at_least, max_size=2)


@st.composite
def deployments(draw: Any) -> Document:
    """Tasks before, in and after groups; each may require others of its own part."""
    groups: list[Document] = []
    for k in range(draw(st.integers(0, 4))):
        most = draw(st.sampled_from([*STRATEGIES]))
        groups.append(
            {
                "id": f"group-{k}",
                "type": "group",
                "roles": draw(few([*ROLES, "nowhere"], 1)),
                "requires": ["deploy_start", *draw(few(group["id"] for group in groups))],
                "required_for": ["deploy_end"],
                "strategy": STRATEGIES[most],
            }
        )
    tasks: list[Document] = []
    for k in range(draw(st.integers(1, 8))):
        part = draw(st.sampled_from(["early", "middle", "late"]))
        others = [task["id"] for task in tasks if task["id"].startswith(part)]
        task: Document = {"id": f"{part}-{k}", "type": "puppet", "requires": draw(few(others))}
        if part == "middle" and groups and draw(st.booleans()):
            task["groups"] = draw(few((group["id"] for group in groups), 1))
        else:
            task["roles"] = draw(few(ROLES, 1) | st.just(["master"]))
        if part == "early":
            task["required_for"] = ["deploy_start"]
        if part == "late":
            task["requires"].append("deploy_end")
        tasks.append(task)
    middle = [task["id"] for task in tasks if task["id"].startswith("middle")]
    for group in groups:
        group["tasks"] = draw(few(middle))
    ends = [
        {"id": "deploy_start", "type": "stage"},
        {"id": "deploy_end", "type": "stage", "requires": "deploy_start"},
    ]
    numbers = range(1, draw(st.integers(1, 7)) + 1)
    return {
        "kind": "deployment",
        "deployment_engine": "role",
        "nodes": [{"uid": str(i), "roles": draw(few(ROLES))} for i in numbers],
        "tasks": draw(st.permutations([*ends, *tasks, *groups])),
    }


def planned(document: Document) -> ActionPlan:
    return plan(DeploymentPlanner, document, check_types=False)


def tasks_of(found: ActionPlan) -> list[Action]:
    return [action for action in found.actions if action.action_type != JOIN]


def by_node(found: ActionPlan) -> dict[str, list[str]]:
    nodes: dict[str, list[str]] = defaultdict(list)
    for action in tasks_of(found):
        nodes[action.label.partition("/")[0]].append(action.label)
    return nodes


def part(label: str) -> int:
    """Return 0 for a task before the groups, 1 for one in them, 2 for one after them."""
    return ["early", "middle", "late"].index(label.partition("/")[2].partition("-")[0])


def stage(action: Action) -> tuple[str, str]:
    """Return the stage and the group for which a task runs; the group may be empty."""
    name, _, role = str(action.reason).partition(": role ")
    return name, role


@FLEETING
@given(deployments())
def test_each_task_runs_once_on_each_node_of_its_roles_and_groups(document: Document) -> None:
    roles = {node["uid"]: set(node["roles"]) for node in document["nodes"]} | {"master": {"master"}}
    groups = {task["id"]: task for task in document["tasks"] if task["type"] == "group"}
    wanted = set()
    for task in document["tasks"]:
        if task["type"] == "puppet":
            meant = set(task.get("roles", ()))
            for name, group in groups.items():
                if name in task.get("groups", ()) or task["id"] in group["tasks"]:
                    meant |= set(group["roles"])
            wanted |= {f"{uid}/{task['id']}" for uid, has in roles.items() if has & meant}
    assert Counter(a.label for a in tasks_of(planned(document))) == Counter(wanted)


@FLEETING
@given(deployments())
def test_tasks_run_in_the_order_of_parts_groups_and_nodes_and_a_failure_stops_its_node(
    document: Document,
) -> None:
    found = planned(document)
    before, needed = labels_earlier(found), labels_earlier(found, lambda action: action.needs)
    for tasks in by_node(found).values():
        assert all(one in before[other] for one, other in combinations(tasks, 2))
    for name, all_before in before.items():
        assert all(part(other) <= part(name) for other in all_before)
        assert all_before >= {other for other in before if part(other) < part(name)}
        # Before the groups a failure stops all nodes.
        node = name.partition("/")[0]
        wanted = {x for x in all_before if part(x) == 0 or x.partition("/")[0] == node}
        assert needed[name] == wanted
    groups: dict[str, list[str]] = defaultdict(list)
    for action in tasks_of(found):
        groups[stage(action)[1]].append(action.label)
    for task in document["tasks"]:
        for required in task["requires"] if task["type"] == "group" else ():
            for name in groups[task["id"]]:
                assert before[name] >= set(groups[required]), "a group waits for another"
    kinds = [a.label for a in tasks_of(found) if part(a.label) != 1]
    for one, other in combinations(kinds, 2):
        same = one.partition("/")[2] == other.partition("/")[2]
        assert (one in before[other]) != same, "outside of groups, task by task on all nodes"


@FLEETING
@given(deployments())
def test_a_stage_has_no_more_nodes_than_its_strategy_allows_and_tasks_as_they_require_each_other(
    document: Document,
) -> None:
    nodes: dict[tuple[str, str], set[str]] = defaultdict(set)
    runs: dict[tuple[str, tuple[str, str]], list[str]] = defaultdict(list)
    for action in tasks_of(planned(document)):
        uid, _, task_id = action.label.partition("/")
        nodes[stage(action)].add(uid)
        runs[uid, stage(action)].append(task_id)
    most = {
        task["id"]: next(n for n, strategy in STRATEGIES.items() if strategy == task["strategy"])
        for task in document["tasks"]
        if task["type"] == "group"
    }
    for (_, group), members in nodes.items():
        assert len(members) <= (most.get(group) or len(members))
    required = nx.DiGraph()
    for task in document["tasks"]:
        if task["type"] == "puppet":
            required.add_node(task["id"])
            required.add_edges_from((other, task["id"]) for other in task["requires"])
    for names in runs.values():
        assert not any(nx.has_path(required, two, one) for one, two in combinations(names, 2))
