# SPDX-License-Identifier: Apache-2.0
"""Deployments on the command line: parts, what changed; rolling updates, playbooks: options."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from command_line import ROOT, CommandLine

from applier.clouds.simulated import SimulatedCloud
from planner import documents

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


# Rolling updates


ROLLING = str(ROOT / "etc" / "examples" / "rolling-update.yaml")
#: A roll because a password changed, of one that only the new template hides.
HIDDEN = """
kind: rolling_update
old_parameters: {Password: first-secret}
parameters: {Password: second-secret}
old:
  Parameters: {Password: {Type: String}}
  Resources: &resources
    web:
      Type: OS::Heat::InstanceGroup
      UpdatePolicy: {Rolling: {}}
      Properties: {Size: 1, LaunchConfigurationName: {Ref: config}}
    config:
      Type: AWS::AutoScaling::LaunchConfiguration
      Properties: {InstanceType: m1.nano, UserData: {Fn::Sub: "password ${Password}"}}
new:
  Parameters: {Password: {Type: String, NoEcho: true}}
  Resources: *resources
groups: {web: {members: [{id: job-1}]}}
"""
OLD = {f"job-{i}" for i in range(1, 11)}
FIRST = {f"job-{i}" for i in range(1, 6)}


def servers(actionplan: CommandLine) -> dict[str, str]:
    """Return the names of the job servers that there are, by id."""
    instances: Mapping[str, Any] = SimulatedCloud(actionplan.simulator).snapshot()["instances"]
    return {i: found["name"] for i, found in instances.items() if found["flavor"] == "m1.nano"}


def jobs(actionplan: CommandLine) -> set[str]:
    """Return the names of the job servers that there are."""
    return set(servers(actionplan).values())


def example() -> dict[str, Any]:
    """Return the example as a document."""
    value: dict[str, Any] = documents.read(ROLLING).value
    return value


def test_rollback_brings_back_the_members_that_were_changed(actionplan):
    """The page about rolling updates shows how one is broken off, goes on, and is rolled back."""
    fault = {"operation": "delete", "target": "job-7", "times": 1, "message": "it is locked"}
    SimulatedCloud(actionplan.simulator).inject(fault)
    assert actionplan("apply", ROLLING, "--yes").code == 5
    assert "job-7" in jobs(actionplan)
    gone = OLD - jobs(actionplan)
    actionplan.good("rollback", "last")
    ended = actionplan("apply", "last", "--yes")
    assert ended.code == 0, ended
    assert jobs(actionplan) == OLD
    (back,) = [p for p in actionplan.plans() if p.planner == "rollback"]
    assert {a.label for a in back.actions if "terminate" in a.label} == {
        f"revert-JobServerGroup/batch-{1 + (name not in FIRST)}/terminate-{name}" for name in gone
    }
    assert (back.warnings, back.on_failure) == ((), "pause")


def test_a_hidden_parameter_is_told_nowhere(actionplan):
    (actionplan.folder / "roll.yaml").write_text(HIDDEN, encoding="utf-8")
    created = actionplan("create", "roll.yaml", "--out", "plan.json", "--debug")
    assert "because UserData of config changed" in created.out, created
    applied = actionplan("apply", "last", "--yes", "--debug")
    assert applied.code == 0, applied
    shown = actionplan.good("action", "show", "last", "web/batch-1/create-1", "-f", "json")
    assert "password ${NoEcho Password " in shown
    back = actionplan("rollback", "last")
    assert "terminate-job-1" in back.out, back
    kept = [file.read_bytes() for file in actionplan.record.parent.iterdir() if file.is_file()]
    kept += [(actionplan.folder / "plan.json").read_bytes()]
    kept += [f"{created}{applied}{back}{shown}".encode()]
    assert not any(b"-secret" in content for content in kept)


def test_a_group_that_was_rolled_grows_though_nobody_says_what_its_members_are_called(actionplan):
    assert actionplan("apply", ROLLING, "--yes").code == 0
    assert len(jobs(actionplan) - OLD) == len(jobs(actionplan)) == 10
    rolled = [{"id": i} for i in servers(actionplan)]
    for before, size, members in ((10, 12, rolled), (12, 14, None)):
        document = {**example(), "parameters": {"NumInstances": size}}
        document["old_parameters"] = {"NumInstances": before, "ImageId": "jobs-2"}
        document["groups"] = {"JobServerGroup": {"members": members}} if members else {}
        (actionplan.folder / "grow.yaml").write_text(json.dumps(document), encoding="utf-8")
        for _ in range(2):  # the same document again finds itself done
            ended = actionplan("apply", "grow.yaml", "--yes")
            assert (ended.code, len(jobs(actionplan))) == (0, size), ended


# Playbooks


def test_the_options_of_create_are_the_fields_of_a_document(actionplan):
    (actionplan.folder / "hosts").write_text("[db]\ndb-1\ndb-2\nweb-3\n[web]\nweb-3\n")
    text = "- {hosts: '{{ group }}', serial: 1, tasks: [{debug: {}, tags: b}]}\n"
    (actionplan.folder / "site.yml").write_text(text)
    (actionplan.folder / "more.yml").write_text("group: nobody\nsizes: [1, 2]\n")
    options = ["--limit", "db:!web-3", "--tags", "a,b", "--skip-tags", "c", "--become"]
    options += ["--forks", "3", "--variables", "@more.yml", "--variables", "group=db"]
    words = ("create", "--from-playbook", "site.yml", "--inventory", "hosts", *options)
    made = json.loads(actionplan.good(*words, "-f", "json"))
    given = [action["input_parameters"] for action in made["actions"]]
    assert [one.pop("hosts") for one in given] == [["db-1"], ["db-2"]]
    assert given[0] == {
        "playbook": f"{actionplan.folder}/site.yml",
        "inventory": [f"{actionplan.folder}/hosts"],
        "play": 0,
        "tags": ["a", "b"],
        "skip_tags": ["c"],
        "become": True,
        "forks": 3,
        "variables": {"group": "db", "sizes": [1, 2]},
    }
    assert (made["name"], made["planner"]) == ("site", "playbook")
    refused = actionplan(*words[:5], "--variables", "group")
    assert "'group' is neither NAME=TEXT nor @FILE" in refused.err
    refused = actionplan("create", "site.yml", "--tags", "a")
    assert refused.err == (
        "Refused: --tags: it goes with --from-playbook; a document says it itself\n"
    )
    refused = actionplan("create", "--from-playbook", "x" * 300, "--inventory", "a,b,")
    assert [line.split()[:2] for line in refused.err.splitlines()[1:]] == [
        ["--from-playbook:", "playbook:"],
        ["--from-playbook:", "inventory:"],
    ]
    refused = actionplan(*words[:3])
    assert refused.err == "Refused: --from-playbook: the field 'inventory' is missing\n"
