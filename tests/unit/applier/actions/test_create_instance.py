# SPDX-License-Identifier: Apache-2.0
"""Create an instance: found by its name, made of what a template says, and taken away again."""

from __future__ import annotations

import pytest

from applier.actions.create_instance import CreateInstance
from applier.contracts import Verified
from applier.errors import ActionFailed, AlreadyDone
from planner.model import Touch
from planner.states import Outcome

NEW = {"name": "job-11", "configuration": {"ImageId": "jobs-2", "InstanceType": "m1.nano"}}


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
