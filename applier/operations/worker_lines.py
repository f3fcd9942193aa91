# SPDX-License-Identifier: Apache-2.0
"""Says at which worker an action runs, or that it waits for one."""

from __future__ import annotations

from applier.store.worker_jobs import AttemptKey, JobTask, WorkerJob, WorkerJobState, WorkerJobStore
from applier.wording import count
from planner.model import Action, ActionPlan

#: A worker that was not heard of for so many seconds is not counted among those that serve a queue.
SILENT_S = 60.0


def lines(store: WorkerJobStore, plan: ActionPlan, action: Action) -> list[str]:
    """Return a line about the job of an action that runs; none if it runs in the applier.

    Raises StoreError.
    """
    own = AttemptKey(plan.uuid, action.uuid, action.attempts)
    return [_line(store, job) for job in store.jobs_of(plan.uuid) if job.key == own]


def _line(store: WorkerJobStore, job: WorkerJob) -> str:
    what = "finds out what became of it" if job.task is JobTask.VERIFY else "carries it out"
    if job.state is WorkerJobState.DOING:
        stops = "; it was told to stop" if job.stop else ""
        return f"Worker {job.worker} {what}{stops}."
    if job.state is WorkerJobState.LOST:
        return f"Worker {job.worker} was lost; another one is to find out what became of it."
    if job.state is not WorkerJobState.TODO:
        return "Its job is over; the applier is about to record that."
    serving = [
        w
        for w in store.workers()
        if job.queue in w.queues and w.silent_s < SILENT_S and not w.draining
    ]
    if not serving:
        return f"No worker serves {job.queue}."
    return f"It waits for {count(len(serving), 'worker')} of the queue {job.queue}."
