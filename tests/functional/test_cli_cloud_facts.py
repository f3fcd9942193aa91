# SPDX-License-Identifier: Apache-2.0
"""The facts of a cloud on the command line: written, and planned with."""

from __future__ import annotations

import json

import pytest
import yaml
from command_line import CommandLine

MOVE = {
    "action_type": "migrate",
    "resource_id": "6a1f0001-0000-4000-8000-000000000001",
    "input_parameters": {"migration_type": "live", "source_node": "compute-1"},
}
RESIZE = {
    "action_type": "resize",
    "resource_id": MOVE["resource_id"],
    "input_parameters": {"flavor": "m1.large"},
}


SUSPEND = {"action_type": "turn_host_to_acpi_s3_state", "resource_id": "compute-1"}


def test_the_facts_are_written_in_both_formats(actionplan: CommandLine) -> None:
    as_json = json.loads(actionplan.good("facts", "-f", "json"))
    assert as_json["cloud"] == "simulated"
    assert as_json["hosts"]["compute-1"]["free"] == {
        "vcpus": 6,
        "ram_mb": 12288,
        "disk_gb": 120,
    }
    as_yaml = yaml.safe_load(actionplan.good("facts"))
    assert as_yaml["at"] >= as_json["at"]
    assert {**as_yaml, "at": ""} == {**as_json, "at": ""}
    assert actionplan.good("facts", "--out", "facts.yaml") == ""
    written = yaml.safe_load((actionplan.folder / "facts.yaml").read_text())
    assert {**written, "at": ""} == {**as_json, "at": ""}


def test_a_planner_that_needs_facts_plans_with_those_of_the_cloud(actionplan: CommandLine) -> None:
    planned = ("--planner", "workload_stabilization", "-f", "json")
    file = actionplan.document("plan.yaml", RESIZE, SUSPEND)
    refused = actionplan("create", file, *planned)
    assert "host is missing" in refused.err
    plan = json.loads(actionplan.good("create", file, "--facts-from", "simulated", *planned))
    assert len(plan["actions"]) == 2


@pytest.mark.parametrize(
    ("cloud", "fields", "answer"),
    [
        ("simulated", {"facts": {"hosts": {"c": {}}}}, "the document has facts already"),
        ("simulated", {"kind": "events"}, "only documents of kind 'solution' have facts"),
        ("openstack", {}, "the configured cloud is simulated"),
        ("simulatd", {}, "did you mean 'simulated'?"),
    ],
)
def test_facts_from_elsewhere_are_refused(
    actionplan: CommandLine, cloud: str, fields: dict, answer: str
) -> None:
    file = actionplan.document("plan.yaml", MOVE, **fields)
    ended = actionplan("create", file, "--facts-from", cloud)
    assert (ended.code, ended.out) == (1, "")
    assert answer in ended.err
    assert not actionplan.plans()
