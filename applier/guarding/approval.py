# SPDX-License-Identifier: Apache-2.0
"""Decides whether a plan is approved: by enough people, as it is now, on fresh facts. Pure.

An approval is bound to the content of the plan.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime, tzinfo

from applier.contracts import Approval
from applier.store.entries import GivenApprovals
from applier.wording import count, duration, one_line
from planner.errors import short
from planner.guards import Guards
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ActionState, StateReason

#: Separates the digest of a plan from that of the actions that are left out.
_BETWEEN = "+"


def approvable(plan: ActionPlan) -> str:
    """Return the digest of a plan and that of the actions that operators skipped before its start.

    An approval is bound to this text.

    >>> approvable(ActionPlan(uuid="u", planner="weight", actions=()))[:11]
    'sha256:ad0c'
    """
    left_out = _left_out(plan)
    return f"{plan.digest}{_BETWEEN}{left_out}" if left_out else plan.digest


def _left_out(plan: ActionPlan) -> str:
    """Return the digest of the actions that are left out; an empty text if there are none."""
    skipped = [str(i) for i, action in enumerate(plan.actions) if is_left_out(action)]
    return hashlib.sha256(",".join(skipped).encode()).hexdigest()[:32] if skipped else ""


def is_left_out(action: Action) -> bool:
    """Return whether an operator has skipped an action that was never started."""
    by_operator = action.state_reason is StateReason.OPERATOR
    return action.state is ActionState.SKIPPED and by_operator and not action.attempts


def is_same(plan: ActionPlan, approved: str) -> bool:
    """Return whether an approval is about a plan as it is now.

    Once an action of the plan was started, skipping others does not make an approval void.
    """
    digest, _, left_out = approved.partition(_BETWEEN)
    if not has_begun(plan) and left_out != _left_out(plan):
        return False
    return digest == plan.digest


def has_begun(plan: ActionPlan) -> bool:
    """Return whether an action of a plan was ever started."""
    return any(action.attempts for action in plan.actions)


#: By so much the clocks of two machines may differ, in seconds.
CLOCKS_DIFFER_S = 300.0


def refusal(plan: ActionPlan, demanded: Guards, given: GivenApprovals, now: datetime) -> str | None:
    """Return why a plan is not approved, in a sentence with the next step; None if it is."""
    if never := _never(plan, demanded, given, now):
        return never
    found = {a.who for a in counting(plan, demanded, given)}
    if len(found) >= demanded.approvals:
        return None
    void = sum(not is_same(plan, one.content) for one in given.approvals)
    was = f"{len(found) or 'none'} of them {'is' if len(found) < 2 else 'are'} there"
    if demanded.approvals == 1:
        was = "it has none"
    before = f", and what {count(void, 'approval')} was about has changed since" if void else ""
    return (
        f"plan {short(plan.uuid)} needs {demanded.by_words}, and {was}{before}; "
        f"to approve it: actionplan approve {short(plan.uuid)} --reason TEXT"
    )


def counting(plan: ActionPlan, demanded: Guards, given: GivenApprovals) -> list[Approval]:
    """List the approvals that count: of the present content of the plan, by people who may."""
    return [
        one
        for one in given.approvals
        if is_same(plan, one.content)
        and not (demanded.approval_by_another and one.who in given.makers)
    ]


def too_old(plan: ActionPlan, demanded: Guards, now: datetime) -> str | None:
    """Return why the facts of a plan are too old for a first start; None if they are not.

    Without facts, the age is that of the plan. Facts whose time is later than now by more than
    CLOCKS_DIFFER_S are refused, too.
    """
    most_s, read = demanded.approval_max_age_s, plan.aged_from
    if most_s is None or has_begun(plan):
        return None
    age_s = None if read is None else (now - read).total_seconds()
    if age_s is not None and age_s < -CLOCKS_DIFFER_S:
        return (
            f"the facts of plan {short(plan.uuid)} are from the future: they say that they were "
            f"read in {duration(-age_s)}: make a new plan"
        )
    if age_s is not None and age_s <= most_s:
        return None
    age = "of an unknown age" if age_s is None else f"{duration(age_s)} old"
    return (
        f"the facts of plan {short(plan.uuid)} are {age}, and an approval holds for "
        f"{duration(most_s)}: make a new plan"
    )


def cannot_approve(
    plan: ActionPlan, demanded: Guards, given: GivenApprovals, who: str, now: datetime
) -> str | None:
    """Return why an approval by ``who`` would not count, in a sentence; None if it would."""
    if never := _never(plan, demanded, given, now):
        return never
    if demanded.approval_by_another and who in given.makers:
        did = "made" if who == given.creator else "imported"
        return (
            f"{one_line(who)} {did} plan {short(plan.uuid)}, which needs {demanded.by_words}: "
            "somebody else has to approve it"
        )
    return None


def _never(plan: ActionPlan, demanded: Guards, given: GivenApprovals, now: datetime) -> str | None:
    """Return why no approval of a plan would count, in a sentence; None if one would."""
    if stale := too_old(plan, demanded, now):
        return stale
    if demanded.approval_by_another and given.creator is None:
        return (
            f"plan {short(plan.uuid)} needs {demanded.by_words}, and the record does not say who "
            "made it: make a new plan"
        )
    return None


def lines(
    plan: ActionPlan, demanded: Guards, given: GivenApprovals, zone: tzinfo | None
) -> Iterable[str]:
    """Yield lines about the approvals of a plan: what it needs, and who approved it.

    Times are those of a zone; None is the local one.
    """
    counted = counting(plan, demanded, given)
    if demanded.approvals:
        people = len({one.who for one in counted})
        yield f"Approvals: {people} of {demanded.by_words}"
    for one in given.approvals:
        void = "" if one in counted else " (does not count)"
        why = f": {one_line(one.why)}" if one.why else ""
        at = f"{one.at.astimezone(zone):%Y-%m-%d %H:%M:%S %Z}"
        yield f"Approved by {one_line(one.who)} at {at}{why}{void}"
