# SPDX-License-Identifier: Apache-2.0
"""Approving a plan: what is written, what is told, and what is refused before and after."""

from __future__ import annotations

import pytest

from applier.errors import GuardRefusal, PlanConflict
from applier.guarding.guard import Guard
from applier.operations import approving, plans
from planner.guards import Guards
from planner.plan.states import PlanState


def demand(site, **demanded):
    site.assembly.guard = Guard(Guards(**demanded))


def test_a_plan_starts_once_it_is_approved(site):
    demand(site, approvals=1)
    plan = site.saved("a")
    with pytest.raises(GuardRefusal, match="needs 1 approval, and it has none"):
        plans.start(site.assembly, site.operator, plan)
    assert site.now(plan).state is PlanState.RECOMMENDED
    approving.approve(site.assembly, site.operator, plan, "looks good")
    assert site.told == [f"Plan {plan.uuid[:8]} is approved by ada."]
    plans.start(site.assembly, site.operator, site.now(plan))
    assert site.now(plan).state is PlanState.PENDING
    [entry, _] = site.store.history(plan.uuid)
    assert (entry.verb, entry.who, entry.why) == ("approve", "ada", "looks good")


def test_who_approves_hears_what_is_still_missing(site):
    demand(site, approvals=2)
    plan = site.saved("a")
    approving.approve(site.assembly, site.operator, plan, "first")
    assert "It may not run yet: plan" in site.told[-1]
    approving.approve(site.assembly, site.operator._replace(name="bo"), plan, "second")
    assert site.told[-1] == f"Plan {plan.uuid[:8]} is approved by bo."
    found = approving.as_dict(site.assembly, plan)
    assert (found["needed"], found["missing"]) == (2, None)
    assert [(a["who"], a["counts"]) for a in found["approvals"]] == [("ada", True), ("bo", True)]


@pytest.mark.parametrize("state", [PlanState.SUCCEEDED, PlanState.SUPERSEDED, PlanState.DELETED])
def test_what_is_over_is_not_approved(site, state):
    plan = site.saved("a", state=state)
    with pytest.raises(PlanConflict, match="nothing of it is left to approve"):
        approving.approve(site.assembly, site.operator, plan, "late")


def test_what_runs_is_not_approved(site):
    plan, _ = site.claimed("a")
    with pytest.raises(PlanConflict, match="eve on elsewhere"):
        approving.approve(site.assembly, site.operator, plan, "late")


def test_a_plan_that_failed_is_resumed_once_it_is_approved(site):
    demand(site, approvals=1)
    plan = site.saved("a", state=PlanState.FAILED)
    with pytest.raises(GuardRefusal):
        plans.resume(site.assembly, site.operator, plan, None)
    assert site.now(plan).state is PlanState.FAILED
    approving.approve(site.assembly, site.operator, plan, "go on")
    assert approving.as_dict(site.assembly, site.now(plan))["missing"] is None
