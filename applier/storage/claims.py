# SPDX-License-Identifier: Apache-2.0
"""Rules on claims: the states of plans that nobody runs, and refusals because of a claim."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from types import EllipsisType

from applier.contracts import Claimant
from applier.errors import PlanConflict
from applier.storage import schema
from applier.storage.dialects import Row, UnreadableValue
from planner.errors import short
from planner.plan.states import PlanState

#: The states of plans that wait for a run or for an operator: operators may skip actions.
WAITING_PLAN = (PlanState.RECOMMENDED, PlanState.PENDING, PlanState.PAUSED)
#: The states of plans that nobody runs: operators may settle actions.
UNCLAIMED_PLAN = (*WAITING_PLAN, PlanState.SUCCEEDED, PlanState.FAILED, PlanState.CANCELLED)


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
        text = (
            f"plan {short(uuid)} is {state}: its claimant has changed or sent a heartbeat meanwhile"
        )
        raise PlanConflict(uuid, state, text)


def require_free(uuid: str, state: str, found: Claimant | None, seen: Claimant | None) -> None:
    """Raise PlanConflict if a plan has a claimant, unless it is ``seen`` without a new heartbeat.

    ``seen`` is a claimant that the caller found dead, or None.
    """
    if found is None:
        return
    if seen is None:
        text = f"plan {short(uuid)} is {state}: a process runs it; if that is gone, resume the plan"
        raise PlanConflict(uuid, state, text)
    require_seen(uuid, state, found, seen)


def cannot_claim(uuid: str, state: str, start_at: datetime | None = None) -> PlanConflict:
    """Return the refusal of a claim on a plan that is not PENDING, or that starts later."""
    if state == PlanState.PENDING and start_at is not None:
        text = f"plan {short(uuid)} is {state}, and starts at {start_at:%Y-%m-%d %H:%M:%S} UTC"
        return PlanConflict(uuid, state, text)
    text = f"plan {short(uuid)} is {state}: only PENDING plans can be claimed"
    return PlanConflict(uuid, state, text)


def lost_claim(uuid: str, state: str) -> PlanConflict:
    """Return the refusal of a write under a claim that has ended."""
    return PlanConflict(
        uuid, state, f"plan {short(uuid)} is {state}, and this run's claim has ended"
    )


def not_claimed(uuid: str, state: str) -> PlanConflict:
    """Return the refusal of a request for a plan that nobody runs."""
    text = f"plan {short(uuid)} is {state}: nobody runs it, so nobody would read a request"
    return PlanConflict(uuid, state, text)


def not_waiting(uuid: str, state: str, accepted: Iterable[PlanState]) -> PlanConflict:
    """Return the refusal of an operator's change to an action of a plan in another state."""
    states = ", ".join(accepted)
    text = f"plan {short(uuid)} is {state}: such changes of actions need one of the states {states}"
    return PlanConflict(uuid, state, text)


def require_claim(plan: Row) -> None:
    """Raise UnreadableValue for the row of a plan with a claim that no process has made."""
    if plan["claim"] is None:
        return
    if not schema.is_process_id(plan["claimant_pid"]) or None in (
        plan["claimant_host"],
        plan["claimant_user"],
    ):
        raise UnreadableValue("its claim does not say which process has made it")
    if not schema.is_interval_s(plan["heartbeat_interval_s"]):
        raise UnreadableValue("its claim does not say how often its process writes a heartbeat")
