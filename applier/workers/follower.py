# SPDX-License-Identifier: Apache-2.0
"""Polls the record for the ends of the jobs of one run, and for leases that have run out."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable

from applier.contracts import JobOffer, Report
from applier.errors import DamagedRecord, DamagedRow, StoreError, sound_part
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
from applier.workers.job_delivery import JobDelivery
from applier.workers.payloads import process_of, report_of
from planner.states import ActionState, Outcome, StateReason

LOG = logging.getLogger(__name__)

#: The shortest and the longest pause between two looks for ended jobs, in seconds. It grows while
#: no job ends.
SHORTEST_S, LONGEST_S = 0.005, 0.25
#: Seconds between two looks for leases that ran out, and for jobs that no worker took.
CARE_S = 0.5
#: After so many leases in which no worker has taken it, a job that is to be found is offered to be
#: verified, and a job that is to be verified is given up.
WAITS_LEASES = 2
#: How often a job whose worker was lost is offered again, to be found or verified. At the next
#: loss, its action is UNKNOWN.
LOSSES = 3


def offer_of(job: WorkerJob) -> JobOffer:
    """Return the offer of a job that is on record, with an empty payload."""
    return JobOffer(job.key.attempt, job.queue, job.action_type, {})


class JobFollower:
    """Passes the report of each followed job to ``done``, once, in the thread of the follower.

    A job whose lease ran out is offered again. If only the machine of its worker can tell whether
    it is still at work, a worker there must find it, which looks for such jobs itself. Otherwise,
    or if none takes it for two leases, any worker verifies the attempt. The action is UNKNOWN if
    its job is lost again after :data:`LOSSES` such offers, or if no worker takes the job for two
    leases. A lease can run out only after the record was reachable for a whole lease: before,
    workers could not renew it.

    ``tell`` is called with a sentence when the queues change that no worker serves.
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
        #: The actions of which only the machine of their worker can tell if they are at work.
        self._at_workers: set[str] = set()
        #: By action, the time since which a lost job waits for a worker to find or verify it.
        self._lost: dict[str, float] = {}
        #: By action, how often its job was offered again because its worker was lost.
        self._losses: Counter[str] = Counter()
        self._next_search = clock() + lease_s
        self._lock = threading.Lock()
        self._wake, self._over = threading.Event(), threading.Event()
        self._within_reach_since = self._last_answer = clock()
        self._next_care = clock() + min(CARE_S, resend_s)
        #: The unserved queues that were reported last, and when the workers are read again.
        self._unserved: set[str] = set()
        self._next_queues = 0.0
        self._thread = threading.Thread(target=self._loop, name="job-follower", daemon=True)

    def start(self) -> None:
        """Start the thread that follows jobs."""
        self._thread.start()

    def close(self) -> None:
        """End the thread and wait for it; jobs that are not over yet get no report."""
        self._over.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()

    def follow(self, key: AttemptKey, offer: JobOffer, *, at_worker: bool = False) -> None:
        """Follow a job that is on record.

        ``at_worker`` is true if only the machine of its worker can tell if it is at work.
        """
        with self._lock:
            self._jobs[key.action] = (key, offer)
            if at_worker:
                self._at_workers.add(key.action)
        self._wake.set()

    def leave(self, action: str) -> None:
        """Stop following the job of an action, if it is followed."""
        with self._lock:
            self._jobs.pop(action, None)
            self._at_workers.discard(action)

    def wake(self) -> None:
        """Wake the thread, so that it reads at once which jobs are over."""
        self._wake.set()

    def pause(self, seconds: float) -> None:
        """Block for some seconds, or until :meth:`close` is called."""
        self._over.wait(seconds)

    def look(self) -> bool:
        """Report the followed jobs that are over; return whether any was reported.

        A lost job that is offered again is not reported. When it is time, leases that ran out are
        fenced, and jobs that no worker took are sent again. Raises StoreError, DamagedRecord.
        """
        found = False
        jobs, damaged = sound_part(lambda: self._store.jobs_of(self._plan, OVER))
        for job in jobs:
            if offer := self._offer_of(job.key):
                found = self._take_in(job, offer) or found
        for row in damaged:
            found = self._give_up(row) or found
        self._answered()
        if self._clock() >= self._next_care:
            self._fence_and_resend()
            self._next_care = self._clock() + min(CARE_S, self._resend_s)
        return found

    def _offer_of(self, key: AttemptKey) -> JobOffer | None:
        """Return the offer of a job; None if it is not followed."""
        with self._lock:
            followed, offer = self._jobs.get(key.action, (None, None))
        return offer if followed == key else None

    def _give_up(self, row: DamagedRow) -> bool:
        """Report the attempt of a damaged job as UNKNOWN; return False if it is not followed."""
        key = self._key_of(row)
        if offer := self._offer_of(key):
            self._in_doubt(key, offer, str(row), row.values.get("worker"))
        return offer is not None

    def _key_of(self, row: DamagedRow) -> AttemptKey:
        """Return the key of a damaged job; one that no job has if the key itself is damaged."""
        return AttemptKey(self._plan, row.values.get("action", ""), row.values.get("attempt", 0))

    def _answered(self) -> None:
        """Store the time of an answer of the record; a long gap since the last means an outage."""
        now = self._clock()
        # A quarter of a very short lease is shorter than the pause between two looks.
        if now - self._last_answer > max(self._lease_s / 4, 2 * LONGEST_S):
            self._within_reach_since = now
        self._last_answer = now

    def _take_in(self, job: WorkerJob, offer: JobOffer) -> bool:
        """Report a job that is over; return False if it was lost and is offered again instead."""
        if job.state is WorkerJobState.LOST:
            return self._lost_job(job, offer)
        if job.state is WorkerJobState.ENDED:
            self._report_result(job, offer)
        elif job.task is not JobTask.ACT:
            self._in_doubt(job.key, offer, "no worker found out what became of it", job.worker)
        elif job.stop is StopReason.TIMEOUT:
            text = f"timed out: no worker took it from the queue {job.queue}"
            self._end(job.key, offer, ActionState.FAILED, text)
        else:
            self._end(job.key, offer, ActionState.CANCELLED, "aborted before it began")
        return True

    def _report_result(self, job: WorkerJob, offer: JobOffer) -> None:
        try:
            report = report_of(job.key.action, offer, job.result or {})
        except ValueError as reason:
            text = f"what worker {job.worker} wrote at its end is no result: {reason}"
            self._end(job.key, offer, ActionState.UNKNOWN, text)
        else:
            self._report(report)

    def _lost_job(self, job: WorkerJob, offer: JobOffer) -> bool:
        action, text = job.key.action, f"its worker {job.worker} was not heard of for its lease"
        if self._losses[action] >= LOSSES:
            doubt = f"{text}, while it found out what became of the attempt"
            self._in_doubt(job.key, offer, doubt, job.worker)
            return True
        LOG.warning("Action %s: %s", action, text, extra={"action": action})
        is_here = action in self._at_workers and job.task is not JobTask.VERIFY
        if self._store.verify_job(job.key, JobTask.FIND if is_here else JobTask.VERIFY):
            self._losses[action] += 1
            self._lost[action] = self._clock()
            if not is_here:
                self._delivery.send(job.queue, job.key)
        return False

    def _in_doubt(self, key: AttemptKey, offer: JobOffer, message: str, worker: str | None) -> None:
        """Report an attempt as UNKNOWN that may still run at ``worker``; its tokens stay held."""
        self._end(key, offer, ActionState.UNKNOWN, message, left_in=process_of(worker))

    def _end(
        self,
        key: AttemptKey,
        offer: JobOffer,
        state: ActionState,
        message: str,
        *,
        left_in: str | None = None,
    ) -> None:
        """Report an attempt that has no result."""
        self._report(
            Report(
                uuid=key.action,
                old=ActionState.ONGOING,
                state=state,
                outcome=Outcome.ERROR if state is ActionState.FAILED else None,
                state_reason=StateReason.ABORTED if state is ActionState.CANCELLED else None,
                message=message,
                job=offer,
                given_up=left_in is not None,
                left_in=left_in,
            )
        )

    def _report(self, report: Report) -> None:
        self.leave(report.uuid)
        self._lost.pop(report.uuid, None)
        self._losses.pop(report.uuid, None)
        self._done(report)

    def _fence_and_resend(self) -> None:
        """Fence leases that ran out, and send jobs again that no worker took.

        Also report the followed jobs that no worker can take, and the queues that none serves.
        """
        if self._clock() - self._within_reach_since >= self._lease_s:
            self._store.fence_jobs(self._plan)
        # First, because a damaged job keeps the others from being read until it is removed.
        if self._clock() >= self._next_search:
            self._next_search = self._clock() + self._lease_s
            self._report_lost_rows()
        unsent = self._store.unsent_jobs(self._plan, self._resend_s)
        for job in unsent:
            if job.task is not JobTask.ACT and self._waited_s(job) > WAITS_LEASES * self._lease_s:
                self._waited_long(job)
            elif job.task is not JobTask.FIND:
                self._delivery.send(job.queue, job.key)
        # Last, because it reads the rows that workers write, and may raise an error for them.
        self._tell_unserved({job.queue for job in unsent})

    def _waited_long(self, job: WorkerJob) -> None:
        """Offer a job that was to be found to any worker; give up one that was to be verified."""
        if job.task is JobTask.VERIFY:
            self._store.stop_jobs([job.key], StopReason.ABORT)
        elif self._store.verify_job(job.key):
            self._lost[job.key.action] = self._clock()
            self._delivery.send(job.queue, job.key)

    def _report_lost_rows(self) -> None:
        """Report followed jobs as UNKNOWN that are not on record, or that no worker can take."""
        with self._lock:
            followed = [key for key, _ in self._jobs.values()]
        jobs, damaged = sound_part(lambda: self._store.jobs_of(self._plan))
        known = {*(job.key for job in jobs), *map(self._key_of, damaged)}
        for key in followed:
            if key not in known and (offer := self._offer_of(key)):
                self._in_doubt(key, offer, "its job is not on record any more", None)
        for row in damaged:
            if row.values.get("state") == WorkerJobState.TODO:
                self._give_up(row)

    def _tell_unserved(self, waiting: set[str]) -> None:
        """Log a change of the set of unserved queues with waiting jobs, and pass it to ``tell``."""
        now = self._clock()
        # After an outage of the record, workers need time to report themselves again.
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
        """Return for how many seconds no worker has taken a job that is to be found or verified."""
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
