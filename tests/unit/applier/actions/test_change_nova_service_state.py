# SPDX-License-Identifier: Apache-2.0
"""ChangeNovaServiceState: four words for two states, of the host that is named."""

from __future__ import annotations

import pytest

from applier.actions.change_nova_service_state import ChangeNovaServiceState
from applier.errors import AlreadyDone
from planner.model import Effect, Touch
from planner.states import Outcome


@pytest.mark.parametrize("state", ["disabled", "down"])
def test_it_disables_a_host_with_a_reason(context, cloud, stop, state):
    parameters = {"resource_id": "compute-1", "state": state, "disabled_reason": "new fans"}
    work = ChangeNovaServiceState(parameters, context)
    work.precheck()
    assert work.execute(stop) is Outcome.CHANGED
    assert cloud.service("compute-1") == {"status": "disabled", "reason": "new fans"}
    with pytest.raises(AlreadyDone, match="compute-1 is disabled already"):
        work.precheck()


@pytest.mark.parametrize("state", ["enabled", "up"])
def test_it_enables_a_host_and_drops_the_reason(context, cloud, stop, state):
    cloud.set_service_status("compute-1", "disabled", "new fans", stop)
    parameters = {"resource_id": "17", "resource_name": "compute-1", "state": state}
    work = ChangeNovaServiceState(parameters, context)
    work.precheck()
    assert work.execute(stop) is Outcome.CHANGED
    assert cloud.service("compute-1") == {"status": "enabled", "reason": None}
    with pytest.raises(AlreadyDone, match="compute-1 is enabled already"):
        work.precheck()


def test_a_service_that_is_gone_is_done(context):
    with pytest.raises(AlreadyDone, match="no compute service on compute-9"):
        ChangeNovaServiceState({"resource_id": "compute-9", "state": "up"}, context).precheck()


@pytest.mark.parametrize(
    ("state", "effect", "verb"),
    [
        ("disabled", Effect.DISABLES, "disable"),
        ("down", Effect.DISABLES, "disable"),
        ("enabled", Effect.ENABLES, "enable"),
        ("up", Effect.ENABLES, "enable"),
    ],
)
def test_its_words_and_touches(state, effect, verb):
    parameters = {"resource_id": "17", "resource_name": "compute-1", "state": state}
    assert ChangeNovaServiceState.touches(parameters) == (Touch("node:compute-1", effect),)
    assert ChangeNovaServiceState.describe(parameters) == f"{verb} compute-1"
