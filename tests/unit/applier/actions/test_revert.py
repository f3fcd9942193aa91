# SPDX-License-Identifier: Apache-2.0
"""After a crash each type says whether its work is done or undone; a revert undoes another type."""

from __future__ import annotations

import threading

import pytest

from applier.actions.hosts import (
    ChangeNodePowerState,
    ChangeNovaServiceState,
    TurnHostToAcpiS3State,
)
from applier.actions.instance_moves import Migrate, Resize
from applier.actions.instances import Delete, Shelve, Stop
from applier.actions.node_commands import Shell
from applier.actions.revert import Revert
from applier.actions.volume_migrate import VolumeMigrate
from applier.clouds.simulated import SimulatedCloud
from applier.contracts import ActionContext, Verified
from applier.errors import ActionFailed
from planner.plan.model import Effect, Touch
from planner.plan.states import Outcome

DISABLE = {"resource_id": "compute-1", "state": "disabled"}
PARAMETERS = {"action_type": "change_nova_service_state", "parameters": DISABLE}


@pytest.fixture
def disabled(tmp_path):
    cloud = SimulatedCloud(tmp_path / "cloud.json", speed=1000)
    cloud.set_service_status("compute-1", "disabled", None, threading.Event())
    return cloud


def revert(cloud, **parameters):
    context = ActionContext(cloud=lambda: cloud, output=lambda _: None)
    return Revert({**PARAMETERS, **parameters}, context)


def test_it_undoes_and_can_tell_whether_it_has(disabled):
    work = revert(disabled)
    work.precheck()
    assert work.verify() is Verified.NOT_DONE
    assert work.execute(threading.Event()) is Outcome.CHANGED
    assert disabled.service("compute-1")["status"] == "enabled"
    assert work.verify() is Verified.DONE
    assert revert(disabled).execute(threading.Event()) is Outcome.OK


@pytest.mark.parametrize(
    ("name", "joins"),
    [("change_nova_service_state", True), ("migrate", True), ("delete_instance", False)],
)
def test_only_what_two_may_undo_at_once_joins_work_that_is_under_way(name, joins):
    """To undo a deletion is to create an instance: two attempts would create two."""
    assert Revert.joins_work({"action_type": name, "parameters": {}}) is joins
    assert not Revert.joins_work({"action_type": "no such type", "parameters": {}})


def test_it_touches_what_the_other_touches_the_other_way_round():
    assert Revert.touches(PARAMETERS) == [Touch("node:compute-1", Effect.ENABLES)]
    assert Revert.describe(PARAMETERS) == "undo: disable compute-1"


@pytest.mark.parametrize(
    ("name", "why"),
    [("nop", "nop cannot be undone"), ("revert", "no action type"), ("gone", "no action type")],
)
def test_what_cannot_be_undone_is_refused_before_anything_is_done(disabled, name, why):
    with pytest.raises(ActionFailed, match=why):
        revert(disabled, action_type=name).precheck()


SERVER = {"resource_id": "6a1f0001-0000-4000-8000-000000000001", "resource_name": "web-1"}
MOVE = {**SERVER, "source_node": "cmp1", "destination_node": "cmp2"}
VOLUME = {"resource_id": "7b2e0001-0000-4000-8000-000000000001", "migration_type": "migrate"}
#: Type, parameters, and the state while a cloud carries out the revert: nothing is over yet.
UNDER_WAY = [
    (
        "migrate",
        {**MOVE, "migration_type": "live"},
        {"host": "cmp2", "status": "MIGRATING", "task": "migrating"},
    ),
    (
        "migrate",
        {**MOVE, "migration_type": "cold"},
        {"host": "cmp1", "status": "ACTIVE", "task": "verify_resize"},
    ),
    ("stop", SERVER, {"status": "SHUTOFF", "task": "powering-on"}),
    ("start", SERVER, {"status": "ACTIVE", "task": "powering-off"}),
    ("create_instance", {"name": "web-1"}, {"status": "ACTIVE", "task": "deleting"}),
    ("delete_instance", SERVER, {"status": "BUILD", "task": "spawning"}),
    (
        "volume_migrate",
        {**VOLUME, "source_node": "a@b#1", "destination_node": "a@b#2"},
        {"pool": "a@b#2", "task": "migrating"},
    ),
    ("change_node_power_state", {"resource_id": "cmp1", "state": "off"}, {"power": "unknown"}),
    ("turn_host_to_acpi_s3_state", {"resource_id": "cmp1"}, {"power": "unknown"}),
]


