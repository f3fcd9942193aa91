# SPDX-License-Identifier: Apache-2.0
"""Instances stop, start, move, resize, are created, deleted: what is done, refused and undone."""

from __future__ import annotations

import pytest

from applier.actions.group_instances import CreateInstance, DeleteInstance
from applier.actions.instance_moves import Migrate, Resize
from applier.actions.instances import Delete, Shelve, Start, Stop, Unshelve
from applier.contracts import Verified
from applier.errors import ActionFailed, AlreadyDone
from planner.plan.model import Effect, Touch
from planner.plan.states import Outcome

#: Each type with the status of an instance before and after it; None is an instance that is gone.
KINDS = [
    (Stop, "ACTIVE", "SHUTOFF"),
    (Shelve, "ACTIVE", "SHELVED"),
    (Delete, "ACTIVE", None),
    (Start, "SHUTOFF", "ACTIVE"),
    (Unshelve, "SHELVED", "ACTIVE"),
]


@pytest.mark.parametrize(("kind", "before", "after"), KINDS)
def test_it_is_done_afterwards_and_not_before(context, cloud, stop, web_1, kind, before, after):
    if before != "ACTIVE":
        cloud.set_instance_status(web_1["resource_id"], before, stop)
    work = kind(web_1, context)
    work.precheck()
    assert work.verify() is Verified.NOT_DONE
    assert work.execute(stop) is Outcome.CHANGED
    found = cloud.instance(web_1["resource_id"])
    assert (found and found["status"]) == after
    assert work.verify() is Verified.DONE
    with pytest.raises(AlreadyDone, match=after or "does not exist"):
        work.precheck()


@pytest.mark.parametrize("kind", [kind for kind, _, _ in KINDS])
def test_its_words_and_touches_and_an_instance_that_is_gone_is_done(context, gone, web_1, kind):
    assert kind.describe(web_1) == f"{kind.TYPE} web-1"
    assert kind.describe({"resource_id": "6a1f"}) == f"{kind.TYPE} 6a1f"
    assert kind.touches(web_1) == (Touch(f"instance:{web_1['resource_id']}"),)
    with pytest.raises(AlreadyDone, match="web-9"):
        kind(gone, context).precheck()


def test_one_that_is_shelved_is_not_started(context, cloud, stop, web_1):
    cloud.set_instance_status(web_1["resource_id"], "SHELVED", stop)
    with pytest.raises(ActionFailed, match="web-1 is SHELVED"):
        Start(web_1, context).precheck()


def test_a_start_is_undone_by_a_stop(context, cloud, stop, web_1):
    work = Start(web_1, context)
    assert work.revert(stop) is Outcome.CHANGED
    assert cloud.instance(web_1["resource_id"])["status"] == "SHUTOFF"
    assert work.revert(stop) is Outcome.OK


def test_a_resize_gives_the_instance_its_flavor(context, cloud, stop, gone, web_1):
    work = Resize({**web_1, "flavor": "m1.large"}, context)
    work.precheck()
    assert work.execute(stop) is Outcome.CHANGED
    assert cloud.instance(web_1["resource_id"])["flavor"] == "m1.large"
    with pytest.raises(AlreadyDone, match=r"web-1 is m1\.large already"):
        work.precheck()
    with pytest.raises(AlreadyDone, match="web-9"):
        Resize({**gone, "flavor": "m1.large"}, context).precheck()
    with pytest.raises(ActionFailed, match=r"m9\.huge: there is no such"):
        Resize({**web_1, "flavor": "m9.huge"}, context).precheck()
    assert Resize.describe({**web_1, "flavor": "m1.large"}) == "resize web-1 to m1.large"
    assert Resize.touches(web_1) == (Touch(f"instance:{web_1['resource_id']}"),)


# Migrate: what it finds done, what it refuses, where it moves.


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


# Instances of a group: created from what a template says, deleted by UUID or name, and undone.

NEW = {"name": "job-11", "configuration": {"ImageId": "jobs-2", "InstanceType": "m1.nano"}}
DEFINITION = {"configuration": {"InstanceType": "m1.medium"}}


