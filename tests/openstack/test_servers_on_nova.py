# SPDX-License-Identifier: Apache-2.0
"""What the cloud ``openstack`` does with servers, compared with the records of a real Nova."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from nova_lab import NovaLab

from applier.clouds.openstack.cloud import OpenStackCloud
from applier.errors import ActionFailed
from planner.plan.extent import Members

pytestmark = pytest.mark.slow


def on_host(lab: NovaLab, host: str, **metadata: str) -> str:
    return lab.boot("web-1", host, **metadata)


def test_what_is_there_and_what_is_not(cloud: OpenStackCloud, lab: NovaLab) -> None:
    server = on_host(lab, "cmp1")
    assert cloud.instance(server) == {
        "name": "web-1",
        "host": "cmp1",
        "flavor": "m1.small",
        "status": "ACTIVE",
        "task": None,
    }
    assert cloud.instance_named("web-1") == server
    assert cloud.instance_named("web") is None
    assert cloud.service("cmp1") == {"status": "enabled", "reason": None}
    room = {"vcpus": 1, "ram_mb": 2048, "disk_gb": 10}
    assert cloud.flavor("m1.small") == {"name": "m1.small", **room}
    nothing = "00000000-0000-4000-8000-000000000000"
    for get in (cloud.instance, cloud.service, cloud.flavor):
        assert get(nothing) is None
    assert cloud.name == f"openstack lab ({lab.connection.config.auth['auth_url']}, lab)"


def test_two_of_one_name_are_not_one(cloud: OpenStackCloud, lab: NovaLab) -> None:
    on_host(lab, "cmp1")
    on_host(lab, "cmp2")
    with pytest.raises(ActionFailed, match="2 instances are called web-1"):
        cloud.instance_named("web-1")


@pytest.mark.parametrize("live", [True, False], ids=["live", "cold"])
@pytest.mark.parametrize("destination", ["cmp2", None], ids=["named", "chosen"])
def test_a_move_ends_with_its_record(cloud, lab, stop, live, destination):
    server, printed = on_host(lab, "cmp1"), []
    arrived = cloud.migrate(server, destination, live, stop, printed.append)
    assert arrived in ({destination} if destination else {"cmp2", "cmp3"})
    assert lab.server(server).compute_host == arrived
    kind, end = ("live-migration", "completed") if live else ("migration", "confirmed")
    assert lab.moves(server) == [(kind, arrived, end)]
    request = lab.nova.server_actions(server)
    assert {f"request {action.request_id}" for action in request} & {
        line.rstrip().partition(": ")[2] for line in printed
    }
    assert cloud.instance(server)["task"] is None


def test_one_that_is_off_moves_cold_and_stays_off(cloud, lab, stop):
    server = on_host(lab, "cmp1")
    cloud.set_instance_status(server, "SHUTOFF", stop)
    assert cloud.migrate(server, "cmp3", False, stop) == "cmp3"
    assert cloud.instance(server)["status"] == "SHUTOFF"


@pytest.mark.parametrize(
    ("metadata", "destination", "why"),
    [
        ({}, "nowhere", "refused: .* nowhere "),
        ({"lab_lm_precheck": "fail"}, "cmp2", "refused: No valid host was found"),
    ],
    ids=["no such host", "refused"],
)
def test_a_move_that_is_refused_says_why(cloud, lab, stop, metadata, destination, why):
    server = on_host(lab, "cmp1", **metadata)
    with pytest.raises(ActionFailed, match=why):
        cloud.migrate(server, destination, True, stop)


def stopped_when(lab: NovaLab, runs: Callable[[], bool], stop: threading.Event) -> threading.Thread:
    """Set a stop signal once something runs in Nova."""

    def wait_and_stop() -> None:
        lab.until(runs, "a task")
        stop.set()

    thread = threading.Thread(target=wait_and_stop)
    thread.start()
    return thread


@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "once it runs"])
def test_a_live_move_that_is_stopped_is_cancelled(cloud, lab, stop, at_once):
    server = on_host(lab, "cmp1", lab_lm_seconds="60")

    def runs() -> bool:
        return lab.server(server).task_state is not None if at_once else lab.is_moving(server)

    stopping = stopped_when(lab, runs, stop)
    with pytest.raises(ActionFailed, match="was stopped: Nova cancelled migration"):
        cloud.migrate(server, "cmp2", True, stop)
    stopping.join()
    assert lab.server(server).compute_host == "cmp1"
    assert lab.moves(server) == [("live-migration", "cmp2", "cancelled")]


def test_a_cold_move_that_waits_for_its_confirmation_is_confirmed(cloud, lab, stop):
    server = on_host(lab, "cmp1")
    lab.nova.migrate_server(server, host="cmp2")
    lab.until(lambda: lab.server(server).status == "VERIFY_RESIZE", "VERIFY_RESIZE")
    assert cloud.instance(server)["task"] == "verify_resize"
    assert cloud.migrate(server, "cmp2", False, stop) == "cmp2"
    assert lab.moves(server) == [("migration", "cmp2", "confirmed")]


def test_one_that_somebody_else_moves_elsewhere_is_left_alone(cloud, lab, stop, hold):
    server = on_host(lab, "cmp1", lab_hold=str(hold))
    hold.touch()
    lab.nova.live_migrate_server(server, host="cmp3", block_migration="auto")
    lab.until(lambda: lab.moves(server) != [], "a record of the move")
    with pytest.raises(ActionFailed, match="moved to cmp3 already"):
        cloud.migrate(server, "cmp2", True, stop)
    hold.unlink()
    # A server that is deleted while it moves keeps room in Placement.
    lab.until(lambda: lab.server(server).task_state is None, "the end of the move")
    assert [destination for _, destination, _ in lab.moves(server)] == ["cmp3"]


def test_a_resize_is_confirmed(cloud, lab, stop):
    server = on_host(lab, "cmp1")
    cloud.resize(server, "m1.medium", stop)
    assert cloud.instance(server) | {"host": None} == {
        "name": "web-1",
        "host": None,
        "flavor": "m1.medium",
        "status": "ACTIVE",
        "task": None,
    }
    with pytest.raises(ActionFailed, match="there is no flavor m9"):
        cloud.resize(server, "m9", stop)


def test_statuses(cloud, lab, stop):
    server = on_host(lab, "cmp1")
    for status in ("SHUTOFF", "ACTIVE", "SHELVED", "ACTIVE", "ACTIVE"):
        cloud.set_instance_status(server, status, stop)
        assert cloud.instance(server)["status"] == status
    actions = [action.action for action in lab.nova.server_actions(server)]
    assert actions == ["unshelve", "shelve", "start", "stop", "create"]


WANTED = {"flavor": "m1.small", "image": "cirros", "networks": "none"}


def test_one_that_is_created_is_there_and_is_deleted(cloud, lab, stop):
    made = cloud.create_instance("job-1", WANTED | {"metadata": {"a": "b"}}, stop)
    assert lab.server(made).metadata == {"a": "b"}
    assert cloud.create_instance("job-1", WANTED, stop) == made
    cloud.delete_instance(made, stop)
    assert cloud.instance(made) is None
    cloud.delete_instance(made, stop)


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        ({"flavor": "m9"}, "refused: there is no flavor m9"),
        ({"image": "none"}, "refused: there is no image none"),
        ({"user_data": "${Secret}"}, r"only an orchestration knows: \$\{Secret\}"),
    ],
)
def test_one_that_cannot_be_created_says_why(cloud, stop, wanted, why):
    with pytest.raises(ActionFailed, match=why):
        cloud.create_instance("job-1", WANTED | wanted, stop)


def test_a_service_is_disabled_with_a_reason_and_enabled(cloud, stop):
    cloud.set_service_status("cmp3", "disabled", "maintenance", stop)
    assert cloud.service("cmp3") == {"status": "disabled", "reason": "maintenance"}
    cloud.set_service_status("cmp3", "enabled", None, stop)
    assert cloud.service("cmp3") == {"status": "enabled", "reason": None}
    with pytest.raises(ActionFailed, match="there is no compute service on cmp9"):
        cloud.set_service_status("cmp9", "enabled", None, stop)


def test_facts_are_what_nova_and_placement_say(cloud, lab):
    def are_empty() -> bool:
        free, *others = (host["free"] for host in cloud.facts()["hosts"].values())
        return others == [free, free]

    # Nova forgets a server before Placement forgets what it occupied.
    lab.until(are_empty, "three hosts with the same room")
    before = cloud.facts()["hosts"]["cmp1"]["free"]
    server = on_host(lab, "cmp1")
    facts = cloud.facts()
    assert facts["cloud"] == cloud.name
    assert facts["instances"] == {server: cloud.instance(server)}
    assert sorted(facts["hosts"]) == ["cmp1", "cmp2", "cmp3"]
    free = facts["hosts"]["cmp1"]["free"]
    assert {room: before[room] - free[room] for room in free} == {"vcpus": 1, "ram_mb": 2048}
    assert facts["services"]["cmp2"]["status"] == "enabled"
    assert facts["flavors"]["m1.small"]["vcpus"] == 1


def test_many_that_are_waited_for_are_asked_for_together(cloud, lab, stop):
    """Each is read before, after the request and at the end; meanwhile there are only lists."""
    servers = [lab.boot(f"web-{i}", "cmp1", lab_lm_seconds="5") for i in range(4)]
    before = len(lab.requests())
    threads = [
        threading.Thread(target=cloud.migrate, args=(server, "cmp2", True, stop))
        for server in servers
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asked = lab.requests()[before:]
    assert {lab.server(server).compute_host for server in servers} == {"cmp2"}
    single = [line for line in asked if line.startswith("GET") and "/servers/" in line]
    single = [line for line in single if "/servers/detail" not in line and "os-" not in line]
    assert len(single) == 3 * len(servers), single
    assert any("changes-since" in line for line in asked)


def test_hosts_have_labels_of_their_aggregates_and_zones(
    cloud: OpenStackCloud, lab: NovaLab
) -> None:
    """So that half of a rack is bounded as half of a zone is."""
    made = []
    try:
        for name, hosts, metadata in (
            ("left", ("cmp1", "cmp2"), {"rack": "r1"}),
            ("ssd", ("cmp1",), {"ssd": "true"}),
            ("right", ("cmp3",), {"rack": "r2", "availability_zone": "east"}),
        ):
            made.append(lab.nova.create_aggregate(name=name))
            lab.nova.set_aggregate_metadata(made[-1], metadata)
            for host in hosts:
                lab.nova.add_host_to_aggregate(made[-1], host)
        facts = cloud.facts()
        assert {host: fact["labels"] for host, fact in facts["hosts"].items()} == {
            "cmp1": {"rack": "r1", "ssd": "true", "aggregate": ["left", "ssd"], "zone": "nova"},
            "cmp2": {"rack": "r1", "aggregate": "left", "zone": "nova"},
            "cmp3": {"rack": "r2", "aggregate": "right", "zone": "east"},
        }
        totals = Members(facts).totals
        assert (totals["rack/r1"], totals["zone/nova"], totals["aggregate/ssd"]) == (2, 2, 1)
    finally:
        for aggregate in made:
            for host in lab.nova.get_aggregate(aggregate).hosts or ():
                lab.nova.remove_host_from_aggregate(aggregate, host)
            lab.nova.delete_aggregate(aggregate)
