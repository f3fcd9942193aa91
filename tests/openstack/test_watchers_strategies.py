# SPDX-License-Identifier: Apache-2.0
"""What Watcher's own strategies propose runs by our engine, on a real Nova and a real Cinder."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
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
#: How many audits are made until Watcher knows all that there is.
MOST_AUDITS = 10


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


#: Runs a test once more, with our own commands in place of Watcher.
BOTH = pytest.mark.parametrize("carried_out", ["Watcher", "our own commands"], indirect=True)


@pytest.fixture
def carried_out(request, lab, command_line_on, tmp_path) -> Callable[..., None]:
    """Return a function that runs what a strategy proposes: so many actions of each type.

    Our planner plans it and our engine runs it, in Watcher or by our own commands. All parameters
    are in the plan as the strategy has said them, and all actions have succeeded.
    """

    def in_watcher(plan: str, _: Any) -> list[Any]:
        lab.optimize.start(plan)
        ended = lab.optimize.wait("action_plans", plan)
        return [ended["state"], *lab.optimize.actions(plan)]

    def by_our_own_commands(_: str, proposed: Any) -> list[Any]:
        (tmp_path / "solution.json").write_text(json.dumps({"actions": proposed}))
        command_line = command_line_on(lab.folder / "nova" / "clouds.yaml")
        ended = command_line("apply", "solution.json", "--yes")
        assert ended.code == 0, ended
        plan = command_line.plan().to_dict()
        return [plan["state"], *plan["actions"]]

    def run(strategy: str, goal: str, expected: Mapping[str, int], **parameters: str) -> None:
        # Watcher reads its model of the cloud each few seconds: a first audit may know too little.
        for _ in range(MOST_AUDITS):
            plan = lab.optimize.plan(goal, f"planned_{strategy}", **parameters)
            proposed = json.loads((lab.folder / f"{strategy}.json").read_text(encoding="utf-8"))
            if Counter(action["action_type"] for action in proposed) == expected:
                break
        state, *actions = runs[getattr(request, "param", "Watcher")](plan, proposed)
        assert (state, in_any_order(actions)) == ("SUCCEEDED", in_any_order(proposed))
        assert Counter(action["action_type"] for action in actions) == expected

    runs = {"Watcher": in_watcher, "our own commands": by_our_own_commands}
    return run


def in_any_order(actions: list[dict[str, Any]]) -> list[str]:
    """Return types and parameters of actions as sorted texts."""
    return sorted(
        json.dumps([a["action_type"], a["input_parameters"]], sort_keys=True) for a in actions
    )


@pytest.fixture
def servers(lab: WatcherLab) -> Servers:
    """Return the servers of the lab's Nova; there is none yet, and all hosts are enabled."""
    made = Servers(lab)
    made.reset()
    return made


@BOTH
def test_zone_migration_moves_servers_and_volumes(carried_out, servers, volumes):
    servers.boot("cmp1", 2)
    made = [volumes.create("t1", pool=B1P1) for _ in range(2)]
    carried_out(
        "zone_migration",
        "hardware_maintenance",
        {"migrate": 2, "volume_migrate": 2},
        compute_nodes=json.dumps([{"src_node": "cmp1", "dst_node": "cmp2"}]),
        storage_pools=json.dumps([{"src_pool": B1P1, "dst_pool": B1P2}]),
    )
    assert {server["host"] for server in servers.show()["servers"]} == {"cmp2"}
    assert {volumes.place(volume)[0] for volume in made} == {B1P2}


def test_host_maintenance_empties_a_host(carried_out, servers):
    servers.boot("cmp1", 2)
    nodes = {"maintenance_node": "cmp1", "backup_node": "cmp2"}
    expected = {"change_nova_service_state": 1, "migrate": 2}
    carried_out("host_maintenance", "cluster_maintaining", expected, **nodes)
    now = servers.show()
    assert {server["host"] for server in now["servers"]} == {"cmp2"}
    assert now["hosts"]["cmp1"]["status"] == "disabled"


def test_vm_workload_consolidation_frees_hosts(carried_out, servers):
    for host in ("cmp1", "cmp2", "cmp3"):
        servers.boot(host, 1)
    expected = {"change_nova_service_state": 2, "migrate": 2}
    carried_out("vm_workload_consolidation", "server_consolidation", expected)
    now = servers.show()
    [host] = {server["host"] for server in now["servers"]}
    assert [name for name, state in now["hosts"].items() if state["status"] == "enabled"] == [host]


@BOTH
def test_storage_capacity_balance_moves_volumes_off_a_full_pool(carried_out, volumes):
    volumes.reset()
    made = [volumes.create(pool=B1P1) for _ in range(4)]
    volumes.until(lambda: volumes.free_gb()[B1P1] == 896, f"less room in {B1P1}")
    carried_out(
        "storage_capacity_balance",
        "workload_balancing",
        {"volume_migrate": 2},
        volume_threshold="10.25",
    )
    assert len([volume for volume in made if volumes.place(volume)[0] == B1P1]) == 2
