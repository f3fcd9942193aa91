# SPDX-License-Identifier: Apache-2.0
"""The documents under etc/examples are read, fit their schema, and plan without a warning."""

from __future__ import annotations

from pathlib import Path

import pytest

from applier.clouds.simulated import SimulatedCloud
from planner import documents, make_plan
from planner.making import registry
from planner.planners.deployment.schema import RUNNABLE
from planner.schemas import checking

EXAMPLES = Path(__file__).parents[2] / "etc" / "examples"
DOCUMENTS = sorted([*EXAMPLES.glob("*.yaml"), *EXAMPLES.glob("events/*.yaml")])


def test_an_example_fits_its_schema_and_says_what_it_is():
    kinds = {
        planner.KIND: planner.SCHEMA
        for planner in map(registry.planner, registry.names(registry.PLANNERS))
    }
    for example in DOCUMENTS:
        document = documents.read(example).value
        assert checking.compiled(kinds[document.get("kind", "solution")])(document) == [], example
        assert example.read_text(encoding="utf-8").startswith("# ")
        assert document["name"]


@pytest.mark.parametrize("example", DOCUMENTS, ids=lambda path: path.name)
def test_an_example_is_planned_without_a_warning(example):
    document = documents.read(example).value
    types = {task["type"] for task in document.get("tasks", ())} & set(RUNNABLE)
    missing = types - set(registry.names(registry.ACTIONS))
    if missing:
        pytest.skip(f"action types that are not installed: {', '.join(sorted(missing))}")
    plan = make_plan(example)
    assert plan.warnings == ()
    own = document.get("actions", document.get("tasks", ["one"]))
    assert len(plan.actions) >= len(own)


def test_what_the_maintenance_says_of_the_small_cloud_is_true(tmp_path):
    document = documents.read(EXAMPLES / "host-maintenance.yaml").value
    cloud = SimulatedCloud(tmp_path / "simulator.json").snapshot()
    facts = document["facts"]
    assert {k: cloud["instances"][k]["host"] for k in facts["instances"]} == {
        k: fact["host"] for k, fact in facts["instances"].items()
    }
    assert {k: cloud["instances"][k]["name"] for k in facts["instances"]} == {
        k: fact["name"] for k, fact in facts["instances"].items()
    }
    assert {k: host["labels"]["rack"] for k, host in cloud["hosts"].items()} == {
        k: fact["rack"] for k, fact in facts["hosts"].items()
    }
    emptied = {
        i["name"] for i in cloud["instances"].values() if i["host"] in ("compute-1", "compute-2")
    }
    moved = {
        a["input_parameters"]["resource_name"]
        for a in document["actions"]
        if a["action_type"] == "migrate"
    }
    assert moved == emptied
