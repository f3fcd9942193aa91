# SPDX-License-Identifier: Apache-2.0
"""Lines about the worker on another machine that runs an action, or for which it waits."""

from __future__ import annotations

from applier.errors import sound_part
from applier.store.worker_jobs import (
    AttemptKey,
    JobTask,
    WorkerJob,
    WorkerJobState,
    WorkerJobStore,
    unserved,
)
from applier.wording import count
from planner.model import Action, ActionPlan
from planner.states import ActionState


def lines(store: WorkerJobStore, plan: ActionPlan, action: Action) -> list[str]:
    """Return a line about the job of an ONGOING action; an empty list if it runs in the applier.

    Raises StoreError.
    """
    own = AttemptKey(plan.uuid, action.uuid, action.attempts)
    jobs, damaged = sound_part(lambda: store.jobs_of(plan.uuid))
    told = [_line(store, job) for job in jobs if job.key == own]
    return told + [str(row) for row in damaged if row.values.get("action") == action.uuid]


def _line(store: WorkerJobStore, job: WorkerJob) -> str:
    what = "carries it out" if job.task is JobTask.ACT else "finds out what became of it"
    if job.state is WorkerJobState.DOING:
        stops = "; it was told to stop" if job.stop else ""
        return f"Worker {job.worker} {what}{stops}."
    if job.state is WorkerJobState.LOST:
        return f"Worker {job.worker} was lost; another one is to find out what became of it."
    if job.state is not WorkerJobState.TODO:
        return "Its job is over; the applier is about to record that."
    serving = store.served_queues().get(job.queue)
    if serving is None:
        return unserved([job.queue])
    return f"It waits for {count(serving.workers, 'worker')} of the queue {job.queue}."


def waits_in_vain(store: object, plan: ActionPlan) -> str:
    """Return a sentence that names the queues in which jobs of a plan wait and no worker serves.

    Returns an empty text if there are none. Raises StoreError.
    """
    runs = any(action.state is ActionState.ONGOING for action in plan.actions)
    if not runs or not isinstance(store, WorkerJobStore):
        return ""
    jobs, _ = sound_part(lambda: store.jobs_of(plan.uuid, [WorkerJobState.TODO]))
    waiting = {job.queue for job in jobs}
    return unserved(waiting.difference(store.served_queues())) if waiting else ""
