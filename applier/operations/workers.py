# SPDX-License-Identifier: Apache-2.0
"""Drain workers on other machines: they take no more jobs, and end when they have none."""

from __future__ import annotations

from applier.errors import DamagedRows, WorkerNotFound, sound_part
from applier.operations import Operator
from applier.store.worker_jobs import Worker, WorkerJobStore
from applier.wording import count


def drain(store: WorkerJobStore, operator: Operator, name: str) -> Worker:
    """Mark a worker in the store to take no more jobs, and return it; raises WorkerNotFound.

    It does not wait for running jobs. The history records the operator. A repeated call changes
    nothing.
    """
    before = find(store, name)
    if before.draining:
        operator.say(f"The worker {name} drains already.")
    elif store.drain_worker(name, history=operator.entry("worker drain", name)):
        operator.say(f"The worker {name} takes no more jobs, and ends when it has none.")
    worker = find(store, name)
    if worker.running:
        operator.say(f"It has {count(worker.running, 'job')}.")
    return worker


def find(store: WorkerJobStore, name: str) -> Worker:
    """Return a worker by its name; raises WorkerNotFound, and DamagedRows if its row is damaged."""
    sound, damaged = sound_part(store.workers)
    if mine := [row for row in damaged if row.values.get("name") == name]:
        raise DamagedRows(mine, [])
    workers = {worker.name: worker for worker in sound}
    if name not in workers:
        raise WorkerNotFound(name, workers)
    return workers[name]
