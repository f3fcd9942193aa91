# SPDX-License-Identifier: Apache-2.0
"""Decides which jobs, the commands of attempts, on a machine are not needed any more."""

from __future__ import annotations

from enum import StrEnum

from applier.machines.found_jobs import FoundJob
from applier.machines.job_names import attempt_of
from planner.model import ActionPlan
from planner.states import ActionState, PlanState

#: The last attempt of an action in one of these states may still be taken over.
_NEEDED = frozenset({ActionState.ONGOING, ActionState.UNKNOWN})


class Leftover(StrEnum):
    """Whether a job may be removed, as far as a record knows."""

    NO = "no"
    YES = "yes"
    #: The record does not have its plan: it was purged, or belongs to another record.
    UNKNOWN_PLAN = "unknown plan"


def leftover(job: FoundJob, plan: ActionPlan | None) -> Leftover:
    """Return whether a job may be removed: none of it runs, and no applier will search for it.

    ``plan`` is its plan as recorded; None if the record does not have it. The jobs of an attempt
    are needed until the end of the attempt is on record, and while the action is UNKNOWN. An
    attempt gets its permit before its start is on record: it is needed while the plan is ONGOING.
    """
    if job.is_running:
        return Leftover.NO
    attempt = attempt_of(job.folder)
    if attempt is None:
        return Leftover.YES
    if plan is None:
        return Leftover.UNKNOWN_PLAN
    for action in plan.actions:
        if action.uuid == attempt.action:
            if attempt.attempt > action.attempts:
                is_needed = plan.state is PlanState.ONGOING
            else:
                is_needed = attempt.attempt == action.attempts and action.state in _NEEDED
            return Leftover.NO if is_needed else Leftover.YES
    return Leftover.YES
