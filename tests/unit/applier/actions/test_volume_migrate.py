# SPDX-License-Identifier: Apache-2.0
"""VolumeMigrate: moves to a pool, or gives a type."""

from __future__ import annotations

import jsonschema
import pytest

from applier.actions.volume_migrate import VolumeMigrate
from applier.contracts import Verified
from applier.errors import ActionFailed, AlreadyDone
from planner.plan.model import Touch
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


def test_a_pool_or_type_that_does_not_exist_is_refused(context, stop):
    with pytest.raises(ActionFailed, match="no pool slow"):
        VolumeMigrate({**TO_FAST, "destination_node": "slow"}, context).execute(stop)
    with pytest.raises(ActionFailed, match="no volume type tape"):
        VolumeMigrate({**TO_SSD, "destination_type": "tape"}, context).execute(stop)


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
