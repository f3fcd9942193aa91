# SPDX-License-Identifier: Apache-2.0
"""VolumeMigrate: moves to a pool, or gives a type."""

from __future__ import annotations

import jsonschema
import pytest

from applier.actions.hosts import (
    ChangeNodePowerState,
    ChangeNovaServiceState,
    TurnHostToAcpiS3State,
)
from applier.actions.volume_migrate import VolumeMigrate
from applier.contracts import Verified
from applier.errors import ActionFailed, AlreadyDone
from planner.plan.model import Effect, Touch
from planner.plan.states import Outcome

DATA = {"resource_id": "7b2e0001-0000-4000-8000-000000000001", "resource_name": "db-1-data"}
TO_FAST = {**DATA, "migration_type": "migrate", "destination_node": "fast"}
TO_SSD = {**DATA, "migration_type": "retype", "destination_type": "ssd"}


@pytest.mark.parametrize(
    ("parameters", "field", "value"),
    [
        (TO_FAST, "pool", "fast"),
        (TO_SSD, "type", "ssd"),
        ({**TO_SSD, "migration_type": "swap"}, "type", "ssd"),
    ],
)
def test_the_volume_is_there_afterwards_and_then_it_is_done(
    context, cloud, stop, parameters, field, value
):
    before = dict(cloud.volume(DATA["resource_id"]))
    work = VolumeMigrate(parameters, context)
    work.precheck()
    assert work.execute(stop) is Outcome.CHANGED
    assert cloud.volume(DATA["resource_id"]) == {**before, field: value}
    with pytest.raises(AlreadyDone, match=f"the {field} of db-1-data is {value} already"):
        work.precheck()


def test_a_volume_that_the_cloud_works_on_is_neither_done_nor_refused(
    context, cloud, stop, monkeypatch
):
    """It has its old pool, or the new one already."""
    moved = {**TO_FAST, "source_node": "bulk"}
    work, volume = VolumeMigrate(moved, context), cloud.volume
    for pool in ("bulk", "fast"):
        busy = {**volume(DATA["resource_id"]), "pool": pool, "task": "migrating"}
        monkeypatch.setattr(cloud, "volume", lambda _, busy=busy: busy)
        work.precheck()
        assert work.verify() is Verified.NOT_DONE
    monkeypatch.setattr(cloud, "volume", volume)
    work.execute(stop)
    assert work.verify() is Verified.DONE
    assert work.revert(stop) is Outcome.CHANGED
    assert work.revert(stop) is Outcome.OK
    busy = {**volume(DATA["resource_id"]), "task": "migrating"}
    monkeypatch.setattr(cloud, "volume", lambda _: busy)
    # The cloud is asked, which waits for the end of its work.
    assert work.revert(stop) is Outcome.CHANGED


def test_a_volume_that_is_gone_is_done(context, gone):
    with pytest.raises(AlreadyDone, match="volume web-9 does not exist"):
        VolumeMigrate({**TO_FAST, **gone}, context).precheck()


@pytest.mark.parametrize(
    "parameters",
    [
        {**TO_FAST, "destination_node": None},
        {**TO_FAST, "migration_type": "retype"},
        {**TO_SSD, "migration_type": "migrate"},
        {**TO_SSD, "migration_type": "swap", "destination_type": None},
        {**DATA, "migration_type": "migrate"},
        {**TO_FAST, "destination_node": {"pool": "fast"}},
        {**TO_FAST, "resource_name": ""},
    ],
)
def test_a_way_without_its_destination_is_refused_by_the_schema(parameters):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(VolumeMigrate.SCHEMA).validate(parameters)


def test_its_words_and_touches():
    assert VolumeMigrate.describe(TO_FAST) == "move volume db-1-data to fast"
    assert VolumeMigrate.describe(TO_SSD) == "retype volume db-1-data to ssd"
    assert VolumeMigrate.describe({}) == "move a volume"
    assert VolumeMigrate.touches(TO_FAST) == (Touch(f"volume:{DATA['resource_id']}"),)


# What switches, suspends, disables and enables hosts: never one that works.

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
