# SPDX-License-Identifier: Apache-2.0
"""Watcher with its own engine, and the product beside it, driven by its own client."""

from __future__ import annotations

import pytest
from lab_servers import Servers
from watcher_lab import APPLIER, DECISION_ENGINE, WatcherLab

pytestmark = [pytest.mark.slow, pytest.mark.server]


def test_both_services_are_active(watcher_lab: WatcherLab) -> None:
    listed = watcher_lab.optimize("service", "list", "-f", "json")
    found = {(service["Name"], service["Status"]) for service in listed if service["Host"] == "lab"}
    assert found == {(APPLIER, "ACTIVE"), (DECISION_ENGINE, "ACTIVE")}


@pytest.mark.parametrize("program", [APPLIER, DECISION_ENGINE])
def test_a_service_starts_beside_the_product(watcher_lab: WatcherLab, program: str) -> None:
    log = watcher_lab.log(program)
    assert "LoadingError" not in log
    assert "MultipleMatches" not in log


def test_the_plan_of_a_dummy_audit_succeeds(watcher_lab: WatcherLab) -> None:
    plan = watcher_lab.optimize.plan("dummy", "dummy", para1="3.5", para2="hello")
    watcher_lab.optimize.start(plan)
    assert watcher_lab.optimize.wait("action_plans", plan)["state"] == "SUCCEEDED"
    actions = watcher_lab.optimize.actions(plan)
    assert [action["action_type"] for action in actions] == ["nop", "nop", "sleep"]
    assert {action["state"] for action in actions} == {"SUCCEEDED"}


def test_host_maintenance_empties_a_host(watcher_lab: WatcherLab, servers: Servers) -> None:
    booted = servers.boot("cmp1", 2)["servers"]
    assert [server["host"] for server in booted] == ["cmp1", "cmp1"]
    parameters = {"maintenance_node": "cmp1", "backup_node": "cmp2"}
    plan = watcher_lab.optimize.plan("cluster_maintaining", "host_maintenance", **parameters)
    watcher_lab.optimize.start(plan)
    assert watcher_lab.optimize.wait("action_plans", plan)["state"] == "SUCCEEDED"
    # So Watcher moved servers that run, and knew it.
    assert servers.ended_moves() == ["completed", "completed"]
    there = servers.show()
    assert [server["host"] for server in there["servers"]] == ["cmp2", "cmp2"]
    assert there["hosts"]["cmp1"]["status"] == "disabled"


def test_an_applier_that_was_killed_applies_plans_again(watcher_lab: WatcherLab) -> None:
    watcher_lab.restart(APPLIER)
    plan = watcher_lab.optimize.plan("dummy", "dummy", para1="1", para2="again")
    watcher_lab.optimize.start(plan)
    assert watcher_lab.optimize.wait("action_plans", plan)["state"] == "SUCCEEDED"
