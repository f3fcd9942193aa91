# SPDX-License-Identifier: Apache-2.0
"""Deployments on the command line: parts, what changed, strictness."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from command_line import CommandLine

TASKS: list[dict[str, Any]] = [
    {"id": "begin", "type": "anchor"},
    {"id": "netconfig", "type": "puppet", "version": 2, "role": "*", "requires": "begin"},
    {"id": "database", "type": "puppet", "version": 2, "role": "a", "requires": "netconfig"},
    {"id": "keystone", "type": "puppet", "version": 2, "role": "b", "cross-depends": "database"},
]
NODES = [{"uid": "1", "roles": ["a"]}, {"uid": "2", "roles": ["b"]}]


@pytest.fixture
def file(actionplan: CommandLine) -> str:
    """Write a deployment on two nodes."""
    return written(actionplan, "deployment.yaml")


def written(actionplan: CommandLine, name: str, **fields: Any) -> str:
    value = {"kind": "deployment", "name": "two", "tasks": TASKS, "nodes": NODES, **fields}
    (actionplan.folder / name).write_text(yaml.safe_dump(value), encoding="utf-8")
    return name


def created(actionplan: CommandLine, *words: str) -> dict[str, Any]:
    ended = actionplan("create", *words, "--no-check-types", "-f", "json")
    assert ended.code == 0, ended.err
    value: dict[str, Any] = json.loads(ended.out)
    return value


def names(value: dict[str, Any]) -> list[str]:
    return [a["name"] for a in value["actions"] if a["action_type"] != "join"]


def test_a_part_is_chosen_by_nodes_and_tasks_and_completed(actionplan, file):
    assert names(created(actionplan, file, "--node", "2")) == ["2/netconfig", "2/keystone"]
    some = created(actionplan, file, "--node", "1,2", "--task", "keystone", "--task", "database")
    assert names(some) == ["1/database", "2/keystone"]
    assert any("1/netconfig is left out" in warning for warning in some["warnings"])
    whole = created(actionplan, file, "--node", "2", "--task", "keystone", "--fetch-deps")
    assert names(whole) == ["sync/begin", "1/netconfig", "1/database", "2/keystone"]
    typo = written(actionplan, "typo.yaml", tasks=[{**TASKS[1], "requires": ["begn"]}])
    assert "no task is called 'begn'" in created(actionplan, typo)["warnings"][-1]
    ended = actionplan("create", typo, "--no-check-types", "--strict")
    assert ended.err.startswith("Refused: typo.yaml:13: tasks[0].requires[0]: ")


def test_what_changed_since_a_plan_is_chosen(actionplan, file):
    first = created(actionplan, file, "--out", "first.json")
    tasks = [{**t, "parameters": {"manifest": "x"}} if t["id"] == "database" else t for t in TASKS]
    changed = written(actionplan, "changed.yaml", tasks=tasks)
    found = created(actionplan, file, "--changed-since", "first.json", "--dry-run")
    assert {a["reason"] for a in found["actions"] if a["action_type"] == "puppet"} == {
        f"it is PENDING in plan {first['uuid'][:8]}"
    }
    assert actionplan("apply", "last", "--yes").code == 0
    for earlier in ("last", first["uuid"]):
        found = created(actionplan, changed, "--changed-since", earlier, "--dry-run")
        assert {a["name"]: a["reason"] for a in found["actions"]} == {
            "1/database": "its manifest changed",
            "2/keystone": "depends on 1/database, which changed",
        }


def test_what_there_is_not_is_told_with_the_option(actionplan, file):
    ended = actionplan("create", file, "--no-check-types", "--node", "7", "--task", "kystone")
    _, node, task = ended.err.splitlines()
    assert node.startswith("  --node 7: only.nodes[0]: ")
    assert node.endswith("Known: 1, 2, master, sync")
    assert task.startswith("  --task kystone: only.tasks[0]: ")
    assert task.endswith("'keystone'?")
    assert (ended.code, actionplan.plans()) == (1, [])


def test_parts_are_of_deployments_that_are_yet_to_be_made(actionplan, file):
    created(actionplan, file, "--out", "plan.json")
    for words in (["apply", "last", "--yes"], ["create", "plan.json"], ["simulate", "last"]):
        ended = actionplan(*words, "--node", "1", "--node", "2")
        assert (ended.code, ended.err.startswith("Refused: --node 1,2: has no effect")) == (1, True)
    actionplan.document("solution.yaml", {"action_type": "nop"})
    ended = actionplan("create", "solution.yaml", "--fetch-deps")
    assert "--fetch-deps: only documents" in ended.err


def test_the_message_of_a_plan_makes_the_same_plan(actionplan, file):
    first = created(actionplan, file)
    told = actionplan.good("show", "last", "-f", "message")
    (actionplan.folder / "message.json").write_text(told, encoding="utf-8")
    assert created(actionplan, "message.json")["digest"] == first["digest"]
    node = next(n for n in json.loads(told)["nodes"] if n["node"] == "2")
    keystone = next(t for t in node["tasks"] if t["task"] == "keystone")
    assert keystone["requires"] == [{"node": "1", "task": "database"}]
