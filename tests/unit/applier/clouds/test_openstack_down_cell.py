# SPDX-License-Identifier: Apache-2.0
"""A cell of Nova whose database does not answer: its servers are known by their ids alone.

The answers are those of Nova since microversion 2.69. Lists with filters leave the servers out.
"""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

pytest.importorskip("openstack")

from openstack.compute.v2.server import Server
from openstack.compute.v2.service import Service

from applier.actions.instance_moves import Migrate
from applier.actions.revert import Revert
from applier.clouds.openstack import calls as calls_module
from applier.clouds.openstack import power
from applier.clouds.openstack.calls import Calls
from applier.clouds.openstack.compute import Compute
from applier.clouds.openstack.inventory import Inventory
from applier.clouds.openstack.server_fields import view
from applier.contracts import ActionContext
from applier.errors import ActionFailed

#: openstacksdk warns of what it calls itself.
pytestmark = pytest.mark.filterwarnings(
    "ignore:The _compute_attributes method is deprecated for removal"
)
UUID = "6a1f0001-0000-4000-8000-000000000001"
DOWN_SERVER = Server.existing(id=UUID, status="UNKNOWN", created_at="2026-01-01T00:00:00Z")
DOWN_SERVICE = Service.existing(binary="nova-compute", host="cmp1", status="UNKNOWN")
SERVICE = Service.existing(id="1", binary="nova-compute", host="cmp1", status="enabled", state="up")
SERVER = Server.existing(id=UUID, name="web-1", status="ACTIVE", compute_host="cmp1")


class Nova:
    """One host and one server; ``services`` are the answers about the host, one after another."""

    def __init__(self, *services: Service, server: Server = DOWN_SERVER) -> None:
        self._services, self._server = list(services), server
        self.get_server = lambda _: server
        self.migrations = lambda **_: []

    def services(self, **_: object) -> list[Service]:
        return [self._services.pop(0) if len(self._services) > 1 else self._services[0]]

    def servers(self, **filters: object) -> list[Server]:
        is_left_out = self._server is DOWN_SERVER and filters != {"all_projects": True}
        return [] if is_left_out else [self._server]


def context(compute: Compute) -> ActionContext:
    cloud = SimpleNamespace(
        instance=lambda uuid: view(compute.server(uuid)), service=compute.service
    )
    return ActionContext(cloud=lambda: cloud, output=lambda _: None)


def test_a_server_is_not_known_to_have_moved():
    parameters = {
        "resource_id": UUID,
        "resource_name": "web-1",
        "migration_type": "live",
        "source_node": "cmp1",
        "destination_node": "cmp2",
    }
    compute = Compute(Nova(SERVICE), Calls(0.0))
    with pytest.raises(ConnectionError, match=f"instance {UUID}: its cell does not answer"):
        Migrate(parameters, context(compute)).precheck()


def test_a_service_is_not_known_to_be_disabled_again():
    parameters = {"resource_id": "cmp1", "state": "enabled"}
    made = Revert(
        {"action_type": "change_nova_service_state", "parameters": parameters},
        context(Compute(Nova(DOWN_SERVICE), Calls(0.0))),
    )
    with pytest.raises(ConnectionError, match="host cmp1: its cell does not answer"):
        made.verify()


def test_a_server_is_read_again_until_its_cell_answers(monkeypatch):
    monkeypatch.setattr(calls_module, "_FIRST_S", 0.001)
    answers = [DOWN_SERVER, DOWN_SERVER, SERVER]
    nova = SimpleNamespace(get_server=lambda _: answers.pop(0))
    assert Compute(nova, Calls(10.0)).wait(UUID, lambda _: True, threading.Event()) is SERVER


@pytest.mark.parametrize(
    "services", [[DOWN_SERVICE], [SERVICE, DOWN_SERVICE]], ids=["down", "down meanwhile"]
)
def test_a_host_is_not_switched_off(services):
    compute = Compute(Nova(*services), Calls(0.0))
    with pytest.raises(ActionFailed, match=r"^switching off cmp1 was refused: .* cell "):
        power.must_not_run(compute, "cmp1", "switching off cmp1")


def test_a_host_without_servers_is_switched_off():
    gone = Server.existing(id=UUID, name="web-1", status="SHUTOFF")
    power.must_not_run(Compute(Nova(SERVICE, server=gone), Calls(0.0)), "cmp1", "switching off")


@pytest.mark.parametrize(
    ("nova", "what"),
    [(Nova(SERVICE), f"instance {UUID}"), (Nova(DOWN_SERVICE, server=SERVER), "host cmp1")],
    ids=["server", "service"],
)
def test_facts_without_a_cell_are_refused(nova, what):
    inventory = Inventory(SimpleNamespace(), Compute(nova, Calls(0.0)))
    with pytest.raises(ConnectionError, match=f"{what}: its cell does not answer"):
        inventory.facts("lab")