class Busy:
    """A cloud in which everything is in one state; ``asked`` has the names of the operations."""

    def __init__(self, state):
        self.asked: list[str] = []
        self.instance = self.volume = self.host = lambda _: state
        self.instance_named = lambda _: SERVER["resource_id"]

    def __getattr__(self, name):
        return lambda *_: self.asked.append(name)


def reverted(name, parameters, cloud):
    context = ActionContext(cloud=lambda: cloud, output=lambda _: None)
    return Revert({"action_type": name, "parameters": parameters}, context)


@pytest.mark.parametrize(
    ("name", "parameters", "state"), UNDER_WAY, ids=[f"{n}-{s}" for n, _, s in UNDER_WAY]
)
def test_a_revert_that_is_under_way_is_not_done(name, parameters, state):
    """As after a kill -9 of the applier: another attempt follows it, and its end counts."""
    assert reverted(name, parameters, Busy(state)).verify() is Verified.NOT_DONE


@pytest.mark.parametrize(
    ("name", "parameters", "state", "operation"),
    [
        (*UNDER_WAY[1], "migrate"),
        ("stop", SERVER, {"status": "ACTIVE", "task": "powering-off"}, "set_instance_status"),
        ("start", SERVER, {"status": "SHUTOFF", "task": "powering-on"}, "set_instance_status"),
        (
            "delete_instance",
            {**SERVER, "configuration": {"InstanceType": "m1.medium"}},
            {"status": "BUILD", "task": "spawning"},
            "create_instance",
        ),
    ],
)
def test_a_task_is_followed_before_the_revert_is_done(name, parameters, state, operation):
    cloud = Busy(state)
    reverted(name, parameters, cloud).execute(threading.Event())
    assert cloud.asked == [operation]


@pytest.mark.parametrize(
    ("state", "found"),
    [
        ({"host": "cmp1", "status": "ACTIVE", "task": None}, Verified.DONE),
        ({"host": "cmp2", "status": "ACTIVE", "task": None}, Verified.NOT_DONE),
        ({"host": "cmp3", "status": "ACTIVE", "task": None}, Verified.IN_DOUBT),
        ({"host": None, "status": "SHELVED", "task": None}, Verified.IN_DOUBT),
        (None, Verified.IN_DOUBT),
    ],
)
def test_a_move_back_is_done_on_the_source_alone(state, found):
    assert reverted("migrate", {**MOVE, "migration_type": "live"}, Busy(state)).verify() is found


def test_a_revert_that_ended_otherwise_is_not_done():
    error = {"status": "ERROR", "task": None}
    for name in ("stop", "start"):
        assert reverted(name, SERVER, Busy(error)).verify() is Verified.NOT_DONE
    off = {"power": "off"}
    assert reverted("turn_host_to_acpi_s3_state", SERVER, Busy(off)).verify() is Verified.NOT_DONE


def test_an_instance_that_was_created_again_and_failed_is_not_undone():
    cloud = Busy({"status": "ERROR", "task": None})
    assert reverted("create_instance", {"name": "web-1"}, cloud).verify() is Verified.NOT_DONE
    cloud.instance = {SERVER["resource_id"]: {"status": "ERROR", "task": None}}.get
    again = {"resource_id": "web-1"}
    assert reverted("delete_instance", again, cloud).verify() is Verified.NOT_DONE
    assert reverted("delete_instance", SERVER, cloud).verify() is Verified.DONE, "never deleted"


# After a crash each type says whether its work is done; some types can undo it.

WEB_1 = "6a1f0001-0000-4000-8000-000000000001"
WEB = {"resource_id": WEB_1, "resource_name": "web-1"}
BATCH = {"resource_id": "6a1f0005-0000-4000-8000-000000000001", "resource_name": "batch-1"}
DATA = {"resource_id": "7b2e0001-0000-4000-8000-000000000001", "resource_name": "db-1-data"}
LIVE = {**WEB, "migration_type": "live", "source_node": "compute-1"}
TO_FAST = {**DATA, "migration_type": "migrate", "destination_node": "fast"}

