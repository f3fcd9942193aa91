# SPDX-License-Identifier: Apache-2.0
"""What others work on has not begun; a creation whose answer is lost is not made again."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest
from keystoneauth1 import exceptions as keystone
from openstack import exceptions

from applier.clouds.openstack.calls import Calls
from applier.clouds.openstack.compute import Compute
from applier.clouds.openstack.power import Power
from applier.clouds.openstack.server_changes import ServerChanges
from applier.contracts.clouds import INSTANCE_FIELDS

pytestmark = pytest.mark.usefixtures("quick")


def conflict() -> exceptions.ConflictException:
    return exceptions.ConflictException(message="others work on it", http_status=409)


class Ironic:
    """One node that is off; somebody locks it right before the first request."""

    def __init__(self) -> None:
        self.requests = 0
        self.node = SimpleNamespace(
            id="n",
            reservation=None,
            target_power_state=None,
            power_state="power off",
            last_error=None,
        )

    def find_node(self, _name: str) -> SimpleNamespace:
        return SimpleNamespace(**vars(self.node))

    def put(self, *_: object, **__: object) -> SimpleNamespace:
        self.requests += 1
        if self.requests == 1:
            self.node.reservation = "conductor-2"
        if self.requests < 3:
            raise conflict()
        self.node.reservation, self.node.power_state = None, "power on"
        return SimpleNamespace(status_code=202, headers={})


def test_a_host_whose_node_others_lock_is_switched_on_later():
    ironic = Ironic()
    connection = SimpleNamespace(has_service=lambda _: True, baremetal=ironic)
    made = Power(connection, Compute(None, Calls(patience_s=120.0)), soft_s=0.0)
    made.set("cmp1", "on", threading.Event(), lambda _: None)
    assert (ironic.requests, ironic.node.power_state) == (3, "power on")


class Nova:
    """One ACTIVE server; somebody reboots it right before the first request."""

    def __init__(self) -> None:
        self.requests, self.task, self.status = 0, None, "ACTIVE"

    def get_server(self, server_id: str) -> SimpleNamespace:
        return SimpleNamespace(
            id=server_id,
            name="web-1",
            status=self.status,
            task_state=self.task,
            compute_host="cmp1",
            power_state=1,
            flavor={},
            updated_at="2026-01-01T00:00:00Z",
        )

    def servers(self, **_: object) -> list[SimpleNamespace]:
        self.task = None
        return [self.get_server("s")]

    def server_actions(self, _server_id: str) -> list[object]:
        return []

    def stop_server(self, _server_id: str) -> None:
        self.requests += 1
        if self.requests == 1:
            self.task = "rebooting"
        if self.requests < 3:
            raise conflict()
        self.status, self.task = "SHUTOFF", None


def test_a_server_that_others_reboot_is_stopped_later():
    nova = Nova()
    ServerChanges(Compute(nova, Calls(patience_s=120.0)), images=None).set_status(
        "s", "SHUTOFF", threading.Event(), lambda _: None
    )
    assert (nova.requests, nova.status) == (3, "SHUTOFF")


# Two servers of one name are never created, even if the answer of Nova is lost.

LOST = [
    keystone.ConnectFailure("lost"),
    exceptions.HttpException(message="Bad Gateway", http_status=502),
    exceptions.HttpException(message="Gateway Timeout", http_status=504),
]


class LosingNova:
    """Answers a creation with an error; the server appears after ``lists`` lists, None: never."""

    def __init__(self, error: Exception, lists: int | None) -> None:
        self._error, self._lists, self.requests = error, lists, 0

    def find_flavor(self, *_: object, **__: object) -> SimpleNamespace:
        return SimpleNamespace(id="f1")

    def create_server(self, **_: object) -> None:
        self.requests += 1
        raise self._error

    def servers(self, **_: object) -> list[SimpleNamespace]:
        if self.requests and self._lists:
            self._lists -= 1
        return [self.get_server("s")] if self._lists == 0 else []

    def get_server(self, server_id: str) -> SimpleNamespace:
        return SimpleNamespace(id=server_id, name="job-1", status="ACTIVE", task_state=None)

    def server_actions(self, _server_id: str) -> list[object]:
        return []


def create(nova: LosingNova, patience_s: float) -> str:
    creation = ServerChanges(Compute(nova, Calls(patience_s)), images=None)
    return creation.create("job-1", {"flavor": "m1"}, threading.Event(), lambda _: None)


@pytest.mark.parametrize("error", LOST, ids=str)
def test_a_server_that_appears_after_a_lost_answer_is_the_one(error):
    nova = LosingNova(error, lists=5)
    assert create(nova, patience_s=120.0) == "s"
    assert nova.requests == 1


@pytest.mark.parametrize("error", LOST, ids=str)
def test_a_creation_without_an_answer_and_a_server_is_in_doubt(error):
    nova = LosingNova(error, lists=None)
    with pytest.raises(ConnectionError):
        create(nova, patience_s=0.05)
    assert nova.requests == 1


class TakingNova(LosingNova):
    """Creates a server, and keeps what it was given."""

    def __init__(self) -> None:
        super().__init__(RuntimeError(), lists=None)
        self.given: dict[str, object] = {}

    def create_server(self, **given: object) -> SimpleNamespace:
        self.given = given
        return self.get_server("s")


def test_every_field_of_an_instance_reaches_nova():
    def given(**wanted: object) -> dict[str, object]:
        nova, images = TakingNova(), SimpleNamespace(find_image=finds)
        creation = ServerChanges(Compute(nova, Calls(1.0)), images=images)
        creation.create("job-1", {"flavor": "m1", **wanted}, threading.Event(), lambda _: None)
        return nova.given

    def finds(*_: object, **__: object) -> SimpleNamespace:
        return SimpleNamespace(id="i1")

    for field in set(INSTANCE_FIELDS) - {"flavor"}:
        assert given(**{field: ["x"]}) != given(), field
    assert given(flavor="m2", tags=["x"]) == given()
