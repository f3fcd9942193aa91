# SPDX-License-Identifier: Apache-2.0
"""What switches, suspends, disables and enables hosts: never one that works."""

from __future__ import annotations

import pytest

from applier.actions.hosts import (
    ChangeNodePowerState,
    ChangeNovaServiceState,
    TurnHostToAcpiS3State,
)
from applier.errors import ActionFailed, AlreadyDone
from planner.plan.model import Effect, Touch
from planner.plan.states import Outcome

DISABLED = {"status": "disabled", "reason": "new fans"}
ENABLED = {"status": "enabled", "reason": None}
#: A type with a state, what a host is afterwards, and in words and effects what is done to it.
CHANGES = [
    (ChangeNodePowerState, "off", {"power": "off"}, "power off", Effect.TAKES_DOWN),
    (ChangeNodePowerState, "on", {"power": "on"}, "power on", Effect.BRINGS_UP),
    (TurnHostToAcpiS3State, None, {"power": "suspended"}, "suspend", Effect.TAKES_DOWN),
    (ChangeNovaServiceState, "disabled", DISABLED, "disable", Effect.DISABLES),
    (ChangeNovaServiceState, "down", DISABLED, "disable", Effect.DISABLES),
    (ChangeNovaServiceState, "enabled", ENABLED, "enable", Effect.ENABLES),
    (ChangeNovaServiceState, "up", ENABLED, "enable", Effect.ENABLES),
]


@pytest.mark.parametrize(("kind", "state", "after", "words", "effect"), CHANGES)
def test_a_host_is_changed_once(context, cloud, stop, kind, state, after, words, effect):
    if state == "on":
        cloud.set_host_power("compute-4", "off", stop)
    if after is ENABLED:
        cloud.set_service_status("compute-4", "disabled", "broken", stop)
    parameters = {"resource_id": "17", "resource_name": "compute-4"}
    parameters |= {"state": state} if state else {}
    parameters |= {"disabled_reason": "new fans"} if after is DISABLED else {}
    assert kind.touches(parameters) == (Touch("node:compute-4", effect),)
    assert kind.describe(parameters) == f"{words} compute-4"
    work = kind(parameters, context)
    work.precheck()
    assert work.execute(stop) is Outcome.CHANGED
    found = cloud.host("compute-4") if "power" in after else cloud.service("compute-4")
    assert {name: found[name] for name in after} == after
    with pytest.raises(AlreadyDone, match=f"compute-4 is {next(iter(after.values()))} already"):
        work.precheck()


def test_a_host_may_be_named_by_its_id_alone(context, cloud, stop):
    work = ChangeNodePowerState({"resource_id": "compute-4", "state": "off"}, context)
    assert work.execute(stop) is Outcome.CHANGED
    assert cloud.host("compute-4")["power"] == "off"


def test_a_host_that_runs_instances_is_neither_switched_off_nor_suspended(context, cloud, stop):
    with pytest.raises(ActionFailed, match="compute-1 still runs web-1, web-2, web-3"):
        ChangeNodePowerState({"resource_id": "compute-1", "state": "off"}, context).execute(stop)
    assert cloud.host("compute-1")["power"] == "on"
    with pytest.raises(ActionFailed, match="compute-3 still runs cache-1"):
        TurnHostToAcpiS3State({"resource_id": "compute-3"}, context).execute(stop)


def test_a_host_that_is_off_or_does_not_exist_is_refused(context, cloud, stop):
    cloud.set_host_power("compute-4", "off", stop)
    with pytest.raises(ActionFailed, match="compute-4 cannot be suspended: it is off"):
        TurnHostToAcpiS3State({"resource_id": "compute-4"}, context).precheck()
    with pytest.raises(ActionFailed, match="compute-9 cannot be suspended"):
        TurnHostToAcpiS3State({"resource_id": "compute-9"}, context).precheck()
    with pytest.raises(ActionFailed, match="compute-9 cannot be switched off"):
        ChangeNodePowerState({"resource_id": "compute-9", "state": "off"}, context).precheck()


def test_a_service_that_is_gone_is_done(context):
    with pytest.raises(AlreadyDone, match="no compute service on compute-9"):
        ChangeNovaServiceState({"resource_id": "compute-9", "state": "up"}, context).precheck()
