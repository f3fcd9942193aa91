# SPDX-License-Identifier: Apache-2.0
"""Hosts on the command line: facts, drains, the state of a host, what a plan would find now."""

from __future__ import annotations

import json
import re
from threading import Event
from typing import Any

import pytest
import yaml
from command_line import EXAMPLE, CommandLine, check_golden, wait_until

from applier.clouds.simulated import SimulatedCloud
from planner.plan.states import ActionState, PlanState

WEB = {f"web-{n}": f"6a1f0001-0000-4000-8000-00000000000{n}" for n in (1, 2, 3)}
MOVE = {
    "action_type": "migrate",
    "resource_id": WEB["web-1"],
    "input_parameters": {"migration_type": "live", "source_node": "compute-1"},
}


@pytest.fixture
def cloud(actionplan: CommandLine) -> SimulatedCloud:
    """Return the cloud that the command line works on."""
    return SimulatedCloud(actionplan.simulator, speed=1000)


def move(cloud: SimulatedCloud, name: str, host: str) -> None:
    """Move an instance, as somebody else would."""
    cloud.migrate(WEB[name], host, True, Event())


def created(actionplan: CommandLine, *words: str) -> None:
    """Store the plan of a drain."""
    actionplan.good("create", "-", stdin=actionplan.good("drain", *words))


def state_of(actionplan: CommandLine, host: str) -> dict[str, Any]:
    """Return the state of a host in the last plan."""
    value: dict[str, Any] = json.loads(
        actionplan.good("show", "last", "--node", host, "-f", "json")
    )
    return value


def destination(actionplan: CommandLine, move: str) -> str:
    """Return where the newest plan moves an instance to."""
    (action,) = (a for a in actionplan.plans()[0].actions if a.name == move)
    return str(action.input_parameters["destination_node"])


def test_facts_are_written_and_planned_with_or_refused(actionplan):
    found = json.loads(actionplan.good("facts", "-f", "json"))
    assert found["hosts"]["compute-1"]["free"]["vcpus"] == 6
    assert actionplan.good("facts", "--out", "facts.yaml") == ""
    written = yaml.safe_load((actionplan.folder / "facts.yaml").read_text())
    assert {**written, "at": ""} == {**found, "at": ""}
    for cloud, fields, answer in (
        ("simulated", {"facts": {"hosts": {"c": {}}}}, "the document has facts already"),
        ("simulated", {"kind": "events"}, "of this kind, have no facts"),
        ("openstack", {}, "the configured cloud is simulated"),
        ("simulatd", {}, "did you mean 'simulated'?"),
    ):
        file = actionplan.document("plan.yaml", MOVE, **fields)
        ended = actionplan("create", file, "--facts-from", cloud)
        assert (ended.code, ended.out, answer in ended.err) == (1, "", True), cloud
    assert not actionplan.plans()
    value = {"kind": "rollout", "name": "p", "nodes": {"label": {"rack": "r1"}}}
    value["steps"] = [{"nop": "{node}"}]
    (actionplan.folder / "p.yaml").write_text(yaml.safe_dump(value), encoding="utf-8")
    actionplan.good("create", "p.yaml", "--facts-from", "simulated")
    assert {a.places[0].member for a in actionplan.plan().actions} == {"compute-1", "compute-2"}


def test_a_host_is_drained_switched_off_and_taken_back(actionplan, cloud):
    """The page about drains shows what is printed on the way."""
    assert "--yes" in actionplan("drain", "compute-1", "--apply").err
    assert actionplan.plans() == []
    words = ("drain", "compute-1", "--power-off", "--reason", "new fans", "--apply", "--yes")
    assert "move-web-3" in actionplan.good(*words)
    plan = actionplan.plan()
    names = {a.uuid: a.name for a in plan.actions}
    assert {a.name: {names[u] for u in a.needs} for a in plan.actions} == {
        "disable-compute-1": set(),
        **{f"move-{name}": {"disable-compute-1"} for name in WEB},
        "power-off-compute-1": {f"move-{name}" for name in WEB},
    }
    state = state_of(actionplan, "compute-1")
    assert (len(state["left"]), state["remains"], state["power"]) == (3, [], "off")
    assert state["safe_to_power_off"]
    assert cloud.service("compute-1") == {"status": "disabled", "reason": "new fans"}
    ended = actionplan("show", "last", "--node", "compute-11")
    assert (ended.code, "there is no such host; did you mean" in ended.err) == (1, True)
    actionplan.good("undrain", "compute-1", "--apply", "--yes")
    assert cloud.host("compute-1")["power"] == "on"
    assert cloud.service("compute-1")["status"] == "enabled"


