# SPDX-License-Identifier: Apache-2.0
"""Why a command is refused by the state of a plan, and which one to give instead."""

from __future__ import annotations

from applier.errors import PlanConflict
from applier.operations.who_runs import RUNNING, is_gone, named, words
from applier.store import PlanStore
from planner.plan.model import ActionPlan
from planner.plan.states import PlanState

#: The reason why a plan in one of these states cannot be started or removed.
_STANDS = {
    PlanState.RECOMMENDED: "it has not been started yet",
    PlanState.ONGOING: "it runs",
    PlanState.CANCELLING: "it is being cancelled",
    PlanState.FAILED: "it has ended",
    PlanState.CANCELLED: "it has ended",
}


#: The commands for a plan in one of these states. In any other state, a new plan must be made.
_INSTEAD = {
    PlanState.RECOMMENDED: "run it: actionplan apply {}",
    PlanState.PENDING: "run it here: actionplan apply {}",
    PlanState.ONGOING: "look: actionplan show {}",
    PlanState.CANCELLING: "look: actionplan show {}",
    PlanState.FAILED: "go on with it: actionplan apply {}",
    PlanState.CANCELLED: "go on with it: actionplan apply {}",
}


def already_running(store: PlanStore, uuid: str) -> PlanConflict | None:
    """Return the error for a change of a plan that somebody runs; None if nobody does."""
    state = store.load_plan(uuid).state
    if state not in RUNNING:
        return None
    claimant, short = store.claimant(uuid), uuid[:8]
    if claimant is None:  # it has ended meanwhile
        return None
    text = f"plan {short} is {state}: {words(claimant)} runs it"
    if is_gone(claimant):
        text += (
            ", and that process is gone: it crashed or was killed. "
            f"Continue it: actionplan apply {short}"
        )
    else:
        text += f". Look: actionplan show {short}. Stop it: actionplan stop {short}"
    return PlanConflict(uuid, state, text)


def wrong_state(plan: ActionPlan) -> PlanConflict:
    """Return the error for a command that the state of a plan forbids, with possible commands."""
    from applier.run import resume

    why = {**resume.REFUSED, **_STANDS}[plan.state]
    instead = _INSTEAD.get(plan.state, "make a new one: actionplan create FILE")
    if plan.state is PlanState.SUCCEEDED and not resume.is_refused(plan):
        why, instead = "a rollback undid some of it", "do that again: actionplan apply {}"
    text = f"{named(plan).replace('Plan', 'plan', 1)} is {plan.state}: {why}"
    return PlanConflict(plan.uuid, plan.state, f"{text}; {instead.format(plan.uuid[:8])}")