def test_it_creates_what_the_definition_says(context, cloud, printed, stop):
    work = CreateInstance(NEW, context)
    work.precheck()
    assert work.verify() is Verified.NOT_DONE
    assert work.execute(stop) is Outcome.CREATED
    made = cloud.instance_named("job-11")
    assert cloud.instance(made) == {
        "name": "job-11",
        "host": "compute-3",
        "flavor": "m1.nano",
        "status": "ACTIVE",
        "task": None,
    }
    assert printed == [f"job-11 is {made}\n"]
    assert work.verify() is Verified.DONE


def test_one_that_is_there_is_done(context):
    with pytest.raises(AlreadyDone, match="there is an instance web-1 already"):
        CreateInstance({**NEW, "name": "web-1"}, context).precheck()


def test_a_flavor_that_does_not_exist_is_refused_beforehand(context):
    huge = {**NEW, "configuration": {"InstanceType": "m9.huge"}}
    with pytest.raises(ActionFailed, match=r"job-11 .*no flavor m9\.huge"):
        CreateInstance(huge, context).precheck()


def test_a_definition_without_a_flavor_fails(context, stop):
    with pytest.raises(ActionFailed, match="its definition has no flavor"):
        CreateInstance({**NEW, "configuration": {}}, context).execute(stop)


def test_it_is_undone_by_taking_it_away(context, cloud, stop):
    work = CreateInstance(NEW, context)
    work.execute(stop)
    assert work.verify_revert() is Verified.NOT_DONE
    assert work.revert(stop) is Outcome.CHANGED
    assert work.verify_revert() is Verified.DONE
    assert cloud.instance_named("job-11") is None
    assert work.revert(stop) is Outcome.OK


def test_its_words_and_touches():
    assert CreateInstance.describe(NEW) == "create job-11 (jobs-2, m1.nano)"
    assert CreateInstance.touches(NEW) == (Touch("instance:job-11"),)


@pytest.mark.parametrize("named", [False, True], ids=["by UUID", "by name"])
def test_it_removes_the_instance(context, cloud, stop, web_1, named):
    work = DeleteInstance({"resource_id": "web-1"} if named else web_1, context)
    work.precheck()
    assert work.verify() is Verified.NOT_DONE
    assert work.execute(stop) is Outcome.CHANGED
    assert cloud.instance_named("web-1") is None
    assert work.verify() is Verified.DONE


def test_one_that_is_gone_is_done(context, gone):
    with pytest.raises(AlreadyDone, match="instance web-9 does not exist any more"):
        DeleteInstance(gone, context).precheck()


def test_it_is_created_again_from_its_definition(context, cloud, stop, web_1):
    work = DeleteInstance({**web_1, **DEFINITION}, context)
    work.execute(stop)
    assert work.verify_revert() is Verified.NOT_DONE
    assert work.revert(stop) is Outcome.CREATED
    assert work.verify_revert() is Verified.DONE
    again = cloud.instance_named("web-1")
    assert again != web_1["resource_id"]
    assert cloud.instance(again)["flavor"] == "m1.medium"
    assert work.revert(stop) is Outcome.OK
    assert work.verify() is Verified.NOT_DONE, "it goes by its old name"


def test_without_a_definition_it_cannot_be_created_again(context, stop, web_1):
    work = DeleteInstance(web_1, context)
    work.execute(stop)
    with pytest.raises(ActionFailed, match="web-1 cannot be created again"):
        work.revert(stop)


def test_a_name_that_several_have_is_refused(context, cloud, tmp_path):
    cloud.reset(
        tmp_path / "cloud.json",
        {
            "hosts": {"a": {"vcpus": 2, "ram_mb": 2, "disk_gb": 2}},
            "flavors": {"f": {"vcpus": 1, "ram_mb": 1, "disk_gb": 1}},
            "instances": {
                f"00000000-0000-4000-8000-00000000000{i}": {"name": "x", "host": "a", "flavor": "f"}
                for i in (1, 2)
            },
        },
    )
    with pytest.raises(ActionFailed, match="2 instances are called x: name the uuid"):
        DeleteInstance({"resource_id": "x"}, context).precheck()
