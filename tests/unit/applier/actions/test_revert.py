# SPDX-License-Identifier: Apache-2.0
"""The action that undoes what another type did."""

from __future__ import annotations

import threading

import pytest

from applier.actions.revert import Revert
from applier.clouds.simulated import SimulatedCloud
from applier.contracts import ActionContext, Verified
from applier.errors import ActionFailed
from planner.model import Effect, Touch
from planner.states import Outcome

DISABLE = {"resource_id": "compute-1", "state": "disabled"}
PARAMETERS = {"action_type": "change_nova_service_state", "parameters": DISABLE}


@pytest.fixture
def cloud(tmp_path):
    cloud = SimulatedCloud(tmp_path / "cloud.json", speed=1000)
    cloud.set_service_status("compute-1", "disabled", None, threading.Event())
    return cloud


def revert(cloud, **parameters):
    context = ActionContext(cloud=lambda: cloud, output=lambda _: None)
    return Revert({**PARAMETERS, **parameters}, context)


def test_it_undoes_and_can_tell_whether_it_has(cloud):
    work = revert(cloud)
    work.precheck()
    assert work.verify() is Verified.NOT_DONE
    assert work.execute(threading.Event()) is Outcome.CHANGED
    assert cloud.service("compute-1")["status"] == "enabled"
    assert work.verify() is Verified.DONE
    assert revert(cloud).execute(threading.Event()) is Outcome.OK


def test_it_touches_what_the_other_touches_the_other_way_round():
    assert Revert.touches(PARAMETERS) == [Touch("node:compute-1", Effect.ENABLES)]
    assert Revert.describe(PARAMETERS) == "undo: disable compute-1"


@pytest.mark.parametrize(
    ("name", "why"),
    [("nop", "nop cannot be undone"), ("revert", "no action type"), ("gone", "no action type")],
)
def test_what_cannot_be_undone_is_refused_before_anything_is_done(cloud, name, why):
    with pytest.raises(ActionFailed, match=why):
        revert(cloud, action_type=name).precheck()
