# SPDX-License-Identifier: Apache-2.0
"""Approve a plan, and list the approvals that it needs and has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, tzinfo
from typing import Any

from applier.assembly import Assembly, now
from applier.contracts import Approval
from applier.errors import GuardRefusal, PlanConflict
from applier.guarding import approval as approved
from applier.guarding.approval import approvable, is_left_out
from applier.operations import Operator, refusals, who_runs
from applier.wording import one_line, some
from planner.plan.model import ActionPlan
from planner.plan.states import ENDED_PLAN, PlanState

#: How many skipped actions are named.
_MOST = 6
#: A plan in one of these states has ended, and may be resumed.
_RESUMABLE = (PlanState.FAILED, PlanState.CANCELLED)
#: A plan in one of these states runs once somebody starts or resumes it.
TO_APPROVE = (PlanState.RECOMMENDED, PlanState.PAUSED, *_RESUMABLE)


def approve(assembly: Assembly, operator: Operator, plan: ActionPlan, why: str) -> None:
    """Store the approval of a plan, as it is now, by the operator.

    Raises PlanConflict for a plan that runs, or has ended and cannot be resumed. Raises
    GuardRefusal if the approval would not count.
    """
    _require_waiting(assembly, plan)
    demanded, store, at = assembly.guard.demanded(plan), assembly.store, now()
    refused = approved.cannot_approve(plan, demanded, store.approvals(plan.uuid), operator.name, at)
    if refused:
        raise GuardRefusal(plan.uuid, refused)
    given = Approval(
        who=operator.name, at=at, content=approvable(plan), why=why, project=operator.project
    )
    store.approve_plan(plan.uuid, given, history=operator.entry("approve", why))
    left_out = [one_line(a.label) for a in plan.actions if is_left_out(a)]
    without = f", without {some(left_out, _MOST, ', ')}" if left_out else ""
    operator.say(f"{who_runs.named(plan)} is approved by {operator.name}{without}.")
    missing = approved.refusal(plan, demanded, store.approvals(plan.uuid), at)
    if missing and demanded.approvals:
        operator.say(f"It may not run yet: {missing}.")


def _require_waiting(assembly: Assembly, plan: ActionPlan) -> None:
    if plan.state in who_runs.RUNNING:
        text = "it runs already"
        raise refusals.already_running(assembly.store, plan.uuid) or _over(plan, text)
    if plan.state in ENDED_PLAN and plan.state not in _RESUMABLE:
        raise _over(plan, "nothing of it is left to approve")


def _over(plan: ActionPlan, why: str) -> PlanConflict:
    return PlanConflict(plan.uuid, plan.state, f"plan {plan.uuid[:8]} is {plan.state}: {why}")


def missing(assembly: Assembly, plan: ActionPlan) -> str:
    """Return why a plan that somebody may start or resume is not approved.

    An empty text means that it is, or that it runs, or that nothing of it is left to run.
    """
    demanded = assembly.guard.demanded(plan)
    if plan.state not in TO_APPROVE or not demanded.approvals:
        return ""
    return approved.refusal(plan, demanded, assembly.store.approvals(plan.uuid), now()) or ""


def concerns(assembly: Assembly, plan: ActionPlan) -> bool:
    """Return whether a plan may need approvals, or has some: these depend on all its actions."""
    guard = assembly.guard
    needed = guard.approvals_for or guard.demanded(plan).approvals
    return bool(needed or assembly.store.approvals(plan.uuid).approvals)


def lines(assembly: Assembly, plan: ActionPlan, zone: tzinfo | None = UTC) -> Iterator[str]:
    """Yield lines about the approvals that a plan needs and has; none if there are neither.

    Times are in ``zone``; None is the local time zone.
    """
    demanded = assembly.guard.demanded(plan)
    yield from approved.lines(plan, demanded, assembly.store.approvals(plan.uuid), zone)


def as_dict(assembly: Assembly, plan: ActionPlan) -> Mapping[str, Any]:
    """Return which approvals a plan needs and has, as JSON types.

    ``missing`` is a sentence on why its approvals do not suffice; None if they do, or if it needs
    none.
    """
    demanded = assembly.guard.demanded(plan)
    given = assembly.store.approvals(plan.uuid)
    counted = approved.counting(plan, demanded, given)
    missing = approved.refusal(plan, demanded, given, now()) if demanded.approvals else None
    return {
        "needed": demanded.approvals,
        "by_another": demanded.approval_by_another,
        "max_age_s": demanded.approval_max_age_s,
        "missing": missing,
        "approvals": [
            {
                "who": one.who,
                "at": one.at.isoformat(),
                "why": one.why,
                "project": one.project,
                "counts": one in counted,
            }
            for one in given.approvals
        ],
    }
