# SPDX-License-Identifier: Apache-2.0
"""Follows the jobs of one run in the record: their ends, and leases that run out."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable

from applier.contracts import JobOffer, Report
from applier.errors import DamagedRecord, StoreError
from applier.store.worker_jobs import (
    ALL_SERVED,
    OVER,
    AttemptKey,
    JobTask,
    StopReason,
    WorkerJob,
    WorkerJobState,
    WorkerJobStore,
    unserved,
)
from applier.workers.delivery import JobDelivery
from applier.workers.payloads import report_of
from planner.states import ActionState, Outcome, StateReason

LOG = logging.getLogger(__name__)

#: The shortest and the longest pause between two looks for ends, in seconds. It grows while
#: nothing ends.
SHORTEST_S, LONGEST_S = 0.005, 0.25
#: The pause between two looks for leases that ran out, and for jobs that nobody took, in seconds.
CARE_S = 0.5
#: A job that nobody takes that is to be found or verified is given up after so many leases.
WAITS_LEASES = 2
#: How often the worker of a job may be lost that finds out what became of it.
LOSSES = 3


def offer_of(job: WorkerJob) -> JobOffer:
    """Return the offer of a job that is on record, without its payload."""
    return JobOffer(job.key.attempt, job.queue, job.action_type, {})


class JobFollower:
    """Passes the report of each job that it follows to ``done`` when the job is over, once.

    A job whose lease ran out is offered again to be verified, whose end is its report then. If it
    may have run commands on the machine of its worker, a worker there is to find them; if none
    comes for two leases, any worker verifies it. If that is lost several times as well, or nobody
    takes it for two leases, the action is UNKNOWN. Leases count only while the record was within
    reach for a whole lease: before that, workers could not renew them either.
    """

    def __init__(
        self,
        plan: str,
        store: WorkerJobStore,
        delivery: JobDelivery,
        done: Callable[[Report], None],
        *,
        lease_s: float,
        resend_s: float,
        tell: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._plan, self._store, self._delivery, self._done = plan, store, delivery, done
        self._tell = tell
        self._lease_s, self._resend_s, self._clock = lease_s, resend_s, clock
        self._jobs: dict[str, tuple[AttemptKey, JobOffer]] = {}
        #: The actions whose commands run on the machines of workers.
        self._at_workers: set[str] = set()
        #: Since when lost jobs wait for a worker to find or verify them.
        self._lost: dict[str, float] = {}
        #: How often the workers of jobs were lost.
        self._losses: Counter[str] = Counter()
        self._next_count = clock() + lease_s
        self._lock = threading.Lock()
        self._wake, self._over = threading.Event(), threading.Event()
        self._within_reach_since = self._last_answer = clock()
        self._next_care = clock() + min(CARE_S, resend_s)
        #: The queues of which was told that nobody serves them, and when they are looked at again.
        self._unserved: set[str] = set()
        self._next_queues = 0.0
        self._thread = threading.Thread(target=self._loop, name="job-follower", daemon=True)

    def start(self) -> None:
        """Begin to follow jobs, in a thread."""
        self._thread.start()

    def close(self) -> None:
        """End; jobs that are not over are followed by nobody."""
        self._over.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()

    def follow(self, key: AttemptKey, offer: JobOffer, *, at_worker: bool = False) -> None:
        """Follow a job that is on record.

        ``at_worker`` says that its commands run on the machine of its worker.
        """
        with self._lock:
            self._jobs[key.action] = (key, offer)
            if at_worker:
                self._at_workers.add(key.action)
        self._wake.set()

    def leave(self, action: str) -> None:
        """Follow the job of an action no more."""
        with self._lock:
            self._jobs.pop(action, None)
            self._at_workers.discard(action)

    def wake(self) -> None:
        """Look soon."""
        self._wake.set()

    def pause(self, seconds: float) -> None:
        """Wait, unless it is the end."""
        self._over.wait(seconds)

    def look(self) -> bool:
        """Look for jobs that are over; return whether there were any. Raises StoreError."""
        found = False
        for job in self._store.jobs_of(self._plan, OVER):
            with self._lock:
                key, offer = self._jobs.get(job.key.action, (None, None))
            if key == job.key and offer is not None:
                found = self._take_in(job, offer) or found
        self._answered()
        if self._clock() >= self._next_care:
            self._care()
            self._next_care = self._clock() + min(CARE_S, self._resend_s)
        return found

    def _answered(self) -> None:
        """Note that the record answered; an answer that took long tells of an outage."""
        now = self._clock()
        # Of the shortest leases, a quarter is no longer than the pause between two looks.
        if now - self._last_answer > max(self._lease_s / 4, 2 * LONGEST_S):
            self._within_reach_since = now
        self._last_answer = now

    def _take_in(self, job: WorkerJob, offer: JobOffer) -> bool:
        """Report a job that is over; return whether that was done."""
        if job.state is WorkerJobState.LOST:
            return self._lost_job(job, offer)
        if job.state is WorkerJobState.ENDED:
            self._report_result(job, offer)
        elif job.task is not JobTask.ACT:
            self._in_doubt(job, offer, "no worker found out what became of it")
        elif job.stop is StopReason.TIMEOUT:
            text = f"timed out: no worker took it from the queue {job.queue}"
            self._end(job, offer, ActionState.FAILED, text)
        else:
            self._end(job, offer, ActionState.CANCELLED, "aborted before it began")
        return True

    def _report_result(self, job: WorkerJob, offer: JobOffer) -> None:
        try:
            report = report_of(job.key.action, offer, job.result or {})
        except ValueError as reason:
            text = f"what worker {job.worker} wrote at its end is no result: {reason}"
            self._end(job, offer, ActionState.UNKNOWN, text)
        else:
            self._report(report)

    def _lost_job(self, job: WorkerJob, offer: JobOffer) -> bool:
        action, text = job.key.action, f"its worker {job.worker} was not heard of for its lease"
        if self._losses[action] >= LOSSES:
            self._in_doubt(job, offer, f"{text}, while it found out what became of the attempt")
            return True
        LOG.warning("Action %s: %s", action, text, extra={"action": action})
        is_here = action in self._at_workers and job.task is not JobTask.VERIFY
        if self._store.verify_job(job.key, JobTask.FIND if is_here else JobTask.VERIFY):
            self._losses[action] += 1
            self._lost[action] = self._clock()
            self._delivery.send(job.queue, job.key)
        return False

    def _in_doubt(self, job: WorkerJob, offer: JobOffer, message: str) -> None:
        """Report an attempt of which something may still run: its tokens stay held."""
        self._end(job, offer, ActionState.UNKNOWN, message, given_up=True)

    def _end(
        self,
        job: WorkerJob,
        offer: JobOffer,
        state: ActionState,
        message: str,
        *,
        given_up: bool = False,
    ) -> None:
        """Report an attempt that has no result."""
        self._report(
            Report(
                uuid=job.key.action,
                old=ActionState.ONGOING,
                state=state,
                outcome=Outcome.ERROR if state is ActionState.FAILED else None,
                state_reason=StateReason.ABORTED if state is ActionState.CANCELLED else None,
                message=message,
                job=offer,
                given_up=given_up,
            )
        )

    def _report(self, report: Report) -> None:
        self.leave(report.uuid)
        self._lost.pop(report.uuid, None)
        self._losses.pop(report.uuid, None)
        self._done(report)

    def _care(self) -> None:
        """Fence what was lost, and send again what nobody took."""
        if self._clock() - self._within_reach_since >= self._lease_s:
            self._store.fence_jobs(self._plan)
        unsent = self._store.unsent_jobs(self._plan, self._resend_s)
        for job in unsent:
            if job.task is not JobTask.ACT and self._waited_s(job) > WAITS_LEASES * self._lease_s:
                self._waited_long(job)
            else:
                self._delivery.send(job.queue, job.key)
        if self._clock() >= self._next_count:
            self._next_count = self._clock() + self._lease_s
            self._count()
        # Last, because what workers say of themselves may be damaged.
        self._tell_unserved({job.queue for job in unsent})

    def _waited_long(self, job: WorkerJob) -> None:
        """Let any worker verify a job that none on its machine has found; else give it up."""
        if job.task is JobTask.VERIFY:
            self._store.stop_jobs([job.key], StopReason.ABORT)
        elif self._store.verify_job(job.key):
            self._lost[job.key.action] = self._clock()
            self._delivery.send(job.queue, job.key)

    def _count(self) -> None:
        """Report actions whose jobs are not on record any more: nobody else would end them."""
        with self._lock:
            followed = list(self._jobs.values())
        known = {job.key for job in self._store.jobs_of(self._plan)}
        for key, offer in followed:
            with self._lock:
                is_followed = self._jobs.get(key.action) == (key, offer)
            if key not in known and is_followed:
                self._report(
                    Report(
                        uuid=key.action,
                        old=ActionState.ONGOING,
                        state=ActionState.UNKNOWN,
                        message="its job is not on record any more",
                        job=offer,
                        given_up=True,
                    )
                )

    def _tell_unserved(self, waiting: set[str]) -> None:
        """Tell once that nobody serves a queue in which jobs wait, and once that all are served."""
        now = self._clock()
        # After an outage of the record, workers have to report first.
        knows = now - self._within_reach_since >= self._resend_s
        if not knows or not (waiting or (self._unserved and now >= self._next_queues)):
            return
        self._next_queues = now + self._resend_s
        found = (waiting | self._unserved).difference(self._store.served_queues())
        if found == self._unserved:
            return
        text = unserved(found) or ALL_SERVED
        level = logging.WARNING if found else logging.INFO
        LOG.log(level, "Plan %s: %s", self._plan, text[0].lower() + text[1:].rstrip("."))
        self._tell(text)
        self._unserved = found

    def _waited_s(self, job: WorkerJob) -> float:
        """Return for how long nobody has taken a job that is to be verified."""
        now = self._clock()
        return now - self._lost.setdefault(job.key.action, now)

    def _loop(self) -> None:
        pause_s, is_away = SHORTEST_S, False
        while not self._over.is_set():
            if not self._jobs:
                self._wake.wait()
            if self._wake.is_set():
                self._wake.clear()
                pause_s = SHORTEST_S
            try:
                pause_s = SHORTEST_S if self.look() else min(1.5 * pause_s, LONGEST_S)
                is_away = False
            except (StoreError, DamagedRecord) as reason:
                if not is_away:
                    LOG.warning("Plan %s: its jobs cannot be read: %s", self._plan, reason)
                is_away, pause_s = True, LONGEST_S
            except Exception:
                # Without this thread the plan would never end.
                if not is_away:
                    LOG.exception("Plan %s: its jobs cannot be followed", self._plan)
                is_away, pause_s = True, LONGEST_S
            self._wake.wait(pause_s)
