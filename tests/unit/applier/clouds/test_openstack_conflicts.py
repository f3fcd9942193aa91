# SPDX-License-Identifier: Apache-2.0
"""Others may work on a server or node when a request arrives: then this request has not begun."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest
from openstack import exceptions

from applier.clouds.openstack import calls, power, state_waits
from applier.clouds.openstack.calls import Calls
from applier.clouds.openstack.compute import Compute
from applier.clouds.openstack.power import Power
from applier.clouds.openstack.server_states import Statuses


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look again after a moment."""
    for name in ("_FIRST_S", "_LONGEST_S"):
        for module in (calls, power, state_waits):
            monkeypatch.setattr(module, name, 0.001)


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
    Statuses(Compute(nova, Calls(patience_s=120.0))).set(
        "s", "SHUTOFF", threading.Event(), lambda _: None
    )
    assert (nova.requests, nova.status) == (3, "SHUTOFF")