def test_hosts_and_labels_that_do_not_exist_are_all_named(actionplan):
    nodes = ("compute-7", "compute-1", "nowhere", "--out", "x.yaml")
    for words, *told in (
        (("drain", *nodes), "compute-7: there is no", "nowhere: there is no"),
        (("undrain", *nodes), "compute-7: there is no", "nowhere: there is no"),
        (("drain", "--label", "rack=r9"), "no compute host has it; did you mean 'rack="),
        (("drain", "--label", "rack"), "--label rack: KEY=VALUE is expected"),
        (("drain",), "a HOST is needed, or --label KEY=VALUE"),
    ):
        ended = actionplan(*words)
        assert (ended.code, ended.out) == (1, "")
        assert all(text in ended.err for text in told), ended
    assert not (actionplan.folder / "x.yaml").exists()
    back = yaml.safe_load(actionplan.good("undrain", "compute-3", "--label", "rack=r1"))
    assert back["name"] == "undrain-3-hosts"


def test_a_host_is_not_safe_with_a_failed_move_or_one_that_may_enter(actionplan, cloud):
    created(actionplan, "compute-1", "compute-2")
    cloud.delete_instance("6a1f0005-0000-4000-8000-000000000001", Event())
    cloud.set_service_status("compute-4", "disabled", None, Event())
    shown = actionplan.good("show", "last", "--node", "compute-4")
    assert "Remains: 0 instances" in shown
    assert re.search(r"Safe .*: no: move-\S+ is PENDING", shown)
    cloud.set_service_status("compute-4", "enabled", None, Event())
    cloud.inject({"operation": "migrate", "target": "web-2", "message": "no route"})
    assert actionplan("apply", "last", "--yes").code == 3
    state = state_of(actionplan, "compute-1")
    assert {left["name"] for left in state["left"]} == {"web-1", "web-3"}
    assert [(r["name"], r["why"]) for r in state["remains"]] == [
        ("web-2", "its move is FAILED: no route")
    ]
    assert not state["safe_to_power_off"]
    assert state["not_safe_because"] == ["1 instance on it"]


def test_a_drain_that_was_killed_halfway_ends_with_every_instance_moved_once(actionplan, cloud):
    created(actionplan, "compute-1", "--power-off")
    cloud.inject({"operation": "migrate", "target": "web-3", "kind": "hang", "times": 1})
    with actionplan.start("apply", "last", "--yes") as process:
        wait_until(lambda: any("web-3" in work["what"] for work in cloud.snapshot()["ongoing"]))
        ended = actionplan("action", "force-complete", "last", "move-web-3")
        assert (ended.code, "cannot complete a migration at once" in ended.err) == (1, True)
        process.kill()
    left = {name for name, uuid in WEB.items() if cloud.instance(uuid)["host"] == "compute-1"}
    assert left == {"web-3"}
    actionplan.good("resume", "last")
    actionplan.good("apply", "last", "--yes")
    tries = {a.name: a.attempts for a in actionplan.plan().actions if a.action_type == "migrate"}
    assert tries == {"move-web-1": 1, "move-web-2": 1, "move-web-3": 2}
    assert state_of(actionplan, "compute-1")["safe_to_power_off"]


