# SPDX-License-Identifier: Apache-2.0
"""Delete: what it finds done, and what it changes."""

from __future__ import annotations

import pytest

from applier.actions.delete import Delete
from applier.errors import AlreadyDone
from planner.model import Touch
from planner.states import Outcome


def test_the_instance_is_gone_afterwards_and_then_it_is_done(context, cloud, stop, web_1):
    work = Delete(web_1, context)
    work.precheck()
    assert work.execute(stop) is Outcome.CHANGED
    assert cloud.instance(web_1["resource_id"]) is None
    with pytest.raises(AlreadyDone, match="instance web-1 does not exist"):
        work.precheck()


def test_its_words_and_touches(web_1):
    assert Delete.describe(web_1) == "delete web-1"
    assert Delete.touches(web_1) == (Touch(f"instance:{web_1['resource_id']}"),)
