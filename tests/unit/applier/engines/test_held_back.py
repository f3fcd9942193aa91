# SPDX-License-Identifier: Apache-2.0
"""Actions that are held back start when they may; a plan in which nothing else is left waits."""

from __future__ import annotations

import pytest
from test_in_progress import nop, plan_of
from trials import changed

from applier.engines.taskflow_engine import TaskFlowEngine
from planner.plan.states import PlanState


class Held:
    """Holds everything until it was asked so often when to ask again."""

    def __init__(self, answers: list[float | None]) -> None:
        self.answers = answers

    def holds(self, _action, *, begins):
        return bool(self.answers)

    def again_s(self):
        return self.answers.pop(0)

    def ended(self):
        pass

    def tell(self, number):
        pass


@pytest.mark.parametrize(
    ("answers", "state"),
    [([0.0, 0.01], PlanState.SUCCEEDED), ([0.0, None, None], PlanState.PENDING)],
)
def test_a_plan_waits_for_a_known_time_and_is_handed_back_without_one(open_trial, answers, state):
    held = Held(answers)
    trial = open_trial(
        plan_of(nop("a")),
        TaskFlowEngine(max_workers=1),
        changed,
        max_workers=1,
        holding_of=lambda _plan, _pause: held,
    )
    assert trial.run() is state
