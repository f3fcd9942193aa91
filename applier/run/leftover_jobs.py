# SPDX-License-Identifier: Apache-2.0
"""Decides which jobs on a machine nobody needs any more."""

from __future__ import annotations

from applier.machines.found_jobs import FoundJob, JobState
from applier.machines.job_names import attempt_of
from planner.model import ActionPlan
from planner.states import ActionState, PlanState

#: The last attempt of an action in one of these states may still be taken over.
_NEEDED = frozenset({ActionState.ONGOING, ActionState.UNKNOWN})


def is_leftover(job: FoundJob, plan: ActionPlan | None) -> bool:
    """Return whether a job may be removed: nothing of it runs, and nobody will look for it.

    ``plan`` is its plan as recorded; None if the record does not have it. The jobs of an attempt
    are needed until the end of the attempt is on record, and while the action is in doubt. The
    permit of an attempt is needed from before its start is on record.
    """
    if job.state is JobState.RUNS or job.left:
        return False
    attempt = attempt_of(job.folder)
    if attempt is None or plan is None:
        return True
    for action in plan.actions:
        if action.uuid == attempt.action:
            if attempt.attempt > action.attempts:
                return plan.state is not PlanState.ONGOING
            return attempt.attempt < action.attempts or action.state not in _NEEDED
    return True
