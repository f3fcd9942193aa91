# SPDX-License-Identifier: Apache-2.0
"""Which changes of state operators and rollbacks may make, and which are refused.

Refused is what a claim, or a change of somebody else, does not allow. The table of all changes of
state is in :mod:`planner.plan.states`.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from types import EllipsisType

from applier.contracts import Claimant, Report
from applier.errors import PlanConflict
from planner.errors import InvalidTransition, short
from planner.plan.states import ActionState, Outcome, PlanState, StateReason, Who, sources

#: The states of plans that wait for a run or for an operator: operators may skip actions.
WAITING_PLAN = (PlanState.RECOMMENDED, PlanState.PENDING, PlanState.PAUSED)
#: The states of plans that nobody runs: operators may settle actions.
UNCLAIMED_PLAN = (*WAITING_PLAN, PlanState.SUCCEEDED, PlanState.FAILED, PlanState.CANCELLED)
#: The states of plans that somebody runs.
RUNNING_PLAN = (PlanState.ONGOING, PlanState.CANCELLING)
#: The states of plans that were started and have not ended.
UNDER_WAY = (PlanState.PENDING, PlanState.ONGOING, PlanState.CANCELLING, PlanState.PAUSED)
#: By the state that an operator moves a plan to: the new states of its open actions, by their old
#: states. If an action was running when its applier died, it is unknown whether it did its work.
LEFT_OPEN = {
    PlanState.CANCELLED: {
        ActionState.PENDING: ActionState.CANCELLED,
        ActionState.ONGOING: ActionState.UNKNOWN,
    },
    PlanState.PAUSED: {ActionState.ONGOING: ActionState.UNKNOWN},
}
#: The states of plans that can be resumed. A RECOMMENDED plan is started instead.
RESUMABLE = tuple(
    state
    for state in sources(PlanState.PENDING, Who.OPERATOR)
    if state is not PlanState.RECOMMENDED
)
#: The states that an operator may settle an action to, with the outcome of each.
SETTLED = {ActionState.SUCCEEDED: Outcome.CHANGED, ActionState.FAILED: Outcome.FAILED}
#: The new state of an action, by the state in which the action that reverts it has ended.
UNDONE = {
    ActionState.SUCCEEDED: ActionState.REVERTED,
    ActionState.SKIPPED: ActionState.REVERTED,
    ActionState.FAILED: ActionState.REVERT_FAILED,
    ActionState.UNKNOWN: ActionState.REVERT_FAILED,
}
#: The states of actions that may be reverted.
UNDOABLE = frozenset({ActionState.SUCCEEDED, ActionState.REVERT_FAILED})


def require_resumable(uuid: str, state: PlanState, actions: Collection[str]) -> None:
    """Raise InvalidTransition for a plan that cannot be resumed.

    A SUCCEEDED plan can be resumed if ``actions`` of it are to run again, after a rollback.
    """
    if state not in RESUMABLE or (state is PlanState.SUCCEEDED and not actions):
        raise InvalidTransition("plan", uuid, state, PlanState.PENDING, RESUMABLE, Who.OPERATOR)


def not_moved(uuid: str, new: PlanState) -> InvalidTransition:
    """Return the refusal to move a removed plan to a state; it can only be undeleted."""
    old = PlanState.DELETED
    others = [state for state in sources(new, Who.OPERATOR) if state is not old]
    return InvalidTransition("plan", uuid, old, new, others, Who.OPERATOR)


def require_settling(action: str, new: ActionState) -> None:
    """Raise InvalidTransition for a state that an operator cannot settle an action to."""
    if new not in SETTLED:
        raise InvalidTransition("action", action, "in doubt", new, (), Who.OPERATOR)


def undone(rollback: str, report: Report) -> Report | None:
    """Return the report on the action of the original plan that a rollback plan has reverted.

    ``report`` is that of the reverting action, ``rollback`` the uuid of its plan. Returns None if
    the report is not of a revert, or is not its end, or if the revert was skipped unless because
    there was nothing left to undo.
    """
    new = UNDONE.get(report.state)
    if report.undoes is None or new is None:
        return None
    if report.state is ActionState.SKIPPED and report.state_reason is not StateReason.ALREADY_DONE:
        return None
    how = "undone" if new is ActionState.REVERTED else f"not undone, {report.message}"
    message = f"{how} (rollback plan {short(rollback)})"
    return Report(uuid=report.undoes.action, old=ActionState.SUCCEEDED, state=new, message=message)


def ends_claim(state: PlanState) -> bool:
    """Return whether the claim on a plan ends when the plan enters this state."""
    return state not in (PlanState.ONGOING, PlanState.CANCELLING)


def require_seen(
    uuid: str, state: str, found: Claimant | None, seen: Claimant | EllipsisType | None
) -> None:
    """Raise PlanConflict unless the claimant and its heartbeat equal ``seen``.

    ``found`` is the present claimant, ``seen`` is one that the caller has read earlier; None is no
    claimant. If ``seen`` is ``...``, any claimant is accepted.
    """
    if seen is not ... and found != seen:
        why = ": its claimant has changed or sent a heartbeat meanwhile"
        raise refused(uuid, state, why)


def require_free(uuid: str, state: str, found: Claimant | None, seen: Claimant | None) -> None:
    """Raise PlanConflict if a plan has a claimant, unless it is ``seen`` without a new heartbeat.

    ``seen`` is a claimant that the caller found dead, or None.
    """
    if found is None:
        return
    if seen is None:
        raise refused(uuid, state, ": a process runs it; if that is gone, resume the plan")
    require_seen(uuid, state, found, seen)


def cannot_claim(uuid: str, state: str, start_at: datetime | None = None) -> PlanConflict:
    """Return the refusal of a claim on a plan that is not PENDING, or that starts later."""
    if state == PlanState.PENDING and start_at is not None:
        return refused(uuid, state, f", and starts at {start_at:%Y-%m-%d %H:%M:%S} UTC")
    return refused(uuid, state, ": only PENDING plans can be claimed")


def lost_claim(uuid: str, state: str) -> PlanConflict:
    """Return the refusal of a write under a claim that has ended."""
    return refused(uuid, state, ", and this run's claim has ended")


def require_waiting(uuid: str, state: str, accepted: Collection[PlanState]) -> None:
    """Raise PlanConflict for a change by an operator in a plan that is in none of these states."""
    if state not in accepted:
        states = ", ".join(accepted)
        why = f": such changes of actions need one of the states {states}"
        raise refused(uuid, state, why)


def refused(uuid: str, state: str, why: str) -> PlanConflict:
    """Return the refusal of a change of a plan; ``why`` follows its state."""
    return PlanConflict(uuid, state, f"plan {short(uuid)} is {state}{why}")
