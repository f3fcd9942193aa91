# SPDX-License-Identifier: Apache-2.0
"""Documents of simulated clouds: what is filled in, and what is said when one is wrong."""

from __future__ import annotations

import json

import pytest

from applier.clouds import simulated_document
from applier.errors import ConfigurationError

ROOM = {"vcpus": 4, "ram_mb": 4096, "disk_gb": 40}
UUID = "00000000-0000-4000-8000-000000000001"
DISK = "00000000-0000-4000-8000-000000000002"
GOOD = {
    "hosts": {"a": ROOM},
    "flavors": {"m1": ROOM},
    "instances": {UUID: {"name": "x", "host": "a", "flavor": "m1"}},
    "pools": {"p": {"size_gb": 10}},
    "volumes": {DISK: {"name": "d", "size_gb": 10, "pool": "p"}},
}


def changed(*path_and_value) -> dict:
    *path, last, value = path_and_value
    world = json.loads(json.dumps(GOOD))
    place = world
    for key in path:
        place = place.setdefault(key, {})
    place[last] = value
    return world


def test_what_is_optional_is_filled_in():
    world = simulated_document.read(GOOD)
    assert world["hosts"]["a"] == {**ROOM, "power": "on", "labels": {}}
    assert world["services"] == {"a": {"status": "enabled", "reason": None}}
    assert world["instances"][UUID]["status"] == "ACTIVE"
    assert world["volumes"][DISK]["type"] is None
    assert world["durations"]["resize"] > 0
    assert (world["faults"], world["ongoing"]) == ([], [])


def test_on_and_off_may_stand_without_quotes_in_yaml(tmp_path):
    file = tmp_path / "cloud.yaml"
    host = "{vcpus: 1, ram_mb: 1, disk_gb: 1, power: %s}"
    hosts = "".join(f"  h-{power}: {host % power}\n" for power in ("on", "off", "suspended"))
    file.write_text(f"hosts:\n{hosts}flavors: {{}}\ninstances: {{}}\n")
    powers = {
        name: entry["power"] for name, entry in simulated_document.read(file)["hosts"].items()
    }
    assert powers == {"h-on": "on", "h-off": "off", "h-suspended": "suspended"}


@pytest.mark.parametrize(
    ("world", "sentence"),
    [
        ({}, "document: the field 'hosts' is missing"),
        (changed("flavors", 5), "flavors: 5 is not a mapping"),
        (changed("hsts", {}), "hsts: not a field here"),
        (changed("hosts", "a", "vcpus", -1), "hosts.a.vcpus: -1 is less than 0"),
        (changed("hosts", "a", "vcpu", 1), "hosts.a.vcpu: not a field here"),
        (changed("instances", "web-1", {}), "instances.web-1: 'web-1' is not a UUID"),
        (changed("instances", UUID, "host", "b"), f"instances.{UUID}.host: no host 'b'; Known: a"),
        (changed("instances", UUID, "flavor", "m2"), "no flavor 'm2'; Known: m1"),
        (changed("instances", UUID, "status", "SHELVED"), "a SHELVED instance is on no host"),
        (changed("hosts", "a", "vcpus", 3), "hosts.a.vcpus: its instances need 4"),
        (changed("services", "b", {"status": "enabled"}), "services.b: no host 'b'; Known: a"),
        (changed("volumes", DISK, "pool", "q"), f"volumes.{DISK}.pool: no pool 'q'; Known: p"),
        (changed("volumes", DISK, "type", "ssd"), "no type 'ssd'; Known: none"),
        (changed("volumes", DISK, "instance", DISK), "instance: no instance"),
        (changed("volumes", DISK, "size_gb", 11), "pools.p.size_gb: its volumes need 11 GB"),
        (changed("durations", "nap", 1), "durations.nap: not a field here"),
        (changed("faults", [{"operation": "nap"}]), "faults[0].operation: 'nap' is not accepted"),
        (
            changed("faults", [{"operation": "stop", "target": "y"}]),
            "faults[0].target: no instance",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place(world, sentence):
    with pytest.raises(ConfigurationError) as refusal:
        simulated_document.read(world)
    assert sentence in str(refusal.value)


def test_all_that_is_wrong_is_said_at_once():
    world = changed("hosts", "a", "power", "half")
    world["instances"][UUID]["flavor"] = "m2"
    world["volumes"][DISK] |= {"pool": "q", "type": "ssd"}
    world["faults"] = [{"operation": "stop", "times": 0}]
    with pytest.raises(ConfigurationError) as refusal:
        simulated_document.read(world)
    lines = str(refusal.value).splitlines()
    assert len(lines) == 5


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    broken = tmp_path / "broken.yaml"
    broken.write_text("hosts: [")
    with pytest.raises(ConfigurationError, match=r"broken\.yaml:\d: not YAML"):
        simulated_document.read(broken)
    with pytest.raises(ConfigurationError, match=r"none\.yaml: cannot be read: No such file"):
        simulated_document.read(tmp_path / "none.yaml")
    list_of_hosts = tmp_path / "list.yaml"
    list_of_hosts.write_text("- a")
    with pytest.raises(ConfigurationError, match=r"list\.yaml:1: \['a'\] is not a mapping"):
        simulated_document.read(list_of_hosts)


def test_a_fault_is_filled_in_and_checked():
    world = simulated_document.read(GOOD)
    assert simulated_document.complete_fault(world, {"operation": "stop", "target": "x"}) == {
        "operation": "stop",
        "target": "x",
        "times": None,
        "kind": "fail",
        "message": None,
        "seconds": 0,
    }
    with pytest.raises(ConfigurationError) as refusal:
        simulated_document.complete_fault(world, {"operation": "stop", "kind": "burn", "often": 1})
    assert len(str(refusal.value).splitlines()) == 2


def test_a_fault_must_name_one_thing():
    world = changed("instances", DISK, {"name": "x", "host": "a", "flavor": "none"})
    world["flavors"]["none"] = dict.fromkeys(ROOM, 0)
    with pytest.raises(ConfigurationError, match="2 things are called 'x': name the uuid"):
        simulated_document.complete_fault(world, {"operation": "stop", "target": "x"})
    simulated_document.complete_fault(world, {"operation": "stop", "target": UUID})
