# SPDX-License-Identifier: Apache-2.0
"""Follows the jobs of one run in the record: their ends, and leases that run out."""

from __future__ import annotations

import logging
import threading
import time
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
from applier.workers.delivery import Delivery
from applier.workers.payloads import report_of
from planner.states import ActionState, Outcome, StateReason

LOG = logging.getLogger(__name__)

#: The shortest and the longest pause between two looks for ends, in seconds. It grows while
#: nothing ends.
SHORTEST_S, LONGEST_S = 0.005, 0.25
#: The pause between two looks for leases that ran out, and for jobs that nobody took, in seconds.
CARE_S = 0.5


def offer_of(job: WorkerJob) -> JobOffer:
    """Return the offer of a job that is on record, without its payload."""
    return JobOffer(job.key.attempt, job.queue, job.action_type, {})


class JobFollower:
    """Passes the report of each job that it follows to ``done`` when the job is over, once.

    A job whose lease ran out is offered again to be verified, whose end is its report then. If the
    lease of that runs out as well, or nobody takes it for two leases, the action is UNKNOWN. Leases
    count only while the record was within reach for a whole lease: before that, workers could not
    renew them either.
    """

    def __init__(
        self,
        plan: str,
        store: WorkerJobStore,
        delivery: Delivery,
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
        #: Since when lost jobs are to be verified.
        self._lost: dict[str, float] = {}
        self._lock = threading.Lock()
        self._wake, self._over = threading.Event(), threading.Event()
        self._within_reach_since = self._last_answer = clock()
        self._next_care = clock() + min(CARE_S, resend_s)
        #: The queues of which was told that nobody serves them, and when they are looked at again.
        self._unserved: set[str] = set()
        self._next_count = 0.0
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

    def follow(self, key: AttemptKey, offer: JobOffer) -> None:
        """Follow a job that is on record."""
        with self._lock:
            self._jobs[key.action] = (key, offer)
        self._wake.set()

    def leave(self, action: str) -> None:
        """Follow the job of an action no more."""
        with self._lock:
            self._jobs.pop(action, None)

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
        if now - self._last_answer > self._lease_s / 4:
            self._within_reach_since = now
        self._last_answer = now

    def _take_in(self, job: WorkerJob, offer: JobOffer) -> bool:
        """Report a job that is over; return whether that was done."""
        if job.state is WorkerJobState.LOST:
            return self._lost_job(job, offer)
        if job.state is WorkerJobState.ENDED:
            try:
                self._report(report_of(job.key.action, offer, job.result or {}))
            except ValueError as reason:
                text = f"what worker {job.worker} wrote at its end is no result: {reason}"
                self._end(job, offer, ActionState.UNKNOWN, text)
        elif job.task is JobTask.VERIFY:
            self._end(job, offer, ActionState.UNKNOWN, "no worker found out what became of it")
        elif job.stop is StopReason.TIMEOUT:
            text = f"timed out: no worker took it from the queue {job.queue}"
            self._end(job, offer, ActionState.FAILED, text)
        else:
            self._end(job, offer, ActionState.CANCELLED, "aborted before it began")
        return True

    def _lost_job(self, job: WorkerJob, offer: JobOffer) -> bool:
        action, text = job.key.action, f"its worker {job.worker} was not heard of for its lease"
        if job.task is JobTask.VERIFY:
            text = f"{text}, while it found out what became of the attempt"
            self._end(job, offer, ActionState.UNKNOWN, text)
            return True
        LOG.warning("Action %s: %s", action, text, extra={"action": action})
        if self._store.verify_job(job.key):
            self._delivery.send(job.queue, job.key)
        return False

    def _end(self, job: WorkerJob, offer: JobOffer, state: ActionState, message: str) -> None:
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
            )
        )

    def _report(self, report: Report) -> None:
        self.leave(report.uuid)
        self._lost.pop(report.uuid, None)
        self._done(report)

    def _care(self) -> None:
        """Fence what was lost, and send again what nobody took."""
        if self._clock() - self._within_reach_since >= self._lease_s:
            self._store.fence_jobs(self._plan)
        unsent = self._store.unsent_jobs(self._plan, self._resend_s)
        self._tell_unserved({job.queue for job in unsent})
        for job in unsent:
            if job.task is JobTask.VERIFY and self._waited_s(job) > 2 * self._lease_s:
                self._store.stop_job(job.key, StopReason.ABORT)
            else:
                self._delivery.send(job.queue, job.key)

    def _tell_unserved(self, waiting: set[str]) -> None:
        """Tell once that nobody serves a queue in which jobs wait, and once that all are served."""
        now = self._clock()
        # After an outage of the record, workers have to report first.
        knows = now - self._within_reach_since >= self._resend_s
        if not knows or not (waiting or (self._unserved and now >= self._next_count)):
            return
        self._next_count = now + self._resend_s
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
            self._wake.wait(pause_s)
