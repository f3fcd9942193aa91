# SPDX-License-Identifier: Apache-2.0
"""Draining hosts by the command line: the document, the plan, the run, and the state of a host."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
import yaml
from command_line import PATIENCE_S, CommandLine

from applier.clouds.simulated import SimulatedCloud

WEB = {f"web-{n}": f"6a1f0001-0000-4000-8000-00000000000{n}" for n in (1, 2, 3)}


@pytest.fixture
def cloud(actionplan: CommandLine) -> SimulatedCloud:
    """Return the cloud that the command line works on."""
    return SimulatedCloud(actionplan.simulator, speed=1000)


def small_cloud(actionplan: CommandLine, **instances: dict[str, Any]) -> None:
    """Reset the cloud to two hosts, of which the second has room for one instance."""
    room = {"vcpus": 4, "ram_mb": 4096, "disk_gb": 40}
    one = {"vcpus": 2, "ram_mb": 2048, "disk_gb": 20}
    SimulatedCloud.reset(
        actionplan.simulator,
        {
            "hosts": {"a": room, "b": {**room, "vcpus": 3}},
            "flavors": {"one": one},
            "instances": {
                f"00000000-0000-4000-8000-00000000000{n}": {
                    "name": name,
                    "host": "a",
                    "flavor": "one",
                    **fields,
                }
                for n, (name, fields) in enumerate(instances.items(), 1)
            },
        },
    )


def drained(actionplan: CommandLine, *words: str) -> dict[str, Any]:
    """Return the document of a drain that must succeed."""
    document: dict[str, Any] = yaml.safe_load(actionplan.good("drain", *words))
    return document


def test_a_host_is_drained_and_taken_back(actionplan: CommandLine, cloud: SimulatedCloud) -> None:
    """What leads from a host in use to one that is off, and back."""
    document = actionplan.good("drain", "compute-1", "--power-off", "--reason", "new fans")
    actionplan.good("create", "-", stdin=document)
    actionplan.good("apply", "last", "--yes")
    assert not [i for i in cloud.snapshot()["instances"].values() if i["host"] == "compute-1"]
    assert cloud.host("compute-1")["power"] == "off"
    assert cloud.service("compute-1") == {"status": "disabled", "reason": "new fans"}
    back = actionplan.good("undrain", "compute-1")
    actionplan.good("create", "-", stdin=back)
    actionplan.good("apply", "last", "--yes")
    assert cloud.host("compute-1")["power"] == "on"
    assert cloud.service("compute-1")["status"] == "enabled"


def test_the_plan_disables_first_then_moves_then_powers_off(actionplan: CommandLine) -> None:
    actionplan.good(
        "create", "-", stdin=actionplan.good("drain", "compute-1", "compute-2", "--power-off")
    )
    (plan,) = actionplan.plans()
    assert plan.name == "drain-2-hosts"
    names = {a.uuid: a.name for a in plan.actions}
    needs = {a.name: {names[u] for u in a.needs} for a in plan.actions}
    assert needs == {
        "disable-compute-1": set(),
        "disable-compute-2": set(),
        **{f"move-{name}": {"disable-compute-1"} for name in WEB},
        **{f"move-{name}": {"disable-compute-2"} for name in ("db-1", "db-2", "app-1")},
        "power-off-compute-1": {f"move-{name}" for name in WEB},
        "power-off-compute-2": {"move-db-1", "move-db-2", "move-app-1"},
    }
    assert not plan.warnings
    order = [a.action_type for a in plan.actions]
    assert order == sorted(
        order, key=["change_nova_service_state", "migrate", "change_node_power_state"].index
    )


def test_what_is_stopped_moves_cold_and_nothing_moves_onto_a_drained_host(
    actionplan: CommandLine,
) -> None:
    document = drained(actionplan, "compute-3", "compute-4")
    moves = {
        a["input_parameters"]["resource_name"]: a["input_parameters"]
        for a in document["actions"]
        if a["action_type"] == "migrate"
    }
    assert moves["batch-1"]["migration_type"] == "cold"
    assert moves["cache-1"]["migration_type"] == "live"
    assert {m["destination_node"] for m in moves.values()} <= {"compute-1", "compute-2"}
    assert document["facts"]["cloud"] == "simulated"


def test_what_does_not_fit_stays_and_is_explained(
    actionplan: CommandLine, cloud: SimulatedCloud
) -> None:
    small_cloud(actionplan, x={}, y={})
    ended = actionplan("drain", "a", "--power-off")
    assert ended.code == 1
    assert ended.err == (
        "y (00000000-0000-4000-8000-000000000002) stays on a: no host that is enabled and up has "
        "room for it: it needs 2 vcpus, 2048 MB of memory, 20 GB of disk\n"
    )
    assert [a["name"] for a in yaml.safe_load(ended.out)["actions"]] == ["disable-a", "move-x"]
    left = drained(actionplan, "a", "--power-off", "--scheduler")
    assert [a["name"] for a in left["actions"]] == [
        "disable-a",
        "move-x",
        "move-y",
        "power-off-a",
    ]
    assert "destination_node" not in left["actions"][2]["input_parameters"]
    assert cloud.service("a")["status"] == "enabled"


def test_an_instance_in_another_status_stays(actionplan: CommandLine) -> None:
    small_cloud(actionplan, x={})
    world = json.loads(actionplan.simulator.read_text())
    world["server_groups"] = {
        "g": {"name": "pair", "policy": "anti-affinity", "members": list(world["instances"])}
    }
    other = "00000000-0000-4000-8000-000000000009"
    world["instances"][other] = {"name": "z", "host": "b", "flavor": "one", "status": "ACTIVE"}
    world["hosts"]["b"]["vcpus"] = 4
    world["server_groups"]["g"]["members"].append(other)
    actionplan.simulator.write_text(json.dumps(world))
    ended = actionplan("drain", "a")
    assert ended.code == 1
    assert "each host with room for it has as many of server group pair as it may" in ended.err


def test_hosts_that_do_not_exist_are_all_named(actionplan: CommandLine) -> None:
    for verb in ("drain", "undrain"):
        ended = actionplan(verb, "compute-7", "compute-1", "nowhere", "--out", "x.yaml")
        assert (ended.code, ended.out) == (1, "")
        assert "compute-7: there is no compute service" in ended.err
        assert "nowhere: there is no compute service" in ended.err
        assert not (actionplan.folder / "x.yaml").exists()


def test_a_document_in_a_file_is_planned_from_there(actionplan: CommandLine) -> None:
    assert actionplan.good("drain", "compute-1", "--out", "d.yaml") == (
        "Next: actionplan create d.yaml\n"
    )
    actionplan.good("create", "d.yaml")
    assert actionplan.plans()[0].name == "drain-compute-1"


@pytest.mark.slow
def test_a_drain_that_was_killed_halfway_ends_with_every_instance_moved_once(
    actionplan: CommandLine, cloud: SimulatedCloud
) -> None:
    drain = actionplan.good("drain", "compute-1", "--power-off")
    actionplan.good("create", "-", stdin=drain)
    cloud.inject({"operation": "migrate", "target": "web-3", "kind": "hang", "times": 1})
    with actionplan.start("apply", "last", "--yes") as process:
        end = time.monotonic() + PATIENCE_S
        while not any("web-3" in work["what"] for work in cloud.snapshot()["ongoing"]):
            assert time.monotonic() < end
        process.kill()
    before = {name: cloud.instance(uuid)["host"] for name, uuid in WEB.items()}
    assert before == {"web-1": "compute-2", "web-2": "compute-3", "web-3": "compute-1"}
    actionplan.good("resume", "last")
    assert "SUCCEEDED" in actionplan.good("apply", "last", "--yes")
    (plan,) = actionplan.plans()
    assert {a.name: a.attempts for a in plan.actions if a.action_type == "migrate"} == {
        "move-web-1": 1,
        "move-web-2": 1,
        "move-web-3": 2,
    }
    state = json.loads(actionplan.good("show", "last", "--node", "compute-1", "-f", "json"))
    assert (len(state["left"]), state["remains"], state["power"]) == (3, [], "off")
    assert state["safe_to_power_off"]