#: Type, parameters: work that is not done at first, and done after it was done.
WORKS = [
    (Migrate, {**LIVE, "destination_node": "compute-3"}),
    (Migrate, {**LIVE, "destination_node": None}),
    (Migrate, {**BATCH, "migration_type": "cold", "source_node": "compute-4"}),
    (Resize, {**WEB, "flavor": "m1.large"}),
    (Resize, {**WEB, "flavor": "m1.large", "source_flavor": "m1.medium"}),
    (Stop, WEB),
    (Shelve, WEB),
    (Delete, WEB),
    (ChangeNovaServiceState, {"resource_id": "compute-1", "state": "disabled"}),
    (ChangeNodePowerState, {"resource_id": "compute-4", "state": "off"}),
    (TurnHostToAcpiS3State, {"resource_id": "compute-4"}),
    (VolumeMigrate, {**TO_FAST, "source_node": "bulk"}),
    (
        VolumeMigrate,
        {
            **DATA,
            "migration_type": "retype",
            "destination_type": "ssd",
            "source_type": "hdd",
        },
    ),
]


@pytest.fixture(params=WORKS, ids=lambda work: f"{work[0].TYPE}-{len(work[1])}")
def work(request, context):
    kind, parameters = request.param
    return kind(parameters, context)


def test_work_is_done_after_it_and_as_it_was_once_it_is_undone(work, cloud, stop):
    assert work.verify() is Verified.NOT_DONE
    before = cloud.snapshot()
    work.execute(stop)
    assert work.verify() is Verified.DONE
    assert cloud.snapshot() != before
    if not work.is_revertible(work.parameters):
        with pytest.raises(ActionFailed, match="cannot be undone"):
            work.revert(stop)
        return
    assert work.verify_revert() is Verified.NOT_DONE
    assert work.revert(stop) is Outcome.CHANGED
    assert work.verify_revert() is Verified.DONE
    assert cloud.snapshot() == before
    assert work.revert(stop) is Outcome.OK, "it is undone already"
    assert cloud.snapshot() == before


GONE = {"resource_id": "00000000-0000-4000-8000-000000000000"}


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        (Migrate, {**LIVE, **GONE}),
        (Resize, {**GONE, "flavor": "m1.large"}),
        (Stop, GONE),
        (Shelve, GONE),
        (ChangeNovaServiceState, {"resource_id": "compute-9", "state": "disabled"}),
        (ChangeNodePowerState, {"resource_id": "compute-9", "state": "off"}),
        (TurnHostToAcpiS3State, {"resource_id": "compute-9"}),
        (VolumeMigrate, {**TO_FAST, **GONE}),
        (Shell, {"argv": ["true"]}),
    ],
)
def test_what_cannot_be_seen_is_in_doubt(context, kind, parameters):
    assert kind(parameters, context).verify() is Verified.IN_DOUBT


def test_an_instance_that_went_somewhere_else_is_in_doubt(context, cloud, stop):
    Migrate({**LIVE, "destination_node": "compute-4"}, context).execute(stop)
    assert Migrate({**LIVE, "destination_node": "compute-3"}, context).verify() is Verified.IN_DOUBT


def test_an_instance_that_does_not_run_any_more_moves_back_cold(context, cloud, stop):
    work = Migrate({**LIVE, "destination_node": "compute-3"}, context)
    work.execute(stop)
    cloud.set_instance_status(WEB_1, "SHUTOFF", stop)
    assert work.revert(stop) is Outcome.CHANGED
    assert cloud.instance(WEB_1)["host"] == "compute-1"


def test_a_move_of_what_is_gone_cannot_be_undone(context, cloud, stop):
    cloud.delete_instance(WEB_1, stop)
    with pytest.raises(ActionFailed, match="web-1 cannot move back to compute-1"):
        Migrate(LIVE, context).revert(stop)


@pytest.mark.parametrize(
    ("kind", "parameters"), [(VolumeMigrate, TO_FAST), (Resize, {**WEB, "flavor": "m1.large"})]
)
def test_who_does_not_say_what_was_before_cannot_undo_it(context, stop, kind, parameters):
    assert not kind.is_revertible(parameters)
    with pytest.raises(ActionFailed, match=f"{kind.TYPE} cannot be undone"):
        kind(parameters, context).revert(stop)
