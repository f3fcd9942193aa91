# SPDX-License-Identifier: Apache-2.0
"""Instances of a group: created from what a template says, deleted by UUID or name, and undone."""

from __future__ import annotations

import pytest

from applier.actions.group_instances import CreateInstance, DeleteInstance
from applier.contracts import Verified
from applier.errors import ActionFailed, AlreadyDone
from planner.plan.model import Touch
from planner.plan.states import Outcome

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
