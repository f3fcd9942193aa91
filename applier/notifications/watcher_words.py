# SPDX-License-Identifier: Apache-2.0
"""Watcher's words for our states of plans and actions.

A state that Watcher does not have is written as the closest one, and the message begins with ours.
"""

from __future__ import annotations

from planner.plan.states import ActionState, PlanState

_PLANS = {PlanState.PAUSED: PlanState.PENDING}
_ACTIONS = {
    ActionState.FAILED_DEPENDENCIES: ActionState.CANCELLED,
    ActionState.REVERTED: ActionState.CANCELLED,
    ActionState.REVERT_FAILED: ActionState.FAILED,
    ActionState.UNKNOWN: ActionState.FAILED,
}


def plan_word(state: PlanState) -> str:
    """Return Watcher's word for the state of a plan.

    >>> plan_word(PlanState.PAUSED), plan_word(PlanState.ONGOING)
    ('PENDING', 'ONGOING')
    """
    return str(_PLANS.get(state, state))


def action_word(state: ActionState) -> str:
    """Return Watcher's word for the state of an action.

    >>> action_word(ActionState.UNKNOWN), action_word(ActionState.REVERTED)
    ('FAILED', 'CANCELLED')
    """
    return str(_ACTIONS.get(state, state))


def with_own_word(state: PlanState | ActionState, shown: str, message: str | None) -> str | None:
    """Return a message, after our word for a state if ``shown`` is another one.

    >>> with_own_word(PlanState.PAUSED, "PENDING", "by anna")
    'PAUSED: by anna'
    """
    if str(state) == shown:
        return message
    return f"{state}: {message}" if message else str(state)
