# SPDX-License-Identifier: Apache-2.0
"""What can be done in a simulated cloud, decided without time, file or process."""

from __future__ import annotations

import pytest

from applier.clouds import simulated_document, simulated_operations
from applier.clouds.simulated_capacity import free_on_hosts
from applier.errors import ActionFailed

WEB_1 = "6a1f0001-0000-4000-8000-000000000001"
DB_1 = "6a1f0002-0000-4000-8000-000000000001"
BATCH_1 = "6a1f0005-0000-4000-8000-000000000001"
DATA_1 = "7b2e0001-0000-4000-8000-000000000001"
NOTHING = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def world():
    return simulated_document.read()


def goes_on(world, work) -> None:
    keys = ("what", "changes", "uses", "holds")
    world["ongoing"].append({key: getattr(work, key) for key in keys})


def test_what_is_on_its_way_takes_room_on_both_hosts(world):
    before = free_on_hosts(world)
    goes_on(world, simulated_operations.migrate(world, WEB_1, "compute-3", True))
    after = free_on_hosts(world)
    assert before["compute-3"]["vcpus"] - after["compute-3"]["vcpus"] == 2
    assert before["compute-3"]["ram_mb"] - after["compute-3"]["ram_mb"] == 4096
    assert after["compute-1"] == before["compute-1"]


@pytest.mark.parametrize(
    ("prepare", "chosen"),
    [
        (dict, "compute-3"),
        (lambda w: w["services"]["compute-3"].update(status="disabled"), "compute-4"),
        (lambda w: w["hosts"]["compute-3"].update(power="suspended"), "compute-4"),
        (lambda w: w["hosts"]["compute-3"].update(disk_gb=30), "compute-4"),
        (lambda w: w["hosts"]["compute-4"].update(vcpus=15), "compute-3"),
        (lambda w: w["hosts"]["compute-4"].update(vcpus=16), "compute-4"),
    ],
)
def test_the_host_with_most_free_vcpus_that_can_take_it_is_chosen(world, prepare, chosen):
    prepare(world)
    assert (
        simulated_operations.migrate(world, WEB_1, None, True).result["instances"][WEB_1]["host"]
        == chosen
    )


def test_where_nothing_fits_the_need_is_named(world):
    for name in ("compute-2", "compute-3", "compute-4"):
        world["hosts"][name]["power"] = "off"
    with pytest.raises(ActionFailed, match="2 vcpus, 4096 MB of memory, 40 GB"):
        simulated_operations.migrate(world, WEB_1, None, True)


