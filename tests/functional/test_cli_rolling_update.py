# SPDX-License-Identifier: Apache-2.0
"""A rolling update from end to end: the example applied, broken half way, resumed, rolled back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from command_line import ROOT, CommandLine

from applier.clouds.simulated import SimulatedCloud
from planner import documents

EXAMPLE = str(ROOT / "etc" / "examples" / "rolling-update.yaml")
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
    value: dict[str, Any] = documents.read(EXAMPLE).value
    return value


def test_rollback_brings_back_the_members_that_were_changed(actionplan):
    """The page about rolling updates shows how one is broken off, goes on, and is rolled back."""
    fault = {"operation": "delete", "target": "job-7", "times": 1, "message": "it is locked"}
    SimulatedCloud(actionplan.simulator).inject(fault)
    assert actionplan("apply", EXAMPLE, "--yes").code == 5
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
    assert actionplan("apply", EXAMPLE, "--yes").code == 0
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
