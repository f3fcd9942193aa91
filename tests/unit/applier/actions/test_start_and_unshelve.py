# SPDX-License-Identifier: Apache-2.0
"""Start and unshelve: what they find done, what they refuse, and what they change."""

from __future__ import annotations

import pytest

from applier.actions.start import Start
from applier.actions.unshelve import Unshelve
from applier.contracts import Verified
from applier.errors import ActionFailed, AlreadyDone
from planner.model import Touch
from planner.states import Outcome


@pytest.mark.parametrize(("kind", "before"), [(Start, "SHUTOFF"), (Unshelve, "SHELVED")])
def test_the_instance_is_active_afterwards_and_then_it_is_done(
    context, cloud, stop, web_1, kind, before
):
    cloud.set_instance_status(web_1["resource_id"], before, stop)
    work = kind(web_1, context)
    work.precheck()
    assert work.verify() is Verified.NOT_DONE
    assert work.execute(stop) is Outcome.CHANGED
    assert cloud.instance(web_1["resource_id"])["status"] == "ACTIVE"
    assert work.verify() is Verified.DONE
    with pytest.raises(AlreadyDone, match="web-1 is ACTIVE already"):
        work.precheck()


def test_one_that_is_shelved_is_not_started(context, cloud, stop, web_1):
    cloud.set_instance_status(web_1["resource_id"], "SHELVED", stop)
    with pytest.raises(ActionFailed, match="web-1 is SHELVED: it is unshelved, not started"):
        Start(web_1, context).precheck()


def test_a_start_is_undone_by_a_stop(context, cloud, stop, web_1):
    work = Start(web_1, context)
    assert work.revert(stop) is Outcome.CHANGED
    assert cloud.instance(web_1["resource_id"])["status"] == "SHUTOFF"
    assert work.revert(stop) is Outcome.OK


@pytest.mark.parametrize("kind", [Start, Unshelve])
def test_their_words_and_touches(context, gone, web_1, kind):
    assert kind.describe(web_1) == f"{kind.TYPE} web-1"
    assert kind.touches(web_1) == (Touch(f"instance:{web_1['resource_id']}"),)
    with pytest.raises(AlreadyDone, match="instance web-9 does not exist"):
        kind(gone, context).precheck()
