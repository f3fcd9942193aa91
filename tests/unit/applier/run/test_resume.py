# SPDX-License-Identifier: Apache-2.0
"""Which actions go back, and which plans are refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sample_plans import new_plan

from applier.contracts import Claimant
from applier.errors import PlanConflict
from applier.run.resume import resume, to_reset
from planner.plan.model import Action, ActionPlan, Trigger
from planner.plan.states import ActionState, Outcome, PlanState, StateReason

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
S = ActionState


def action(name, state="SUCCEEDED", **fields):
    return Action(uuid=name, name=name, action_type="nop", state=ActionState(state), **fields)


def skipped(name, *sources, reason=StateReason.NOT_TRIGGERED, message=None):
    triggers = tuple(Trigger(source, (Outcome.CHANGED,)) for source in sources)
    told = {"state_reason": reason, "status_message": message}
    return action(name, "SKIPPED", triggers=triggers, **told)


def plan_of(*actions):
    return ActionPlan(uuid="plan", planner="weight", actions=actions)


def test_what_did_not_do_its_work_goes_back():
    states = [state for state in S if to_reset(plan_of(action("a", state)))]
    assert set(states) == {S.FAILED, S.FAILED_DEPENDENCIES, S.CANCELLED, S.REVERTED}


def test_what_nothing_set_off_goes_back_with_what_is_before_it():
    plan = plan_of(
        skipped("handler of the handler", "handler"),
        skipped("handler", "failed"),
        action("failed", "FAILED"),
        action("well"),
        skipped("of what went well", "well"),
        skipped("by hand", "failed", reason=StateReason.OPERATOR, message="not triggered"),
    )
    assert to_reset(plan) == ["handler of the handler", "handler", "failed"]


def test_what_waits_for_one_of_several_goes_back_as_well():
    late = replace(skipped("late", "well"), needs_any=(("failed", "well"),))
    plan = plan_of(action("failed", "FAILED"), action("well"), late)
    assert to_reset(plan) == ["failed", "late"]


@pytest.mark.parametrize("state", ["ONGOING", "CANCELLING"])
def test_of_a_plan_whose_applier_is_gone_nothing_that_ended_goes_back(state):
    plan = plan_of(
        action("failed", "FAILED"), action("cancelled", "CANCELLED"), action("left", "PENDING")
    )
    assert to_reset(replace(plan, state=PlanState(state))) == []
    assert to_reset(replace(plan, state=PlanState.PAUSED)) == ["failed", "cancelled"]


def claimed(store):
    plan = new_plan("a", "b", state=PlanState.PENDING)
    store.save_plan(plan)
    claimant = Claimant(host="c1", pid=7, user="wanda", heartbeat_interval_s=0.0)
    return plan.uuid, store.claim_plan(plan.uuid, claimant, now=NOW)


def resumed(store, uuid, *, after=NOW, wait=lambda _: None, **named):
    """Resume a plan; a claimant with no time between two heartbeats is dead after a few looks."""
    return resume(store, uuid, clock=lambda: after, wait=wait, **named)


def test_a_plan_whose_claimant_lives_is_refused_with_who_that_is(store):
    uuid, claim = claimed(store)
    numbers = iter(range(1, 100))

    def beat(_):
        store.beat(uuid, claim, now=NOW - timedelta(days=next(numbers)))

    with pytest.raises(PlanConflict, match="wanda runs it on c1, process 7"):
        resumed(store, uuid, wait=beat, who="otto", after=NOW + timedelta(days=9))
    assert store.load_plan(uuid).state is PlanState.ONGOING


def test_a_plan_whose_claimant_is_gone_waits_again(store):
    uuid, _ = claimed(store)
    assert resumed(store, uuid, who="otto", why="c1 burnt") == []
    plan = store.load_plan(uuid)
    assert (plan.state, plan.status_message) == (PlanState.PENDING, "resumed by otto: c1 burnt")


def test_of_two_that_resume_at_once_the_second_takes_nothing_away(store, monkeypatch):
    """The first resumes and claims it after the second has seen that the claimant is gone."""
    uuid, _ = claimed(store)
    load = store.load_plan

    def first_is_faster(reference):
        monkeypatch.setattr(store, "load_plan", load)
        plan = load(reference)
        resumed(store, uuid, who="first")
        store.claim_plan(uuid, Claimant(host="c2", pid=8, user="first"), now=NOW)
        return plan

    monkeypatch.setattr(store, "load_plan", first_is_faster)
    with pytest.raises(PlanConflict, match="meanwhile"):
        resumed(store, uuid, who="second")
    assert store.claimant(uuid).user == "first"


@pytest.mark.parametrize(
    ("state", "why"),
    [("RECOMMENDED", "start it"), ("PENDING", "already"), ("SUCCEEDED", "left to do")],
)
def test_a_plan_that_needs_no_resuming_is_refused_with_a_sentence(store, state, why):
    plan = new_plan("a", state=PlanState(state))
    store.save_plan(plan)
    with pytest.raises(PlanConflict, match=f"is {state}: .*{why}"):
        resumed(store, plan.uuid, who="otto")
