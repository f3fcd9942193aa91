# SPDX-License-Identifier: Apache-2.0
"""Whether a claimant lives, which actions go back, and which plans are refused."""

from __future__ import annotations

import os
import socket
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from applier.contracts import Claimant
from applier.errors import PlanConflict
from applier.run.resume import alive, resume, to_reset
from applier.testing.sample_plans import new_plan
from planner.model import Action, ActionPlan, Trigger
from planner.states import ActionState, Outcome, PlanState, StateReason

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
S = ActionState


def claimant(age_s, *, host="elsewhere", pid=1):
    return Claimant(host=host, pid=pid, user="wanda", heartbeat_at=NOW - timedelta(seconds=age_s))


def test_on_another_host_the_age_of_the_heartbeat_decides():
    assert alive(claimant(29), NOW)
    assert not alive(claimant(31), NOW)
    assert alive(claimant(31), NOW, patience_s=60)


def test_a_clock_that_jumped_back_makes_no_heartbeat_old():
    assert alive(claimant(-3600), NOW)


def test_who_was_never_heard_of_is_not_alive():
    assert not alive(replace(claimant(0), heartbeat_at=None), NOW)


@pytest.mark.slow
def test_on_this_host_a_process_that_is_gone_is_gone(ended_pid):
    assert not alive(claimant(0, host=socket.gethostname(), pid=ended_pid), NOW)


def test_on_this_host_a_process_that_is_there_may_be_another():
    here = {"host": socket.gethostname(), "pid": os.getpid()}
    assert alive(claimant(0, **here), NOW)
    assert not alive(claimant(31, **here), NOW)


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


def claimed(store, heartbeat_at=NOW):
    plan = new_plan("a", "b", state=PlanState.PENDING)
    store.save_plan(plan)
    store.claim_plan(plan.uuid, Claimant(host="c1", pid=7, user="wanda"), now=heartbeat_at)
    return plan.uuid


def test_a_plan_whose_claimant_lives_is_refused_with_who_that_is(store):
    uuid = claimed(store)
    with pytest.raises(PlanConflict, match=r"wanda runs it on c1, process 7, .* 12 s ago"):
        resume(store, uuid, now=NOW + timedelta(seconds=12), who="otto")
    assert store.load_plan(uuid).state is PlanState.ONGOING


def test_a_plan_whose_claimant_is_gone_waits_again(store):
    uuid = claimed(store)
    assert resume(store, uuid, now=NOW + timedelta(minutes=1), who="otto", why="c1 burnt") == []
    plan = store.load_plan(uuid)
    assert (plan.state, plan.status_message) == (PlanState.PENDING, "resumed by otto: c1 burnt")


def test_of_two_that_resume_at_once_the_second_takes_nothing_away(store, monkeypatch):
    """The first resumes and claims it after the second has seen that the claimant is gone."""
    uuid = claimed(store)
    later = NOW + timedelta(minutes=1)
    load = store.load_plan

    def first_is_faster(reference):
        monkeypatch.setattr(store, "load_plan", load)
        plan = load(reference)
        resume(store, uuid, now=later, who="first")
        store.claim_plan(uuid, Claimant(host="c2", pid=8, user="first"), now=later)
        return plan

    monkeypatch.setattr(store, "load_plan", first_is_faster)
    with pytest.raises(PlanConflict, match="meanwhile"):
        resume(store, uuid, now=later, who="second")
    assert store.claimant(uuid).user == "first"


@pytest.mark.parametrize(
    ("state", "why"),
    [("RECOMMENDED", "start it"), ("PENDING", "already"), ("SUCCEEDED", "left to do")],
)
def test_a_plan_that_needs_no_resuming_is_refused_with_a_sentence(store, state, why):
    plan = new_plan("a", state=PlanState(state))
    store.save_plan(plan)
    with pytest.raises(PlanConflict, match=f"is {state}: .*{why}"):
        resume(store, plan.uuid, now=NOW, who="otto")
