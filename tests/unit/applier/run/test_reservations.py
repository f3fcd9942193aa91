# SPDX-License-Identifier: Apache-2.0
"""What a plan works on is reserved while it runs, so that no other plan works on it."""

from __future__ import annotations

from contextlib import closing

import pytest
from temporary_store import TemporaryStore
from trials import Trial, changed

from applier.contracts import ActionPlugin
from applier.engines.taskflow_engine import TaskFlowEngine
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ActionState, Outcome, PlanState


class ReservationLog(TemporaryStore):
    """A store that notes what is reserved."""

    reserved: tuple[str, ...] = ()

    def reserve(self, uuid, claim, resources, *, now):
        states = {action.state for action in self.load_plan(uuid).actions}
        assert ActionState.ONGOING not in states, "before anything starts"
        self.reserved += tuple(resources)
        super().reserve(uuid, claim, resources, now=now)


def reserved(*actions: Action) -> list[str]:
    """Run a plan, and return what it reserved."""
    plan = ActionPlan(uuid="plan", planner="test", state=PlanState.PENDING, actions=actions)
    with closing(ReservationLog()) as store:
        store.save_plan(plan)
        one = Trial(plan, TaskFlowEngine(max_workers=2), changed, max_workers=2, inner=store)
        assert one.run() is PlanState.SUCCEEDED
        return list(store.reserved)


@pytest.mark.parametrize("kind", ["instance", "node", "volume"])
def test_instances_nodes_and_volumes_are_reserved(kind):
    token = f"{kind}:1"
    assert reserved(Action(uuid="a", action_type="nop", tokens=(token,))) == [token]


def test_what_only_limits_a_plan_is_not_reserved():
    tokens = ("type:nop", "task:t", "busy:nodes")
    assert reserved(Action(uuid="a", action_type="nop", tokens=tokens)) == []


def test_what_may_still_run_stays_reserved():
    class Elsewhere(ActionPlugin):
        TYPE, SCHEMA = "elsewhere", {"type": "object"}
        runs_on = staticmethod(lambda _: (None,))

        def execute(self, stop):
            raise AssertionError

    doubtful = Action(
        uuid="a", action_type="elsewhere", tokens=("node:1",), state=ActionState.UNKNOWN
    )
    plan = ActionPlan(uuid="plan", planner="test", state=PlanState.PENDING, actions=(doubtful,))
    with closing(ReservationLog()) as store:
        store.save_plan(plan)
        engine = TaskFlowEngine(max_workers=2)
        plugins = {"elsewhere": Elsewhere}
        one = Trial(plan, engine, changed, max_workers=2, inner=store, plugins=plugins)
        assert one.run() is PlanState.FAILED
        assert store.reserved == ("node:1",)


def test_only_what_is_still_to_be_done_is_reserved():
    done = Action(
        uuid="a",
        action_type="nop",
        tokens=("node:1",),
        state=ActionState.SUCCEEDED,
        outcome=Outcome.OK,
    )
    left = Action(uuid="b", action_type="nop", parents=("a",), tokens=("node:2",))
    assert reserved(done, left) == ["node:2"]
