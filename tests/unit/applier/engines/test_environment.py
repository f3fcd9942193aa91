# SPDX-License-Identifier: Apache-2.0
"""Machines are opened for the plans, and given to the actions, that use some."""

from __future__ import annotations

import pytest
from engine_checks.engine_setting import nop, plan_of
from trials import Trial

from applier.contracts import ActionPlugin
from applier.engines.environment import ActionEnvironment
from applier.engines.taskflow_engine import TaskFlowEngine
from planner.plan.states import Outcome, PlanState


class Machines:
    """Machines that note when they are opened and closed; they run nothing."""

    def __init__(self, noted: list[str]) -> None:
        self.noted = noted

    def opened(self) -> Machines:
        self.noted.append("opened")
        return self

    def of_attempt(self, _plan: str, action: str, _attempt: int) -> Machines:
        self.noted.append(f"used by {action}")
        return self

    def forget(self) -> None:
        """Do nothing: there are no jobs."""

    def close(self) -> None:
        self.noted.append("closed")


class Quiet(ActionPlugin):
    """An action that says that it uses no machines."""

    TYPE, SCHEMA, USES_MACHINES = "quiet", {}, False

    def execute(self, stop):
        assert self.context.machines is None
        return Outcome.CHANGED


class Silent(Quiet):
    """An action of somebody who never heard of the declaration."""

    TYPE, USES_MACHINES = "silent", ActionPlugin.USES_MACHINES

    def execute(self, stop):
        assert self.context.machines is not None
        return Outcome.CHANGED


@pytest.mark.parametrize(
    ("types", "noted"),
    [
        (["quiet", "quiet"], []),
        (["quiet", "silent"], ["opened", "used by a1", "closed"]),
    ],
)
def test_machines_are_opened_for_a_plan_that_uses_some(types, noted):
    found: list[str] = []
    plan = plan_of(*(nop(f"a{i}", action_type=name) for i, name in enumerate(types)))
    with Trial(
        plan,
        TaskFlowEngine(max_workers=1),
        max_workers=1,
        plugins={"quiet": Quiet, "silent": Silent},
        open_machines=Machines(found).opened,
    ) as trial:
        assert trial.run() is PlanState.SUCCEEDED, trial.messages()
    assert found == noted


def test_a_plan_that_uses_none_is_not_refused_for_the_settings_of_machines():
    def refused() -> Machines:
        raise AssertionError("these settings are wrong")

    environment = ActionEnvironment(
        plugins={"quiet": Quiet}, cloud=lambda: None, open_machines=refused
    )
    plan = plan_of(nop("a", action_type="quiet"))
    assert environment.of_plan(plan).machines is None
