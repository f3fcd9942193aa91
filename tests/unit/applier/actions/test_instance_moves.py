# SPDX-License-Identifier: Apache-2.0
"""Migrate: what it finds done, what it refuses, where it moves."""

from __future__ import annotations

import pytest

from applier.actions.instance_moves import Migrate
from applier.errors import ActionFailed, AlreadyDone
from planner.plan.model import Effect, Touch
from planner.plan.states import Outcome


@pytest.fixture
def move(web_1) -> dict[str, str]:
    return {
        **web_1,
        "migration_type": "live",
        "source_node": "compute-1",
        "destination_node": "compute-3",
    }


def test_it_moves_the_instance_and_says_where_it_is(context, cloud, printed, stop, move):
    work = Migrate(move, context)
    work.precheck()
    assert work.execute(stop) is Outcome.CHANGED
    assert cloud.instance(move["resource_id"])["host"] == "compute-3"
    assert printed == ["web-1 is on compute-3\n"]


def test_without_a_destination_the_cloud_chooses(context, cloud, printed, stop, move):
    work = Migrate({**move, "destination_node": None}, context)
    work.precheck()
    work.execute(stop)
    assert cloud.instance(move["resource_id"])["host"] == "compute-3"
    assert printed == ["web-1 is on compute-3\n"]


def test_an_instance_that_is_gone_is_done(context, move, gone):
    with pytest.raises(AlreadyDone, match="instance web-9 does not exist"):
        Migrate({**move, **gone}, context).precheck()


def test_an_instance_that_has_left_the_source_is_done(context, cloud, stop, move):
    cloud.migrate(move["resource_id"], "compute-3", True, stop)
    with pytest.raises(AlreadyDone, match=r"web-1 is not on compute-1 .* compute-3$"):
        Migrate(move, context).precheck()


def test_a_shelved_instance_has_left_the_source(context, cloud, stop, move):
    cloud.set_instance_status(move["resource_id"], "SHELVED", stop)
    with pytest.raises(AlreadyDone, match="it is SHELVED, on no host"):
        Migrate(move, context).precheck()


def test_a_move_to_where_it_is_is_done(context, move):
    with pytest.raises(AlreadyDone, match="also its destination"):
        Migrate({**move, "destination_node": "compute-1"}, context).precheck()


def test_a_destination_that_does_not_exist_is_refused(context, move):
    with pytest.raises(ActionFailed, match=r"web-1 .* compute-9: there is no"):
        Migrate({**move, "destination_node": "compute-9"}, context).precheck()


def test_a_disabled_destination_is_refused_with_its_reason(context, cloud, stop, move):
    cloud.set_service_status("compute-3", "disabled", "new fans", stop)
    with pytest.raises(ActionFailed, match=r"compute-3: .*\(new fans\)"):
        Migrate(move, context).precheck()


def test_only_an_active_instance_moves_live(context, cloud, stop, move):
    cloud.set_instance_status(move["resource_id"], "SHUTOFF", stop)
    with pytest.raises(ActionFailed, match="web-1 is SHUTOFF"):
        Migrate(move, context).precheck()
    cold = Migrate({**move, "migration_type": "cold"}, context)
    cold.precheck()
    assert cold.execute(stop) is Outcome.CHANGED


def test_it_touches_the_instance_and_both_hosts(move):
    assert list(Migrate.touches(move)) == [
        Touch(f"instance:{move['resource_id']}", Effect.USES),
        Touch("node:compute-1", Effect.LEAVES),
        Touch("node:compute-3", Effect.ENTERS),
    ]
    assert len(Migrate.touches({**move, "destination_node": None})) == 2


def test_its_words_name_the_instance_and_the_hosts(move):
    assert Migrate.describe(move) == "move web-1 from compute-1 to compute-3"
    cold = {**move, "migration_type": "cold", "destination_node": None}
    assert Migrate.describe(cold) == "move web-1 from compute-1, cold"
    assert Migrate.describe({}) == "move an instance"
