# SPDX-License-Identifier: Apache-2.0
"""After a crash each type says whether its work is done; some types can undo it."""

from __future__ import annotations

import pytest

from applier.actions.hosts import (
    ChangeNodePowerState,
    ChangeNovaServiceState,
    TurnHostToAcpiS3State,
)
from applier.actions.instance_moves import Migrate, Resize
from applier.actions.instances import Delete, Shelve, Stop
from applier.actions.node_commands import Shell
from applier.actions.volume_migrate import VolumeMigrate
from applier.contracts import Verified
from applier.errors import ActionFailed
from planner.plan.states import Outcome

WEB_1 = "6a1f0001-0000-4000-8000-000000000001"
WEB = {"resource_id": WEB_1, "resource_name": "web-1"}
BATCH = {"resource_id": "6a1f0005-0000-4000-8000-000000000001", "resource_name": "batch-1"}
DATA = {"resource_id": "7b2e0001-0000-4000-8000-000000000001", "resource_name": "db-1-data"}
MOVE = {**WEB, "migration_type": "live", "source_node": "compute-1"}
TO_FAST = {**DATA, "migration_type": "migrate", "destination_node": "fast"}

#: Type, parameters: work that is not done at first, and done after it was done.
WORKS = [
    (Migrate, {**MOVE, "destination_node": "compute-3"}),
    (Migrate, {**MOVE, "destination_node": None}),
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
        (Migrate, {**MOVE, **GONE}),
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
    Migrate({**MOVE, "destination_node": "compute-4"}, context).execute(stop)
    assert Migrate({**MOVE, "destination_node": "compute-3"}, context).verify() is Verified.IN_DOUBT


def test_an_instance_that_does_not_run_any_more_moves_back_cold(context, cloud, stop):
    work = Migrate({**MOVE, "destination_node": "compute-3"}, context)
    work.execute(stop)
    cloud.set_instance_status(WEB_1, "SHUTOFF", stop)
    assert work.revert(stop) is Outcome.CHANGED
    assert cloud.instance(WEB_1)["host"] == "compute-1"


def test_a_move_of_what_is_gone_cannot_be_undone(context, cloud, stop):
    cloud.delete_instance(WEB_1, stop)
    with pytest.raises(ActionFailed, match="web-1 cannot move back to compute-1"):
        Migrate(MOVE, context).revert(stop)


@pytest.mark.parametrize(
    ("kind", "parameters"), [(VolumeMigrate, TO_FAST), (Resize, {**WEB, "flavor": "m1.large"})]
)
def test_who_does_not_say_what_was_before_cannot_undo_it(context, stop, kind, parameters):
    assert not kind.is_revertible(parameters)
    with pytest.raises(ActionFailed, match=f"{kind.TYPE} cannot be undone"):
        kind(parameters, context).revert(stop)
