# SPDX-License-Identifier: Apache-2.0
"""The facts of an OpenStack cloud, from answers as a Nova and a Placement gave them."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
import requests

pytest.importorskip("openstack")

from openstack.baremetal.v1.node import Node
from openstack.block_storage.v3.volume import Volume
from openstack.compute.v2.flavor import Flavor
from openstack.compute.v2.hypervisor import Hypervisor
from openstack.compute.v2.server import Server
from openstack.compute.v2.server_group import ServerGroup
from openstack.compute.v2.service import Service

from applier.clouds.openstack.calls import Calls
from applier.clouds.openstack.compute import Compute
from applier.clouds.openstack.inventory import Inventory
from applier.errors import ActionFailed

#: openstacksdk warns of what it calls itself.
pytestmark = pytest.mark.filterwarnings(
    "ignore:The _compute_attributes method is deprecated for removal"
)
TINY = {"original_name": "m1.tiny", "vcpus": 1, "ram": 512, "disk": 1}


def summary(vcpus: tuple[int, int], memory: tuple[int, int]) -> dict:
    kinds = {"VCPU": vcpus, "MEMORY_MB": memory, "DISK_GB": (500, 3)}
    return {"resources": {k: {"capacity": c, "used": u} for k, (c, u) in kinds.items()}}


def hypervisor(host: str, uuid: str) -> Hypervisor:
    return Hypervisor(id=uuid, name=f"{host}.example", service_details={"host": host})


class Nova:
    """The lists of Nova; ``asked`` has the queries."""

    def __init__(self) -> None:
        self.asked: dict[str, dict] = {}
        self.lists = {
            "servers": [
                Server(id="s1", name="vm-1", compute_host="c1", status="ACTIVE", flavor=TINY),
                Server(id="s2", name="vm-2", compute_host="c1", status="DELETED", flavor=TINY),
            ],
            "hypervisors": [
                hypervisor("c1", "h1"),
                hypervisor("c2", "h2"),
                hypervisor("metal", "h3"),
                hypervisor("metal", "h4"),
            ],
            "aggregates": [],
            "services": [
                Service(host="c1", status="disabled", state="up", disabled_reason="fans"),
            ],
            "flavors": [Flavor(id="9", name="m1.big", vcpus=8, ram=65536, disk=0)],
            "server_groups": [
                ServerGroup(
                    id="g1",
                    name="apart",
                    policy="anti-affinity",
                    member_ids=["s1"],
                    rules={"max_server_per_host": 2},
                )
            ],
        }

    def __getattr__(self, name):
        def answer(**query):
            self.asked[name] = query
            return iter(self.lists[name])

        return answer


class Cloud:
    """A connection; Placement answers with ``summaries`` or with a status of its own."""

    def __init__(self, nodes=(), status=200) -> None:
        self.compute, self.placement = Nova(), self
        self.baremetal = SimpleNamespace(nodes=lambda **_: iter(nodes))
        self._has_ironic, self._status = bool(nodes), status
        self.summaries = {"h1": summary((64, 60), (32256, 512)), "h3": summary((1, 0), (1, 0))}

    def has_service(self, name):
        return hasattr(self, "block_storage") if name == "block-storage" else self._has_ironic

    def get(self, url, microversion):
        assert url.startswith("/allocation_candidates?")
        assert microversion == "1.27"
        answer = requests.Response()
        answer.status_code, answer.url = self._status, "http://placement"
        answer._content = json.dumps({"provider_summaries": self.summaries}).encode()
        return answer


def facts_of(cloud: Cloud) -> dict:
    return Inventory(cloud, Compute(cloud.compute, Calls(0))).facts("openstack test")


def test_each_table_is_read_by_one_call():
    cloud = Cloud()
    facts = dict(facts_of(cloud))
    facts.pop("at")
    assert facts == {
        "cloud": "openstack test",
        "instances": {
            "s1": {
                "name": "vm-1",
                "host": "c1",
                "flavor": "m1.tiny",
                "status": "ACTIVE",
                "task": None,
            }
        },
        "hosts": {
            # What Placement has left is free, a full host has nothing, and a front of bare metal
            # receives nothing.
            "c1": {
                "vcpus": 64,
                "ram_mb": 32256,
                "disk_gb": 500,
                "free": {"vcpus": 4, "ram_mb": 31744},
            },
            "c2": {"free": {"vcpus": 0, "ram_mb": 0}},
            "metal": {},
        },
        "services": {"c1": {"status": "disabled", "reason": "fans", "state": "up"}},
        # One that was deleted is known from its servers.
        "flavors": {
            "m1.big": {"vcpus": 8, "ram_mb": 65536, "disk_gb": 0},
            "m1.tiny": {"vcpus": 1, "ram_mb": 512, "disk_gb": 1},
        },
        "server_groups": {
            "g1": {
                "name": "apart",
                "policy": "anti-affinity",
                "members": ["s1"],
                "max_server_per_host": 2,
            }
        },
        "volumes": {},
    }
    assert cloud.compute.asked["servers"] == {"all_projects": True}
    assert cloud.compute.asked["server_groups"] == {"all_projects": True}


def test_volumes_are_those_of_cinder_and_without_it_those_of_servers():
    cloud = Cloud()
    cloud.compute.lists["servers"][0] = Server(
        id="s1", compute_host="c1", status="ACTIVE", flavor=TINY, attached_volumes=[{"id": "v1"}]
    )
    assert facts_of(cloud)["volumes"] == {"v1": {"instance": "s1"}}
    attached = Volume(id="v1", host="a@b#fast", attachments=[{"server_id": "s1"}])
    listed = [attached, Volume(id="v2", name="data", status="available")]
    cloud.block_storage = SimpleNamespace(volumes=lambda **_: iter(listed))
    volumes = facts_of(cloud)["volumes"]
    assert {name: volume["instance"] for name, volume in volumes.items()} == {
        "v1": "s1",
        "v2": None,
    }
    assert volumes["v1"]["pool"] == "a@b#fast"


def test_ironic_tells_the_power_of_hosts():
    nodes = [
        Node(name="c1", power_state="power off"),
        Node(name="c2", power_state=None),
        Node(name=None, power_state="power on"),
    ]
    hosts = facts_of(Cloud(nodes))["hosts"]
    assert hosts["c1"]["power"] == "off"
    assert "power" not in hosts["c2"]


def test_a_placement_that_refuses_is_named():
    with pytest.raises(ActionFailed):
        facts_of(Cloud(status=403))