def test_a_plan_that_the_cloud_does_not_fit_any_more_is_refused(actionplan, cloud):
    created(actionplan, "compute-1")
    move(cloud, "web-1", "compute-4")
    cloud.delete_instance(WEB["web-2"], Event())
    goal = destination(actionplan, "move-web-3")
    cloud.set_service_status(goal, "disabled", "smoke", Event())
    for words in (("apply", "last", "--yes"), ("start", "last")):
        ended = actionplan(*words)
        told = ("  web-1 is on compute-4", "  web-2 does not exist", f"  {goal}, ")
        assert (ended.code, all(text in ended.out for text in told)) == (4, True), ended
    assert actionplan.plan().state is PlanState.RECOMMENDED
    assert "not as planned:\n" in actionplan.good("start", "last", "--accept-drift")
    assert actionplan("apply", "last", "--yes", "--accept-drift").code == 3
    assert {a.name: a.state for a in actionplan.plan().actions} == {
        "disable-compute-1": ActionState.SUCCEEDED,
        "move-web-1": ActionState.SKIPPED,
        "move-web-2": ActionState.SKIPPED,
        "move-web-3": ActionState.FAILED,
    }


def test_what_the_plan_itself_changes_is_no_drift_nor_is_what_is_there_already(actionplan, cloud):
    cloud.set_service_status("compute-3", "disabled", None, Event())
    enable: dict[str, Any] = {
        "action_type": "change_nova_service_state",
        "resource_id": "compute-3",
    }
    enable["input_parameters"] = {"state": "enabled"}
    there, back = (
        {"migration_type": "live", "source_node": source, "destination_node": destination}
        for source, destination in (("compute-1", "compute-3"), ("compute-3", "compute-4"))
    )
    moves = ({**MOVE, "input_parameters": way} for way in (there, back))
    actionplan.good("apply", actionplan.document("plan.yaml", enable, *moves), "--yes")
    assert cloud.instance(WEB["web-1"])["host"] == "compute-4"
    move(cloud, "web-1", "compute-1")
    created(actionplan, "compute-1")
    move(cloud, "web-1", destination(actionplan, "move-web-1"))
    actionplan.good("apply", "last", "--yes")
    plan = actionplan.plans()[0]
    assert [a.state for a in plan.actions if a.name == "move-web-1"] == [ActionState.SKIPPED]


def test_a_dry_run_tells_what_is_to_do_and_changes_nothing(actionplan):
    before = actionplan.good("simulator", "show")
    check_golden("dry_run", actionplan.good("apply", str(EXAMPLE), "--dry-run"))
    assert actionplan.plans() == []
    assert actionplan.good("simulator", "show") == before
    actionplan.good("apply", str(EXAMPLE), "--yes")
    ended = actionplan("apply", "last", "--dry-run")
    assert (ended.code, "nothing of it is left to do" in ended.err) == (1, True)


def test_a_dry_run_tells_what_is_done_what_moved_and_what_is_refused(actionplan, cloud):
    cloud.snapshot()  # It makes the file.
    world = json.loads(actionplan.simulator.read_text())
    named = {about["name"]: about for about in world["instances"].values()}
    named["web-1"]["host"], named["db-1"]["host"] = "compute-3", "compute-1"
    world["services"]["compute-1"]["status"] = "disabled"
    world["hosts"]["compute-2"]["power"] = "off"
    actionplan.simulator.write_text(json.dumps(world))
    ended = actionplan("apply", str(EXAMPLE), "--dry-run")
    check_golden("dry_run_moved", ended.out)
    assert (ended.code, actionplan.plans()) == (4, [])


def test_the_cloud_says_to_which_instance_a_volume_is_attached(actionplan):
    """Work on a volume and on its instance is kept apart, although the document has no facts."""
    retype = {
        "resource_id": "7b2e0001-0000-4000-8000-000000000001",
        "migration_type": "retype",
        "destination_type": "ssd",
    }
    stop = {"action_type": "stop", "resource_id": "6a1f0002-0000-4000-8000-000000000001"}
    document = {
        "planner": "workload_stabilization",
        "actions": [{"action_type": "volume_migrate", "input_parameters": retype}, stop],
    }
    (actionplan.folder / "both.yaml").write_text(yaml.safe_dump(document))
    actionplan.good("apply", "both.yaml", "--yes")
    (plan,) = actionplan.plans()
    volume, stop = plan.actions
    assert stop.needs == (volume.uuid,)
    assert plan.warnings == ()
    assert volume.tokens[-1] == "instance:6a1f0002-0000-4000-8000-000000000001"
