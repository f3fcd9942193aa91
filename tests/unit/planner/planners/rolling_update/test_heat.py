# SPDX-License-Identifier: Apache-2.0
"""What Heat itself gave for the same input: batches, rolls, triggers, durations.

Where two decisions part from Heat, they are named here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from planner import ActionPlan, PlannerError
from planner.planners.rolling_update.batches import in_place
from planner.planners.rolling_update.planner import RollingUpdatePlanner
from planner.planners.rolling_update.update_policy import LONGEST_PAUSE_S, duration_s
from planner.testing import plan

FILE = Path(__file__).parents[4] / "cases" / "heat.json"
CASES: dict[str, list[dict[str, Any]]] = json.loads(FILE.read_text(encoding="utf-8"))
#: Heat rolls these with batches in which nothing happens.
EQUAL_BY_ANOTHER_NAME = {"ig-lc-renamed", "asg-ref-switched-same-content"}
#: Heat accepts this, and never comes to an end.
ENDLESS = {"ig-policy-batch-zero"}
#: Heat does not know a field of CloudFormation's, WaitOnResourceSignals.
OF_CLOUDFORMATION = {"asg-policy-unknown-key"}


def figures(made: ActionPlan) -> dict[str, Any]:
    """Return the figures of the first group."""
    value: dict[str, Any] = made.efficacy_indicators[0]["value"]
    return value


def document(size: int, wanted: int, policy: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Write a roll of one group whose image changes."""

    def template(image: str, number: int) -> dict[str, Any]:
        config = {"Ref": "Config"}
        group = {
            "Type": "OS::Heat::InstanceGroup",
            "UpdatePolicy": {"RollingUpdate": policy},
            "Properties": {"Size": number, "LaunchConfigurationName": config},
        }
        launch = {
            "Type": "AWS::AutoScaling::LaunchConfiguration",
            "Properties": {"ImageId": image},
        }
        return {"Resources": {"Group": group, "Config": launch}}

    return {
        "kind": "rolling_update",
        "old": template("one", size),
        "new": template("two", wanted),
        **more,
    }


def test_batches_are_those_of_heat() -> None:
    for case in CASES["batches"]:
        target, there, largest, least = (
            case[k] for k in ("target", "capacity", "max_batch_size", "min_in_service")
        )
        found = in_place(target, there, 0, largest, least)
        assert [[b.size, b.create] for b in found] == case["batches"], case["id"]


def test_durations_are_read_as_heat_reads_them() -> None:
    for case in CASES["durations"]:
        found = duration_s(case["in"])
        assert found == case.get("seconds"), case
        accepted = found is not None and found <= LONGEST_PAUSE_S
        assert accepted == bool(case.get("ok_as_pause_time")), case


def test_a_roll_is_planned_when_heat_rolls() -> None:
    for case in CASES["triggers"]:
        value = {"kind": "rolling_update", "old": case["old"], "new": case["new"]}
        try:
            rolls = figures(plan(RollingUpdatePlanner, value))["cause"] is not None
        except PlannerError:
            assert "new_invalid" in case or case["id"] in ENDLESS, case["id"]
            continue
        if case["id"] in OF_CLOUDFORMATION:
            continue
        assert "new_invalid" not in case, case["id"]
        assert rolls == (case["roll"] and case["id"] not in EQUAL_BY_ANOTHER_NAME), case["id"]


def test_a_roll_in_place_has_heats_figures_without_its_empty_batches() -> None:
    for case in CASES["rolls"]:
        if "batches" not in case:
            assert "error" in case or "raised" in case, case
            continue
        members = [
            {"id": name, "current": name not in case["outdated"], "failed": name in case["failed"]}
            for name in (f"m{i}" for i in range(case["capacity"]))
        ]
        policy = {
            "MinInstancesInService": case["min_in_service"],
            "MaxBatchSize": case["max_batch_size"],
            "PauseTime": f"PT{case['pause_s']}S",
        }
        groups = {"Group": {"members": members}}
        value = document(
            case["capacity"], case["size_property"], policy, mode="in_place", groups=groups
        )
        found = figures(plan(RollingUpdatePlanner, value))
        if len(case["outdated"]) < case["capacity"]:
            assert len(found["batches"]) <= len(case["batches"]), case
            continue
        # Which go is another matter: Heat's last batch may take members that are new.
        sizes, size = [], case["capacity"]
        for create, gone in found["batches"]:
            size += create - gone
            sizes.append((size, create))
        assert sizes == [
            (b["size"], len(b["created"]) + len(b["replaced"])) for b in case["batches"]
        ], case
        if case["batches"]:
            assert found["floor"] == case["min_lb_during"], case


def test_the_blueprint_is_what_happens_by_default() -> None:
    for case in CASES["spec_cases"]:
        if case.get("outdated") is None:
            continue
        members = [{"id": f"m{i}", "current": i >= case["outdated"]} for i in range(case["size"])]
        value = document(
            case["size"], case["size"], case["policy"], groups={"Group": {"members": members}}
        )
        made, spec = plan(RollingUpdatePlanner, value), case["spec"]
        found = figures(made)
        assert found["batches"] == [[b["create"], b["then_terminate"]] for b in spec["batches"]]
        pauses = [a.input_parameters["seconds"] for a in made.actions if a.action_type == "pause"]
        assert pauses == spec["pauses_s_between"], case["id"]
        assert found["floor"] == case["size"], case["id"]
        if "peak_instances" in spec:
            assert found["peak"] == spec["peak_instances"], case["id"]
        if "pauses_s_literal" in spec:
            literal = plan(RollingUpdatePlanner, {**value, "pause_first": True})
            waits = [a for a in literal.actions if a.action_type == "pause"]
            assert len(waits) == len(spec["pauses_s_literal"]), case["id"]