REFUSED = {
    "no instance": (
        lambda w: simulated_operations.migrate(w, NOTHING, None, True),
        "there is no instance",
    ),
    "no host": (
        lambda w: simulated_operations.migrate(w, WEB_1, "c-9", True),
        "there is no host c-9",
    ),
    "same host": (
        lambda w: simulated_operations.migrate(w, WEB_1, "compute-1", True),
        "is on compute-1 al",
    ),
    "live, not active": (
        lambda w: simulated_operations.migrate(w, BATCH_1, None, True),
        "batch-1 is SHUTOFF",
    ),
    "no flavor": (lambda w: simulated_operations.resize(w, WEB_1, "m9"), "there is no flavor m9"),
    "stop twice": (
        lambda w: simulated_operations.set_instance_status(w, BATCH_1, "SHUTOFF"),
        "cannot become SHUTOFF",
    ),
    "delete nothing": (
        lambda w: simulated_operations.delete_instance(w, NOTHING),
        "there is no instance",
    ),
    "no service": (
        lambda w: simulated_operations.set_service_status(w, "c-9", "enabled", None),
        "no compute service on c-9",
    ),
    "no such node": (
        lambda w: simulated_operations.set_host_power(w, "c-9", "on"),
        "there is no host c-9",
    ),
    "busy host": (
        lambda w: simulated_operations.set_host_power(w, "compute-2", "suspended"),
        "compute-2 still runs app-1, db-1, db-2",
    ),
    "no volume": (
        lambda w: simulated_operations.migrate_volume(w, NOTHING, "fast", None),
        "no volume",
    ),
    "no pool": (lambda w: simulated_operations.migrate_volume(w, DATA_1, "p", None), "no pool p"),
    "no type": (
        lambda w: simulated_operations.migrate_volume(w, DATA_1, None, "t"),
        "no volume type t",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_says_what_is_the_matter(world, case):
    attempt, sentence = REFUSED[case]
    with pytest.raises(ActionFailed, match=sentence):
        attempt(world)


@pytest.mark.parametrize("power", ["off", "suspended"])
def test_a_host_that_is_down_neither_gives_nor_receives(world, power):
    world["hosts"]["compute-4"]["power"] = power
    with pytest.raises(ActionFailed, match=f"compute-4 is {power}"):
        simulated_operations.migrate(world, WEB_1, "compute-4", True)
    with pytest.raises(ActionFailed, match=f"compute-4 is {power}"):
        simulated_operations.migrate(world, BATCH_1, "compute-3", False)
    with pytest.raises(ActionFailed, match=f"compute-4 is {power}"):
        simulated_operations.set_instance_status(world, BATCH_1, "ACTIVE")
    simulated_operations.delete_instance(world, BATCH_1)


def test_a_disabled_host_does_not_receive_and_still_gives(world):
    world["services"]["compute-1"]["status"] = "disabled"
    with pytest.raises(ActionFailed, match="compute-1 is disabled"):
        simulated_operations.migrate(world, DB_1, "compute-1", True)
    simulated_operations.migrate(world, WEB_1, "compute-3", True)


def test_all_that_is_short_is_named(world):
    world["hosts"]["compute-3"] |= {"vcpus": 2, "disk_gb": 30}
    with pytest.raises(ActionFailed, match="2 vcpus, 1 free; 40 GB of disk, 10"):
        simulated_operations.migrate(world, WEB_1, "compute-3", True)
    world["hosts"]["compute-1"]["vcpus"] = 7
    with pytest.raises(ActionFailed, match=r"web-1 as m1\.large: needs 2 vcpus, 1"):
        simulated_operations.resize(world, WEB_1, "m1.large")
    world["pools"]["fast"]["size_gb"] = 99
    with pytest.raises(ActionFailed, match=r"fast .* db-1-data: needs 100 GB, 99"):
        simulated_operations.migrate_volume(world, DATA_1, "fast", None)


def test_a_smaller_flavor_always_fits(world):
    world["hosts"]["compute-1"] |= {"vcpus": 6, "ram_mb": 12288, "disk_gb": 120}
    assert simulated_operations.resize(world, WEB_1, "m1.small").holds["host:compute-1"] == {
        "vcpus": 0,
        "ram_mb": 0,
        "disk_gb": 0,
    }


def test_a_shelved_instance_takes_no_room_and_finds_a_host_again(world):
    simulated_operations.commit(
        world, simulated_operations.set_instance_status(world, WEB_1, "SHELVED")
    )
    assert world["instances"][WEB_1]["host"] is None
    assert free_on_hosts(world)["compute-1"]["vcpus"] == 12 - 4
    with pytest.raises(ActionFailed, match="web-1 is SHELVED"):
        simulated_operations.migrate(world, WEB_1, "compute-3", False)
    with pytest.raises(ActionFailed, match="web-1 is SHELVED"):
        simulated_operations.resize(world, WEB_1, "m1.small")
    simulated_operations.commit(
        world, simulated_operations.set_instance_status(world, WEB_1, "ACTIVE")
    )
    assert world["instances"][WEB_1]["host"] == "compute-3"
    assert world["instances"][WEB_1]["status"] == "ACTIVE"


def test_a_removed_instance_leaves_its_volumes(world):
    simulated_operations.commit(world, simulated_operations.delete_instance(world, DB_1))
    assert DB_1 not in world["instances"]
    assert world["volumes"][DATA_1]["instance"] is None


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("migrate", "migrate"),
        ("migrate", "resize"),
        ("migrate", "delete"),
        ("migrate to 4", "power off 4"),
        ("power off 4", "migrate to 4"),
        ("start on 4", "power off 4"),
        ("move volume", "delete owner"),
        ("disable", "disable"),
    ],
)
def test_two_that_touch_the_same_do_not_go_on_at_once(world, first, second):
    begin = {
        "migrate": lambda: simulated_operations.migrate(world, WEB_1, "compute-3", True),
        "resize": lambda: simulated_operations.resize(world, WEB_1, "m1.large"),
        "delete": lambda: simulated_operations.delete_instance(world, WEB_1),
        "migrate to 4": lambda: simulated_operations.migrate(world, WEB_1, "compute-4", True),
        "power off 4": lambda: simulated_operations.set_host_power(world, "compute-4", "off"),
        "start on 4": lambda: simulated_operations.set_instance_status(world, BATCH_1, "ACTIVE"),
        "move volume": lambda: simulated_operations.migrate_volume(world, DATA_1, "fast", None),
        "delete owner": lambda: simulated_operations.delete_instance(world, DB_1),
        "disable": lambda: simulated_operations.set_service_status(
            world, "compute-1", "disabled", None
        ),
    }
    work = begin[first]()
    simulated_operations.refuse_conflicts(world, work)
    goes_on(world, work)
    with pytest.raises(ActionFailed, match=f"cannot begin: {work.what} goes on"):
        simulated_operations.refuse_conflicts(world, begin[second]())


def test_two_that_share_a_host_go_on_at_once(world):
    goes_on(world, simulated_operations.migrate(world, WEB_1, "compute-3", True))
    simulated_operations.refuse_conflicts(
        world, simulated_operations.migrate(world, DB_1, "compute-3", True)
    )
    disable = simulated_operations.set_service_status(world, "compute-1", "disabled", None)
    simulated_operations.refuse_conflicts(world, disable)


def fault(world, **fields):
    world["faults"].append(simulated_document.complete_fault(world, fields))


@pytest.mark.parametrize(
    ("operation", "target", "meant"),
    [
        ("migrate", "web-1", True),
        ("migrate", WEB_1, True),
        ("migrate", "compute-1", True),
        ("migrate", "compute-3", True),
        ("*", "*", True),
        ("migrate", "web-2", False),
        ("migrate", "compute-4", False),
        ("resize", "web-1", False),
    ],
)
def test_a_fault_strikes_what_it_names(world, operation, target, meant):
    fault(world, operation=operation, target=target)
    work = simulated_operations.migrate(world, WEB_1, "compute-3", True)
    assert (simulated_operations.take_fault(world, work) is not None) is meant


def test_a_name_that_two_have_is_no_name(world):
    fault(world, operation="migrate", target="web-1")
    world["instances"][DB_1]["name"] = "web-1"
    work = simulated_operations.migrate(world, WEB_1, "compute-3", True)
    assert simulated_operations.take_fault(world, work) is None


def test_a_fault_is_counted_down_and_then_gone(world):
    fault(world, operation="migrate", times=2)
    fault(world, operation="migrate", message="later")
    work = simulated_operations.migrate(world, WEB_1, "compute-3", True)
    messages = [simulated_operations.take_fault(world, work)["message"] for _ in range(4)]
    assert messages == [None, None, "later", "later"]
    assert [f["message"] for f in world["faults"]] == ["later"]
