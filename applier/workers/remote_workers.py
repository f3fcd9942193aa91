# SPDX-License-Identifier: Apache-2.0
"""Executes attempts at workers elsewhere: offers jobs, and follows them in the record."""

from __future__ import annotations

import queue
from collections.abc import Callable, Collection, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from applier.contracts import JobOffer, Report
from applier.engines.attempts_in_progress import Threads
from applier.engines.engine import Executor, MakeExecutor
from applier.run.interrupted_actions import is_found_there
from applier.scheduling.concurrency import QueueLimits, queue_limits, queue_of
from applier.store.worker_jobs import AttemptKey, StopReason, WorkerJob
from applier.workers.follower import JobDelivery, JobFollower, offer_of
from applier.workers.payloads import payload_of
from planner.plan.model import ActionPlan
from planner.plan.states import ActionState

if TYPE_CHECKING:
    from applier.storage.sql_store import SqlStore


#: Seconds without a report, besides two leases, after which stopped jobs are no longer awaited.
STOPS_IN_S = 10.0


@dataclass(frozen=True, slots=True)
class RemoteRuns:
    """Executes the actions of runs at workers; all runs send messages over one connection.

    A lease lasts ``lease_s`` seconds. A job that no worker took is sent again after ``resend_s``
    seconds. ``route`` are the kinds of tokens that name queues, the preferred one first. ``cloud``
    is the name of the applier's cloud, ``release`` the release of ActionPlan there.
    """

    store: SqlStore
    delivery: JobDelivery
    _: KW_ONLY
    lease_s: float
    resend_s: float
    route: tuple[str, ...] = ()
    cloud: str
    release: str

    def close(self) -> None:
        """Close the connection to the broker."""
        self.delivery.close()

    def executor_of(
        self, plan: ActionPlan, known: Mapping[str, WorkerJob], tell: Callable[[str], None]
    ) -> MakeExecutor:
        """Return a function that makes the executor of a run.

        ``known`` are the jobs on record of its interrupted actions, by action. ``tell`` is called
        with sentences about queues that no worker serves.
        """
        return partial(RemoteWorkers, runs=self, plan=plan.uuid, known=known, tell=tell)

    def follower(
        self,
        plan: str,
        done: Callable[[Report], None],
        tell: Callable[[str], None] = lambda _: None,
    ) -> JobFollower:
        """Return the follower of the jobs of one run."""
        return JobFollower(
            plan,
            self.store,
            self.delivery,
            done,
            lease_s=self.lease_s,
            resend_s=self.resend_s,
            tell=tell,
        )

    def queue_limits(self, plan: ActionPlan, workerless: Collection[str]) -> QueueLimits:
        """Return the places of the workers that serve each queue now, as limits for a forecast.

        ``workerless`` are the actions that need no place. Raises StoreError.
        """
        served = self.store.served_queues()
        return queue_limits(plan.actions, self.route, workerless, served)

    def end_jobs(
        self, plan: str, jobs: Mapping[str, WorkerJob], at_workers: Collection[str]
    ) -> list[Report]:
        """Stop the jobs of a plan that no applier runs; wait, and return a report for each job.

        An action whose job does not end in time is reported as UNKNOWN. ``at_workers`` are the
        actions whose commands run on the machines of their workers. Raises StoreError.
        """
        ended: queue.SimpleQueue[Report] = queue.SimpleQueue()
        follower = self.follower(plan, ended.put)
        for job in jobs.values():
            follower.follow(job.key, offer_of(job), at_worker=job.key.action in at_workers)
        keys = [job.key for job in jobs.values()]
        self.store.stop_jobs(keys, StopReason.ABORT)
        self.delivery.look(keys)
        reports: dict[str, Report] = {}
        follower.start()
        try:
            while len(reports) < len(jobs):
                report = ended.get(timeout=2 * self.lease_s + STOPS_IN_S)
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


class RemoteWorkers(Executor):
    """Executes each attempt of a run as a job for some worker, which has a fixed number of places.

    ``known`` are the jobs of interrupted actions that are on record already, by action. An adopted
    attempt without such a job is followed in a thread of this process. ``tell`` is called with
    sentences about queues that no worker serves.
    """

    def __init__(
        self,
        maximum: int,
        done: Callable[[Report], None],
        *,
        runs: RemoteRuns,
        plan: str,
        known: Mapping[str, WorkerJob],
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.maximum, self.away_s = maximum, runs.lease_s
        self._runs, self._plan, self._known = runs, plan, known
        self._offers: dict[str, JobOffer] = {}
        self._threads = Threads(maximum, done)
        self._followed_here: set[str] = set()
        self._follower = runs.follower(plan, done, tell)

    def offer(self, task: Any) -> JobOffer:
        action = task.action
        payload = payload_of(task, self._runs.cloud, self._runs.release)
        to_queue = queue_of(action, self._runs.route)
        offer = JobOffer(task.attempt, to_queue, action.action_type, payload)
        self._offers[action.uuid] = offer
        return offer

    def grow(self, number: int, extra: int = 0) -> None:
        """Do nothing: the number of places is fixed at each worker."""

    def replace(self) -> None:
        """Do nothing: the attempt that hangs occupies a place of its worker until it ends."""

    def submit(self, task: Any) -> None:
        offer = self._offers.pop(task.action.uuid)
        key = AttemptKey(self._plan, task.action.uuid, offer.attempt)
        self._follow(task, key, offer)
        self._runs.delivery.send(offer.queue, key)

    def adopt(self, task: Any) -> None:
        uuid = task.action.uuid
        if job := self._known.get(uuid):
            self._follow(task, job.key, offer_of(job))
            return
        self._followed_here.add(uuid)
        self._threads.grow(len(self._followed_here), extra=len(self._followed_here))
        self._threads.adopt(task)

    def _follow(self, task: Any, key: AttemptKey, offer: JobOffer) -> None:
        self._follower.follow(key, offer, at_worker=is_found_there(task.action, task.plugin))

    def stop(self, task: Any, why: StopReason) -> None:
        if task.action.uuid in self._followed_here:
            self._threads.stop(task, why)
            return
        task.stop_for(why)
        self._follower.stop(AttemptKey(self._plan, task.action.uuid, task.attempt), why)

    def let_go(self, task: Any) -> bool:
        if task.action.uuid in self._followed_here:
            return self._threads.let_go(task)  # only its commands go on
        self._follower.leave(task.action.uuid)
        return True

    def __enter__(self) -> RemoteWorkers:
        self._follower.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._follower.close()
        self._threads.__exit__(*error)
