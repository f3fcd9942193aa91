# SPDX-License-Identifier: Apache-2.0
"""ChangeNodePowerState: switches a host, never one that works."""

from __future__ import annotations

import pytest

from applier.actions.change_node_power_state import ChangeNodePowerState
from applier.errors import ActionFailed, AlreadyDone
from planner.model import Effect, Touch
from planner.states import Outcome


def test_a_host_goes_off_and_on_again(context, cloud, stop):
    off = ChangeNodePowerState({"resource_id": "compute-4", "state": "off"}, context)
    off.precheck()
    assert off.execute(stop) is Outcome.CHANGED
    assert cloud.host("compute-4")["power"] == "off"
    with pytest.raises(AlreadyDone, match="compute-4 is off already"):
        off.precheck()
    named = {"resource_id": "17", "resource_name": "compute-4", "state": "on"}
    assert ChangeNodePowerState(named, context).execute(stop) is Outcome.CHANGED
    assert cloud.host("compute-4")["power"] == "on"


def test_a_host_that_runs_instances_is_not_switched_off(context, cloud, stop):
    work = ChangeNodePowerState({"resource_id": "compute-1", "state": "off"}, context)
    with pytest.raises(ActionFailed, match="compute-1 still runs web-1, web-2, web-3"):
        work.execute(stop)
    assert cloud.host("compute-1")["power"] == "on"


def test_a_host_that_does_not_exist_is_refused(context):
    with pytest.raises(ActionFailed, match="compute-9 cannot be switched off: there is no such"):
        ChangeNodePowerState({"resource_id": "compute-9", "state": "off"}, context).precheck()


@pytest.mark.parametrize(("state", "effect"), [("on", "brings_up"), ("off", "takes_down")])
def test_its_words_and_touches(state, effect):
    parameters = {"resource_id": "17", "resource_name": "compute-4", "state": state}
    assert ChangeNodePowerState.touches(parameters) == (Touch("node:compute-4", Effect(effect)),)
    assert ChangeNodePowerState.describe(parameters) == f"power {state} compute-4"
