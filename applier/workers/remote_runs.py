# SPDX-License-Identifier: Apache-2.0
"""Executes the actions of runs at workers: makes an executor for each run."""

from __future__ import annotations

import queue
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING

from applier.contracts import Report
from applier.engines import MakeExecutor
from applier.scheduling.submissions import QueueLimits, queue_limits
from applier.store.worker_jobs import StopReason, WorkerJob
from applier.workers.follower import JobDelivery, JobFollower, offer_of
from applier.workers.remote_workers import RemoteSettings, RemoteWorkers
from planner.plan.model import ActionPlan
from planner.plan.states import ActionState

if TYPE_CHECKING:
    from applier.storage.sql import SqlStore


#: Seconds without a report, besides two leases, after which stopped jobs are no longer awaited.
STOPS_IN_S = 10.0


class RemoteRuns:
    """Executes the actions of runs at workers; all runs send messages over one connection."""

    def __init__(self, store: SqlStore, delivery: JobDelivery, settings: RemoteSettings) -> None:
        self._store, self._delivery, self._settings = store, delivery, settings

    def close(self) -> None:
        """Close the connection to the broker."""
        self._delivery.close()

    def executor_of(
        self, plan: ActionPlan, known: Mapping[str, WorkerJob], tell: Callable[[str], None]
    ) -> MakeExecutor:
        """Return a function that makes the executor of a run.

        ``known`` are the jobs on record of its interrupted actions, by action. ``tell`` is called
        with sentences about queues that no worker serves.
        """
        return partial(
            RemoteWorkers,
            plan=plan.uuid,
            store=self._store,
            delivery=self._delivery,
            settings=self._settings,
            known=known,
            tell=tell,
        )

    def queue_limits(self, plan: ActionPlan, workerless: Collection[str]) -> QueueLimits:
        """Return the places of the workers that serve each queue now, as limits for a forecast.

        ``workerless`` are the actions that need no place. Raises StoreError.
        """
        served = self._store.served_queues()
        return queue_limits(plan.actions, self._settings.route, workerless, served)

    def end_jobs(
        self, plan: str, jobs: Mapping[str, WorkerJob], at_workers: Collection[str]
    ) -> list[Report]:
        """Stop the jobs of a plan that no applier runs; wait, and return a report for each job.

        An action whose job does not end in time is reported as UNKNOWN. ``at_workers`` are the
        actions whose commands run on the machines of their workers. Raises StoreError.
        """
        ended: queue.SimpleQueue[Report] = queue.SimpleQueue()
        lease_s = self._settings.lease_s
        follower = JobFollower(
            plan,
            self._store,
            self._delivery,
            ended.put,
            lease_s=lease_s,
            resend_s=self._settings.resend_s,
        )
        for job in jobs.values():
            is_there = job.key.action in at_workers
            follower.follow(job.key, offer_of(job), at_worker=is_there)
        keys = [job.key for job in jobs.values()]
        self._store.stop_jobs(keys, StopReason.ABORT)
        self._delivery.look(keys)
        reports: dict[str, Report] = {}
        follower.start()
        try:
            while len(reports) < len(jobs):
                report = ended.get(timeout=2 * lease_s + STOPS_IN_S)
                reports[report.uuid] = report
        except queue.Empty:
            pass  # jobs without a report are in doubt, see below
        finally:
            follower.close()
        return [reports.get(uuid) or _in_doubt(job) for uuid, job in jobs.items()]


def _in_doubt(job: WorkerJob) -> Report:
    return Report(
        uuid=job.key.action,
        old=ActionState.ONGOING,
        state=ActionState.UNKNOWN,
        message=f"its plan was cancelled, and nothing was heard of worker {job.worker}",
        job=offer_of(job),
    )
