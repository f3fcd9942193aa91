# SPDX-License-Identifier: Apache-2.0
"""Resize: what it finds done, what it refuses, what it changes."""

from __future__ import annotations

import pytest

from applier.actions.resize import Resize
from applier.errors import ActionFailed, AlreadyDone
from planner.model import Touch
from planner.states import Outcome


def test_it_gives_the_instance_its_flavor(context, cloud, stop, web_1):
    work = Resize({**web_1, "flavor": "m1.large"}, context)
    work.precheck()
    assert work.execute(stop) is Outcome.CHANGED
    assert cloud.instance(web_1["resource_id"])["flavor"] == "m1.large"


def test_an_instance_that_is_gone_is_done(context, gone):
    with pytest.raises(AlreadyDone, match="instance web-9 does not exist"):
        Resize({**gone, "flavor": "m1.large"}, context).precheck()


def test_an_instance_that_has_the_flavor_is_done(context, web_1):
    with pytest.raises(AlreadyDone, match=r"web-1 is m1\.medium already"):
        Resize({**web_1, "flavor": "m1.medium"}, context).precheck()


def test_a_flavor_that_does_not_exist_is_refused(context, web_1):
    with pytest.raises(ActionFailed, match=r"web-1 cannot become m9\.huge: there is no such"):
        Resize({**web_1, "flavor": "m9.huge"}, context).precheck()


def test_its_words_and_touches(web_1):
    assert Resize.describe({**web_1, "flavor": "m1.large"}) == "resize web-1 to m1.large"
    assert Resize.touches(web_1) == (Touch(f"instance:{web_1['resource_id']}"),)
