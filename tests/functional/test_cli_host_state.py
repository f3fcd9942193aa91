# SPDX-License-Identifier: Apache-2.0
"""The state of a host in a plan: ``show PLAN --node HOST``."""

from __future__ import annotations

import json
from threading import Event

import pytest
from command_line import CommandLine

from applier.clouds.simulated import SimulatedCloud


@pytest.fixture
def cloud(actionplan: CommandLine) -> SimulatedCloud:
    """Return the cloud that the command line works on."""
    return SimulatedCloud(actionplan.simulator, speed=1000)


def test_what_left_a_host_and_what_remains_is_told(
    actionplan: CommandLine, cloud: SimulatedCloud
) -> None:
    actionplan.good("create", "-", stdin=actionplan.good("drain", "compute-1", "--reason", "fans"))
    before = actionplan.good("show", "last", "--node", "compute-1")
    assert "web-1  ACTIVE: its move has not started\n" in before
    assert before.endswith(
        "Safe to power off: no: 3 instances on it; its service is enabled, so that instances may "
        "come\n"
    )
    cloud.inject({"operation": "migrate", "target": "web-2", "message": "no route"})
    assert actionplan("apply", "last", "--yes").code == 3
    state = json.loads(actionplan.good("show", "last", "--node", "compute-1", "-f", "json"))
    assert {left["name"] for left in state["left"]} == {"web-1", "web-3"}
    assert [(r["name"], r["why"]) for r in state["remains"]] == [
        ("web-2", "its move is FAILED: no route")
    ]
    assert state["service"]["status"] == "disabled"
    assert not state["safe_to_power_off"]
    assert state["not_safe_because"] == ["1 instance on it"]


def test_an_empty_host_is_safe_to_power_off(actionplan: CommandLine) -> None:
    actionplan.good("create", "-", stdin=actionplan.good("drain", "compute-1"))
    actionplan.good("apply", "last", "--yes")
    shown = actionplan.good("show", "last", "--node", "compute-1")
    assert "Remains: 0 instances\nSafe to power off: yes\n" in shown
    entered = actionplan.good("show", "last", "--node", "compute-3")
    assert "cache-1  ACTIVE: no action of the plan moves it\n" in entered


def test_a_host_that_an_open_move_enters_is_not_safe(
    actionplan: CommandLine, cloud: SimulatedCloud
) -> None:
    stop = Event()
    cloud.delete_instance("6a1f0005-0000-4000-8000-000000000001", stop)
    drain = actionplan.good("drain", "compute-1", "compute-2")
    actionplan.good("create", "-", stdin=drain)
    cloud.set_service_status("compute-4", "disabled", None, stop)
    shown = actionplan.good("show", "last", "--node", "compute-4")
    assert "Remains: 0 instances\n" in shown
    assert "Safe to power off: no: move-web-1 is PENDING" in shown


def test_a_host_that_does_not_exist_is_refused(actionplan: CommandLine) -> None:
    actionplan.good("create", "-", stdin=actionplan.good("drain", "compute-1"))
    ended = actionplan("show", "last", "--node", "compute-11")
    assert (ended.code, ended.out) == (1, "")
    assert "--node compute-11: there is no such host; did you mean" in ended.err
