# SPDX-License-Identifier: Apache-2.0
"""Stop: what it finds done, and what it changes."""

from __future__ import annotations

import pytest

from applier.actions.stop import Stop
from applier.errors import AlreadyDone
from planner.model import Touch
from planner.states import Outcome


def test_the_instance_is_shutoff_afterwards_and_then_it_is_done(context, cloud, stop, web_1):
    work = Stop(web_1, context)
    work.precheck()
    assert work.execute(stop) is Outcome.CHANGED
    assert cloud.instance(web_1["resource_id"])["status"] == "SHUTOFF"
    with pytest.raises(AlreadyDone, match="web-1 is SHUTOFF already"):
        work.precheck()


def test_an_instance_that_is_gone_is_done(context, gone):
    with pytest.raises(AlreadyDone, match="instance web-9 does not exist"):
        Stop(gone, context).precheck()


def test_its_words_and_touches(web_1):
    assert Stop.describe(web_1) == "stop web-1"
    assert Stop.describe({"resource_id": "6a1f"}) == "stop 6a1f"
    assert Stop.touches(web_1) == (Touch(f"instance:{web_1['resource_id']}"),)
