# SPDX-License-Identifier: Apache-2.0
"""A plan runs only on the cloud that it was made for, unless none of its actions uses a cloud."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from trials import changed, plugin

from applier.engines.environment import ActionEnvironment
from applier.errors import ActionFailed, OtherCloud
from applier.run import plan_cloud
from planner.making.registry import ActionTypes
from planner.plan.model import JOIN, Action, ActionPlan

EAST = SimpleNamespace(name="east")
MIGRATE = {"resource_id": "i", "migration_type": "live"}


def plan(kind, cloud="west", **parameters):
    actions = (
        Action(uuid="a", action_type=kind, input_parameters=parameters),
        Action(uuid="j", action_type=JOIN, parents=("a",)),
    )
    return ActionPlan(uuid="0123456789", planner="weight", cloud=cloud, actions=actions)


def undoing(kind):
    return plan("revert", action_type=kind, parameters=MIGRATE)


@pytest.mark.parametrize(
    ("made", "needed"),
    [
        (plan("migrate", **MIGRATE), "west"),
        (plan("migrate", cloud=None, **MIGRATE), "simulated"),
        (undoing("migrate"), "west"),
        (undoing("no_such_type"), "west"),
        (plan("no_such_type"), "west"),
        (plan("shell", command="true"), None),
        (plan("http_check", url="http://localhost"), None),
        (plan("sleep", duration=1), None),
        (undoing("shell"), None),
    ],
)
def test_a_plan_needs_its_cloud_if_an_action_uses_one(made, needed):
    assert plan_cloud.needed_by(made, ActionTypes()) == needed


def test_another_cloud_is_refused_with_both_names():
    with pytest.raises(OtherCloud, match=r"plan 01234567 .*'west'.*'east'"):
        plan_cloud.require_own(plan("migrate"), ActionTypes(), lambda: EAST)
    plan_cloud.require_own(plan("migrate", cloud="east"), ActionTypes(), lambda: EAST)


def test_a_plan_without_a_cloud_does_not_ask_which_one_is_configured():
    def broken():
        raise AssertionError

    plan_cloud.require_own(plan("shell"), ActionTypes(), broken)


def test_a_type_that_does_not_declare_it_gets_no_cloud():
    kind = plugin(changed)
    environment = ActionEnvironment(plugins={"nop": kind}, cloud=lambda: EAST)
    action = Action(uuid="a", action_type="nop")
    with pytest.raises(ActionFailed, match="does not declare USES_CLOUD"):
        environment.context(action, print).cloud()
    kind.USES_CLOUD = True
    assert environment.context(action, print).cloud() is EAST


def test_a_plan_that_names_no_cloud_is_for_the_simulated_cloud():
    simulated = SimpleNamespace(name="simulated")
    old = replace(plan("migrate"), cloud=None)
    plan_cloud.require_own(old, ActionTypes(), lambda: simulated)
    with pytest.raises(OtherCloud, match="for the cloud 'simulated', and 'east'"):
        plan_cloud.require_own(old, ActionTypes(), lambda: EAST)
