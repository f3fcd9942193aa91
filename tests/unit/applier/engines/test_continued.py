# SPDX-License-Identifier: Apache-2.0
"""An action whose command outlived its applier is followed to its end by the next run."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from trials import Trial, changed, plugin

from applier.contracts import ActionContext
from applier.engines.environment import ActionEnvironment
from applier.engines.taskflow_engine import TaskFlowEngine
from applier.errors import ActionFailed
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ActionState, Outcome, PlanState


class AttemptLog:
    """The machines of one attempt, on which a command has been running for five seconds."""

    is_prechecking = False

    def __init__(self) -> None:
        self.forgotten = self.is_left_running = False

    def withdraw_permit(self, *, is_here=False):
        return False

    def find(self, _addresses):
        return [SimpleNamespace(age_s=5.0, is_lost=False, left=())]

    def let_go(self):
        self.is_left_running = True

    def forget(self):
        self.forgotten = True


class MachinesLog:
    """The machines of a run, which note the attempts that they are asked for."""

    def __init__(self) -> None:
        self.attempts: dict[tuple[str, str, int], AttemptLog] = {}

    def of_attempt(self, plan, action, attempt):
        return self.attempts.setdefault((plan, action, attempt), AttemptLog())

    def close(self):
        pass


def going_on(**fields) -> ActionPlan:
    actions = (
        Action(uuid="a", action_type="nop", state=ActionState.ONGOING, attempts=1, **fields),
        Action(uuid="b", action_type="nop", needs=("a",)),
    )
    return ActionPlan(uuid="plan", planner="test", state=PlanState.PENDING, actions=actions)


def test_what_goes_on_is_followed_once_and_what_needs_it_starts_after_it():
    ran, machines = [], MachinesLog()

    def work(parameters, context: ActionContext, _stop):
        assert context.machines is machines.attempts["plan", parameters["uuid"], 1]
        ran.append(parameters["uuid"])
        return Outcome.CHANGED

    engine = TaskFlowEngine(max_workers=1)
    with Trial(going_on(), engine, work, max_workers=1, machines=machines) as trial:
        assert trial.run() is PlanState.SUCCEEDED
        assert [action.attempts for action in trial.plan().actions] == [1, 1]
    assert ran == ["a", "b"]
    assert all(attempt.forgotten for attempt in machines.attempts.values())
    assert not any(attempt.is_left_running for attempt in machines.attempts.values())


@pytest.mark.parametrize("own", [None, AttemptLog()])
def test_an_action_has_the_machines_of_its_attempt_else_those_of_the_run(own):
    machines = MachinesLog()
    environment = ActionEnvironment(
        plugins={"nop": plugin(changed)}, cloud=lambda: None, machines=machines
    )
    context = environment.context(Action(uuid="a", action_type="nop"), print, own)
    assert context.machines is (own or machines)


def test_each_attempt_has_machines_of_its_own_by_the_number_that_is_on_record():
    machines, errors = MachinesLog(), [ActionFailed("no"), ActionFailed("not yet")]

    def work(_parameters, _context, _stop):
        if errors:
            raise errors.pop()
        return Outcome.CHANGED

    action = Action(uuid="a", action_type="nop", retries=2)
    plan = ActionPlan(uuid="plan", planner="test", state=PlanState.PENDING, actions=(action,))
    engine = TaskFlowEngine(max_workers=1)
    with Trial(plan, engine, work, max_workers=1, machines=machines) as trial:
        assert trial.run() is PlanState.SUCCEEDED
        assert [attempt.number for attempt in trial.store.attempts("plan", "a")] == [1, 2, 3]
    assert list(machines.attempts) == [("plan", "a", 1), ("plan", "a", 2), ("plan", "a", 3)]
