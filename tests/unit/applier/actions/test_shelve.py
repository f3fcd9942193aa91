# SPDX-License-Identifier: Apache-2.0
"""Shelve: what it finds done, and what it changes."""

from __future__ import annotations

import pytest

from applier.actions.shelve import Shelve
from applier.errors import AlreadyDone
from planner.model import Touch
from planner.states import Outcome


def test_the_instance_is_shelved_afterwards_and_then_it_is_done(context, cloud, stop, web_1):
    work = Shelve(web_1, context)
    work.precheck()
    assert work.execute(stop) is Outcome.CHANGED
    assert cloud.instance(web_1["resource_id"])["status"] == "SHELVED"
    with pytest.raises(AlreadyDone, match="web-1 is SHELVED already"):
        work.precheck()


def test_an_instance_that_is_gone_is_done(context, gone):
    with pytest.raises(AlreadyDone, match="instance web-9 does not exist"):
        Shelve(gone, context).precheck()


def test_its_words_and_touches(web_1):
    assert Shelve.describe(web_1) == "shelve web-1"
    assert Shelve.describe({"resource_id": "6a1f"}) == "shelve 6a1f"
    assert Shelve.touches(web_1) == (Touch(f"instance:{web_1['resource_id']}"),)
