# SPDX-License-Identifier: Apache-2.0
"""What Watcher's own strategies propose runs by our engine, on a real Nova and a real Cinder."""

from __future__ import annotations

import json
from typing import Any

import environments
import programs
import pytest
from lab_servers import Servers
from scratch_database import database_for_tests
from volume_lab import B1P1, B1P2, VolumeLab
from watcher_lab import WatcherLab

pytestmark = [pytest.mark.slow, pytest.mark.server, pytest.mark.xdist_group("strategies")]

SETTINGS = {
    "collector": {"collector_plugins": "compute,storage"},
    "watcher_cluster_data_model_collectors.storage": {"period": "5"},
    "watcher_applier": {"workflow_engine": "actionplan"},
    "watcher_workflow_engines.actionplan": {"max_workers": "4"},
}


@pytest.fixture(scope="module")
def volumes(tmp_path_factory):
    """Return a Cinder that runs."""
    environments.require(environments.CINDER)
    with VolumeLab(tmp_path_factory.mktemp("strategies") / "cinder") as lab:
        yield lab


@pytest.fixture(scope="module")
def lab(volumes, tmp_path_factory):
    """Return a Watcher with our engine, with a Nova and that Cinder."""
    programs.require("rabbitmq-server", "epmd")
    for environment in (environments.WATCHER, environments.NOVA):
        environments.require(environment)
    cinder = f"http://127.0.0.1:{volumes.port + 1}"
    folder = tmp_path_factory.mktemp("watcher")
    with (
        database_for_tests("mysql") as database,
        WatcherLab(folder, database, SETTINGS, cinder=cinder) as running,
    ):
        yield running


def ended(lab, plan: str) -> tuple[str, dict[str, Any]]:
    """Run a plan; return its state, and how many of its actions are in each state, by type."""
    lab.optimize.start(plan)
    state = lab.optimize.wait("action_plans", plan)["state"]
    found: dict[str, Any] = {}
    for action in lab.optimize.actions(plan):
        found.setdefault(action["action_type"], []).append(action["state"])
    return state, found


def test_zone_migration_moves_servers_and_volumes(lab, volumes):
    servers = Servers(lab)
    servers.reset()
    servers.boot("cmp1", 2)
    made = [volumes.create("t1", pool=B1P1) for _ in range(2)]
    plan = lab.optimize.plan(
        "hardware_maintenance",
        "zone_migration",
        compute_nodes=json.dumps([{"src_node": "cmp1", "dst_node": "cmp2"}]),
        storage_pools=json.dumps([{"src_pool": B1P1, "dst_pool": B1P2}]),
    )
    done = ["SUCCEEDED"] * 2
    assert ended(lab, plan) == ("SUCCEEDED", {"migrate": done, "volume_migrate": done})
    assert {server["host"] for server in servers.show()["servers"]} == {"cmp2"}
    assert {volumes.place(volume)[0] for volume in made} == {B1P2}
