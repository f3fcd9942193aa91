# SPDX-License-Identifier: Apache-2.0
"""Delete an instance: by UUID or name, and back again from what is on record."""

from __future__ import annotations

import pytest

from applier.actions.delete_instance import DeleteInstance
from applier.contracts import Verified
from applier.errors import ActionFailed, AlreadyDone
from planner.states import Outcome

DEFINITION = {"configuration": {"InstanceType": "m1.medium"}}


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
