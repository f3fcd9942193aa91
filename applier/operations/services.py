# SPDX-License-Identifier: Apache-2.0
"""Which services and workers there are for a plan and its actions; drains workers."""

from __future__ import annotations

from collections.abc import Iterator

from applier.assembly import Assembly, now
from applier.errors import WorkerNotFound
from applier.operations import Operator, who_runs
from applier.run import liveness
from applier.store import Service
from applier.store.worker_jobs import (
    AttemptKey,
    JobTask,
    Worker,
    WorkerJob,
    WorkerJobState,
    unserved,
)
from applier.wording import ago, count
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ActionState


def present(assembly: Assembly, cloud: str | None = None) -> list[Service]:
    """List the services whose process is not known to be gone, latest heartbeat first.

    With the name of a cloud, those that are configured for another are left out, too.
    """
    there = [service for service in assembly.store.services() if not liveness.is_gone(service)]
    return [s for s in there if cloud is None or s.cloud == cloud]


def nobody_present(assembly: Assembly) -> str:
    """Return the beginning of a sentence about a plan for which no service is present."""
    return f"No applier service{' for its cloud' if present(assembly) else ''}"


def pending_lines(plan: ActionPlan, last: Service, *, is_due: bool = True) -> Iterator[str]:
    """Yield lines about a PENDING plan; ``last`` is the service with the latest heartbeat.

    Without ``is_due``, the line that it waits for a service is left out: it waits for a time.
    """
    heard = ago((now() - last.heartbeat_at).total_seconds())
    if is_due:
        yield f"{who_runs.named(plan)} is PENDING, and waits for an applier service."
    yield f"Heard of {heard}: {last.user} on {last.host}, process {last.pid}."
    yield f"Follow it with: actionplan watch {plan.uuid[:8]}"


def drain(assembly: Assembly, operator: Operator, name: str) -> Worker:
    """Mark a worker in the store to take no more jobs, and return it; raises WorkerNotFound.

    It does not wait for running jobs. The history records the operator. A repeated call changes
    nothing.
    """
    before = find_worker(assembly, name)
    if before.draining:
        operator.say(f"The worker {name} drains already.")
    elif assembly.store.drain_worker(name, history=operator.entry("worker drain", name)):
        operator.say(f"The worker {name} takes no more jobs, and ends when it has none.")
    worker = find_worker(assembly, name)
    if worker.running:
        operator.say(f"It has {count(worker.running, 'job')}.")
    return worker


def find_worker(assembly: Assembly, name: str) -> Worker:
    """Return a worker by its name; raises WorkerNotFound."""
    workers = {worker.name: worker for worker in assembly.store.workers()}
    if name not in workers:
        raise WorkerNotFound(name, workers)
    return workers[name]


def worker_lines(assembly: Assembly, plan: ActionPlan, action: Action) -> list[str]:
    """Return a line about the job of an ONGOING action; an empty list if it runs in the applier.

    Raises StoreError.
    """
    own = AttemptKey(plan.uuid, action.uuid, action.attempts)
    jobs = assembly.store.jobs_of(plan.uuid)
    return [_line(assembly, job) for job in jobs if job.key == own]


def _line(assembly: Assembly, job: WorkerJob) -> str:
    what = "carries it out" if job.task is JobTask.ACT else "finds out what became of it"
    if job.state is WorkerJobState.DOING:
        stops = "; it was told to stop" if job.stop else ""
        return f"Worker {job.worker} {what}{stops}."
    if job.state is WorkerJobState.LOST:
        return f"Worker {job.worker} was lost; another one is to find out what became of it."
    if job.state is not WorkerJobState.TODO:
        return "Its job is over; the applier is about to record that."
    serving = assembly.store.served_queues().get(job.queue)
    if serving is None:
        return unserved([job.queue])
    return f"It waits for {count(serving.workers, 'worker')} of the queue {job.queue}."


def waits_in_vain(assembly: Assembly, plan: ActionPlan) -> str:
    """Return a sentence that names the queues in which jobs of a plan wait and no worker serves.

    Returns an empty text if there are none. Raises StoreError.
    """
    if not any(action.state is ActionState.ONGOING for action in plan.actions):
        return ""
    store = assembly.store
    waiting = {job.queue for job in store.jobs_of(plan.uuid, [WorkerJobState.TODO])}
    return unserved(waiting.difference(store.served_queues())) if waiting else ""
