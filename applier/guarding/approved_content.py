# SPDX-License-Identifier: Apache-2.0
"""The content of a plan to which its approvals are bound, and the age of its facts. Pure."""

from __future__ import annotations

import hashlib
from datetime import datetime

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


def age_s(plan: ActionPlan, now: datetime) -> float | None:
    """Return the seconds since the facts of a plan were read, or else since it was made.

    None if neither time is known. Negative for a time later than ``now``.
    """
    read = plan.aged_from
    return None if read is None else (now - read).total_seconds()
