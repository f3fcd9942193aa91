# SPDX-License-Identifier: Apache-2.0
"""When a plan is approved: by enough people, as it is, on fresh facts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, timedelta

import pytest
from sample_plans import MADE, new_plan

from applier.contracts import Approval
from applier.guarding import approval
from applier.guarding.guard import Guard
from applier.store.entries import GivenApprovals
from planner.guards import Guards
from planner.plan.states import ActionState, PlanState, StateReason

PLAN = new_plan("a", "b", uuid="6a1f0000-0000-4000-8000-000000000001")
ONE, TWO = Guards(approvals=1), Guards(approvals=2)


def given(*people, plan=PLAN, creator="ada"):
    about = approval.approvable(plan)
    return GivenApprovals(creator, [Approval(who=p, at=MADE, content=about) for p in people])


def skipped(plan, attempts=0):
    first = replace(
        plan.actions[0],
        state=ActionState.SKIPPED,
        state_reason=StateReason.OPERATOR,
        attempts=attempts,
    )
    return replace(plan, actions=(first, *plan.actions[1:]))


def test_as_many_people_as_demanded_have_to_approve():
    assert "needs 1 approval" in approval.refusal(PLAN, ONE, given(), MADE)
    assert approval.refusal(PLAN, ONE, given("ada"), MADE) is None
    told = approval.refusal(PLAN, TWO, given("ada", "ada"), MADE)
    assert "needs 2 approvals, and 1 " in told
    assert "actionplan approve 6a1f0000 --reason TEXT" in told
    assert approval.refusal(PLAN, TWO, given("ada", "bo"), MADE) is None


def test_an_approval_holds_if_other_actions_are_left_out_once_the_plan_has_begun():
    for plan in (PLAN, skipped(PLAN), skipped(PLAN, attempts=1)):
        assert approval.is_same(plan, approval.approvable(plan))
        others = f"{plan.digest}+0a1b"
        assert approval.is_same(plan, others) is approval.has_begun(plan)


def test_the_creator_does_not_count_where_that_is_asked():
    another = ONE._replace(approval_by_another=True)
    assert approval.refusal(PLAN, another, given("ada"), MADE)
    assert approval.refusal(PLAN, another, given("ada", "bo"), MADE) is None
    told = approval.cannot_approve(PLAN, another, given(), "ada", MADE)
    assert "ada made plan 6a1f0000" in told
    assert approval.cannot_approve(PLAN, another, given(), "bo", MADE) is None


def test_who_imported_a_plan_does_not_count_as_somebody_else():
    """The document that is imported says who made it."""
    another = ONE._replace(approval_by_another=True)
    imported = given("eve")._replace(importers=frozenset({"eve"}))
    assert approval.refusal(PLAN, another, imported, MADE)
    told = approval.cannot_approve(PLAN, another, imported, "eve", MADE)
    assert told.startswith("eve imported plan 6a1f0000, which needs")
    assert approval.cannot_approve(PLAN, another, imported, "bo", MADE) is None
    assert approval.refusal(PLAN, ONE, imported, MADE) is None


def test_a_plan_of_nobody_knows_whom_is_approved_by_nobody_else():
    another = ONE._replace(approval_by_another=True)
    told = approval.refusal(PLAN, another, given("bo", creator=None), MADE)
    assert "does not say who made it" in told


def test_an_approval_of_another_content_is_void():
    other = replace(PLAN, limits={"node:*": 1})
    told = approval.refusal(other, ONE, given("bo"), MADE)
    assert "1 approval was about" in told


def test_what_is_skipped_before_the_start_is_another_content():
    assert approval.refusal(skipped(PLAN), ONE, given("bo"), MADE)
    assert approval.refusal(skipped(PLAN), ONE, given("bo", plan=skipped(PLAN)), MADE) is None
    assert approval.refusal(PLAN, ONE, given("bo", plan=skipped(PLAN)), MADE)


@pytest.mark.parametrize("state", [PlanState.PAUSED, PlanState.FAILED])
def test_what_is_skipped_under_way_is_a_part_of_the_run(state):
    ran = replace(PLAN.actions[1], attempts=1, state=ActionState.SUCCEEDED)
    begun = replace(skipped(PLAN), state=state)
    begun = replace(begun, actions=(begun.actions[0], ran))
    assert approval.refusal(begun, ONE, given("bo"), MADE) is None


def test_facts_that_are_too_old_for_the_first_start_need_a_new_plan():
    fresh = ONE._replace(approval_max_age_s=60)
    soon, late = MADE + timedelta(seconds=60), MADE + timedelta(seconds=61)
    assert approval.refusal(PLAN, fresh, given("bo"), soon) is None
    told = approval.refusal(PLAN, fresh, given("bo"), late)
    for fact in ("plan 6a1f0000", "1m01s old", "1m00s"):
        assert fact in told
    assert approval.cannot_approve(PLAN, fresh, given(), "bo", late) == told
    known = replace(PLAN, facts_at=MADE - timedelta(hours=1))
    assert "1h00m old" in approval.refusal(known, fresh, given("bo", plan=known), MADE)
    ran = replace(PLAN.actions[1], attempts=1, state=ActionState.FAILED)
    begun = replace(PLAN, state=PlanState.FAILED, actions=(PLAN.actions[0], ran))
    assert approval.refusal(begun, fresh, given("bo"), late) is None
    never = replace(PLAN, state=PlanState.CANCELLED)
    assert approval.refusal(never, fresh, given("bo"), late), "it is resumed as it was"


def test_facts_of_the_future_are_not_fresh_for_ever():
    fresh = ONE._replace(approval_max_age_s=60)
    for ahead, told in ((timedelta(minutes=5), ""), (timedelta(days=1), "24h00m")):
        plan = replace(PLAN, facts_at=MADE + ahead)
        found = approval.refusal(plan, fresh, given("bo", plan=plan), MADE)
        assert (found is None) is (told == "")
        assert told in (found or "")


def test_the_site_and_the_plan_both_demand():
    guard = Guard(Guards(approvals=1), {"size:2": 2, "label:prod": 3})
    assert guard.demanded(new_plan("a")).approvals == 1
    assert guard.demanded(PLAN).approvals == 2
    labelled = replace(PLAN, guards=Guards(approvals=1, labels=("prod",)))
    assert guard.demanded(labelled).approvals == 3
    assert Guard().demanded(replace(PLAN, guards=TWO)).approvals == 2


def test_lines_tell_who_approved_and_what_does_not_count():
    other = given("cy", plan=replace(PLAN, limits={"node:*": 1})).approvals
    both = GivenApprovals("ada", [*other, *given("bo").approvals])
    count, cy, bo = approval.lines(PLAN, TWO, both, UTC)
    assert "1 of 2" in count
    assert "by cy at 2026-01-02 03:04:05 UTC (" in cy
    assert bo.endswith("by bo at 2026-01-02 03:04:05 UTC")
    assert list(approval.lines(PLAN, Guards(), given(), UTC)) == []
