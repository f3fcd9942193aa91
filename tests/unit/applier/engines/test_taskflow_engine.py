# SPDX-License-Identifier: Apache-2.0
"""What the engine does around a run."""

from __future__ import annotations

import gc
from typing import Any, ClassVar

import pytest
from taskflow import engines
from trials import changed

from applier.contracts import ActionPlugin
from applier.engines.linear import PlanFlow
from applier.engines.taskflow_engine import TaskFlowEngine
from planner.plan.model import Action, ActionPlan
from planner.plan.states import Outcome, PlanState


@pytest.fixture
def collecting():
    """Leave the collector as it was, whatever the test makes of it."""
    was_enabled = gc.isenabled()
    yield
    gc.unfreeze()
    (gc.enable if was_enabled else gc.disable)()


@pytest.mark.usefixtures("collecting")
@pytest.mark.parametrize("enabled", [True, False])
def test_no_garbage_is_collected_while_the_flow_is_built(open_trial, monkeypatch, enabled):
    built, ran = [], []
    make = PlanFlow.__init__

    def watched(*given):
        built.append(gc.isenabled())
        make(*given)

    class Watching(ActionPlugin):
        TYPE = "watching"
        SCHEMA: ClassVar[dict[str, Any]] = {"type": "object"}

        def execute(self, stop):
            ran.append((gc.isenabled(), gc.get_freeze_count() > 0))
            return Outcome.CHANGED

    plan = ActionPlan(
        uuid="plan",
        planner="test",
        state=PlanState.PENDING,
        actions=(Action(uuid="a", action_type="watching"),),
    )
    one = open_trial(
        plan, TaskFlowEngine(max_workers=1), changed, max_workers=1, plugins={"watching": Watching}
    )
    monkeypatch.setattr(PlanFlow, "__init__", watched)
    gc.unfreeze()
    (gc.enable if enabled else gc.disable)()
    assert one.run() is PlanState.SUCCEEDED
    assert built == [False]
    assert ran == [(enabled, True)], "what was built is not looked at again"
    assert (gc.isenabled(), gc.get_freeze_count()) == (enabled, 0)


def test_there_are_as_many_workers_on_every_machine_unless_it_is_said(monkeypatch):
    for processors in (1, 61):
        monkeypatch.setattr("os.cpu_count", lambda count=processors: count)
        assert TaskFlowEngine().max_workers == 10
    assert TaskFlowEngine(max_workers=7).max_workers == 7


def test_one_worker_is_the_fewest_that_can_be_configured():
    (max_workers,) = (option for option in TaskFlowEngine.OPTIONS if option.name == "max_workers")
    assert max_workers.type("1") == 1
    with pytest.raises(ValueError, match="greater than or equal to 1"):
        max_workers.type("0")


@pytest.mark.parametrize(("name", "expected"), [("nightly", "nightly"), (None, "plan")])
def test_the_flow_is_named_like_the_plan(open_trial, monkeypatch, name, expected):
    load, loaded = engines.load, []

    def noted(flow, **options):
        loaded.append(flow.name)
        return load(flow, **options)

    monkeypatch.setattr(engines, "load", noted)
    plan = ActionPlan(
        uuid="plan",
        name=name,
        planner="test",
        state=PlanState.PENDING,
        actions=(Action(uuid="a", action_type="nop"),),
    )
    one = open_trial(plan, TaskFlowEngine(max_workers=1), changed, max_workers=1)
    assert one.run() is PlanState.SUCCEEDED
    assert loaded == [expected]
