# SPDX-License-Identifier: Apache-2.0
"""Polls the record for the ends of the jobs of one run, and for leases that have run out."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

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
    unserved,
)
from applier.workers.payloads import process_of, report_of
from planner.plan.states import ActionState, Outcome, StateReason

if TYPE_CHECKING:
    from applier.storage.sql_store import SqlStore


class JobDelivery(Protocol):
    """Sends messages to workers about jobs in the record; a message may be lost, or arrive twice.

    No method raises an error of the broker. Only :meth:`close` waits for it, for a limited time.
    """

    def send(self, queue: str, key: AttemptKey) -> None:
        """Send a message about a job to one of the workers that serve a queue."""

    def look(self, keys: Sequence[AttemptKey]) -> None:
        """Make the workers that hold these jobs read from the record whether they are to stop."""

    def close(self) -> None:
        """Close the connection to the broker, after what was sent."""


LOG = logging.getLogger(__name__)

#: The shortest and the longest pause between two looks for ended jobs, in seconds. It grows while
#: no job ends.
SHORTEST_S, LONGEST_S = 0.005, 0.25
#: Seconds between two looks for leases that ran out, and for jobs that no worker took.
CARE_S = 0.5
#: After so many leases in which no worker has taken it, a job that is to be found is offered to be
#: verified, and a job that is to be verified is given up.
WAITS_LEASES = 2
#: How many jobs are stopped at most in one transaction per reason, and one message.
STOPS_AT_ONCE = 100
#: How often a job whose worker was lost is offered again, to be found or verified. At the next
#: loss, its action is UNKNOWN.
LOSSES = 3


def offer_of(job: WorkerJob) -> JobOffer:
    """Return the offer of a job that is on record, with an empty payload."""
    return JobOffer(job.key.attempt, job.queue, job.action_type, {})


@dataclass(slots=True)
class _Followed:
    """A job that is followed.

    ``is_at_worker`` is true if only the machine of its worker can tell if it is at work. ``losses``
    is how often it was offered again because its worker was lost, ``lost_at`` the time since which
    it waits for a worker to find or verify it.
    """

    key: AttemptKey
    offer: JobOffer
    is_at_worker: bool
    losses: int = 0
    lost_at: float | None = None

    def ending(self, state: ActionState, message: str) -> Report:
        """Return the report of an attempt that has no result."""
        return Report(
            uuid=self.key.action,
            old=ActionState.ONGOING,
            state=state,
            message=message,
            job=self.offer,
        )

    def in_doubt(self, message: str, worker: str | None) -> Report:
        """Return the report of an attempt that may still run at a worker, and holds its tokens."""
        report = self.ending(ActionState.UNKNOWN, message)
        return report._replace(given_up=True, left_in=process_of(worker))


class JobFollower:
    """Passes the report of each followed job to ``done``, once, in the thread of the follower.

    ==========================  ================================================================
    The job is on record as     Then
    ==========================  ================================================================
    ended                       its result is reported; UNKNOWN if that is none
    lost                        it is offered again: to be found, if only the machine of its
                                worker can tell whether it is at work, whose workers look for such
                                jobs themselves; else to be verified by any worker. After
                                :data:`LOSSES` such offers it is UNKNOWN
    cancelled, to be run        FAILED after a time-out, else CANCELLED: it never began
    cancelled, to be verified   UNKNOWN: no worker found out what became of it
    todo, not sent for long     it is sent again, unless it is to be found
    todo, to be found           after two leases it is to be verified
    todo, to be verified        after two leases it is cancelled
    damaged, and over or todo   UNKNOWN
    gone                        UNKNOWN
    ==========================  ================================================================

    A lease can run out only after the record was reachable for a whole lease: before, workers could
    not renew it. ``tell`` is called with a sentence when the queues change that no worker serves.
    """

    def __init__(
        self,
        plan: str,
        store: SqlStore,
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
        #: By action.
        self._jobs: dict[str, _Followed] = {}
        self._stops: queue.SimpleQueue[tuple[AttemptKey, StopReason]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._wake, self._over = threading.Event(), threading.Event()
        self._within_reach_since = self._last_answer = clock()
        self._next_search = clock() + lease_s
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
            self._jobs[key.action] = _Followed(key, offer, at_worker)
        self._wake.set()

    def leave(self, action: str) -> None:
        """Stop following the job of an action, if it is followed."""
        with self._lock:
            self._jobs.pop(action, None)

    def stop(self, key: AttemptKey, why: StopReason) -> None:
        """Queue the stop of a job; the thread records it, and makes its worker read that."""
        self._stops.put((key, why))
        self._wake.set()

    def look(self) -> bool:
        """Report the followed jobs that are over, and record the stops that wait.

        Returns whether any was reported; a lost job that is offered again is not. When it is time,
        leases that ran out are fenced, and jobs that no worker took are sent again. Raises
        StoreError, DamagedRecord.
        """
        jobs, damaged = sound_part(lambda: self._store.jobs_of(self._plan, OVER))
        found = False
        for job in jobs:
            if one := self._followed(job.key):
                found = self._report(self._end_of(job, one)) or found
        found = self._give_up(damaged) or found
        self._record_stops()
        now = self._clock()
        # A long gap since the last answer of the record means an outage. A quarter of a very short
        # lease is shorter than the pause between two looks.
        if now - self._last_answer > max(self._lease_s / 4, 2 * LONGEST_S):
            self._within_reach_since = now
        self._last_answer = now
        if now >= self._next_care:
            self._care()
            self._next_care = self._clock() + min(CARE_S, self._resend_s)
        return found

    def _record_stops(self) -> None:
        while number := min(self._stops.qsize(), STOPS_AT_ONCE):
            asked = [self._stops.get() for _ in range(number)]
            try:
                for why in {why for _, why in asked}:
                    self._store.stop_jobs([key for key, of in asked if of is why], why)
            except BaseException:
                for one in asked:
                    self._stops.put(one)
                raise
            self._delivery.look([key for key, _ in asked])

    def _followed(self, key: AttemptKey) -> _Followed | None:
        with self._lock:
            one = self._jobs.get(key.action)
        return one if one is not None and one.key == key else None

    def _report(self, report: Report | None) -> bool:
        """Report the end of a job that is followed; return False for None."""
        if report is not None:
            self.leave(report.uuid)
            self._done(report)
        return report is not None

    def _end_of(self, job: WorkerJob, one: _Followed) -> Report | None:
        """Return the report of a job that is over; None if it was lost and is offered again."""
        match job.state, job.task, job.stop:
            case WorkerJobState.ENDED, _, _:
                try:
                    return report_of(job.key.action, one.offer, job.result or {})
                except ValueError as reason:
                    text = f"what worker {job.worker} wrote at its end is no result: {reason}"
                    return one.ending(ActionState.UNKNOWN, text)
            case WorkerJobState.LOST, _, _ if one.losses < LOSSES:
                self._offer_again(job, one)
                return None
            case WorkerJobState.LOST, _, _:
                doubt = f"{_lost(job)}, while it found out what became of the attempt"
                return one.in_doubt(doubt, job.worker)
            case _, JobTask.ACT, StopReason.TIMEOUT:
                text = f"timed out: no worker took it from the queue {job.queue}"
                return one.ending(ActionState.FAILED, text)._replace(outcome=Outcome.ERROR)
            case _, JobTask.ACT, _:
                report = one.ending(ActionState.CANCELLED, "aborted before it began")
                return report._replace(state_reason=StateReason.ABORTED)
        return one.in_doubt("no worker found out what became of it", job.worker)

    def _offer_again(self, job: WorkerJob, one: _Followed) -> None:
        """Offer a lost job to be found on the machine of its worker, else to be verified."""
        action = job.key.action
        LOG.warning("Action %s: %s", action, _lost(job), extra={"action": action})
        is_there = one.is_at_worker and job.task is not JobTask.VERIFY
        if self._store.verify_job(job.key, JobTask.FIND if is_there else JobTask.VERIFY):
            one.losses += 1
            one.lost_at = self._clock()
            if not is_there:
                self._delivery.send(job.queue, job.key)

    def _give_up(self, rows: Sequence[DamagedRow]) -> bool:
        """Report the attempts of damaged jobs as UNKNOWN; return whether any was followed."""
        followed = [(row, one) for row in rows if (one := self._followed(self._key_of(row)))]
        for row, one in followed:
            self._report(one.in_doubt(str(row), row.values.get("worker")))
        return bool(followed)

    def _key_of(self, row: DamagedRow) -> AttemptKey:
        """Return the key of a damaged job; one that no job has if the key itself is damaged."""
        return AttemptKey(self._plan, row.values.get("action", ""), row.values.get("attempt", 0))

    def _care(self) -> None:
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
            self._send_again(job)
        # Last, because it reads the rows that workers write, and may raise an error for them.
        self._tell_unserved({job.queue for job in unsent})

    def _send_again(self, job: WorkerJob) -> None:
        """Send a job that no worker took; move on if it was to be found or verified for long."""
        one, now, is_late = self._followed(job.key), self._clock(), False
        if one is not None and job.task is not JobTask.ACT:
            one.lost_at = now if one.lost_at is None else one.lost_at
            is_late = now - one.lost_at > WAITS_LEASES * self._lease_s
        if is_late and job.task is JobTask.VERIFY:
            self._store.stop_jobs([job.key], StopReason.ABORT)
        elif is_late and one is not None and self._store.verify_job(job.key):
            one.lost_at = now
            self._delivery.send(job.queue, job.key)
        elif job.task is not JobTask.FIND:
            self._delivery.send(job.queue, job.key)

    def _report_lost_rows(self) -> None:
        """Report followed jobs as UNKNOWN that are not on record, or that no worker can take."""
        with self._lock:
            followed = list(self._jobs.values())
        jobs, damaged = sound_part(lambda: self._store.jobs_of(self._plan))
        known = {*(job.key for job in jobs), *map(self._key_of, damaged)}
        for one in followed:
            if one.key not in known and self._followed(one.key):
                self._report(one.in_doubt("its job is not on record any more", None))
        self._give_up([row for row in damaged if row.values.get("state") == WorkerJobState.TODO])

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

    def _loop(self) -> None:
        pause_s, is_away = SHORTEST_S, False
        while not self._over.is_set():
            if not self._jobs and self._stops.empty():
                self._wake.wait()
            if self._wake.is_set():
                self._wake.clear()
                pause_s = SHORTEST_S
            try:
                pause_s = SHORTEST_S if self.look() else min(1.5 * pause_s, LONGEST_S)
                is_away = False
            except Exception as reason:
                # Without this thread the plan would never end.
                if not is_away:
                    is_known = isinstance(reason, StoreError | DamagedRecord)
                    text = "Plan %s: its jobs cannot be followed: %s"
                    LOG.warning(text, self._plan, reason, exc_info=not is_known)
                is_away, pause_s = True, LONGEST_S
            self._wake.wait(pause_s)
        with suppress(StoreError, DamagedRecord):
            self._record_stops()


def _lost(job: WorkerJob) -> str:
    return f"its worker {job.worker} was not heard of for its lease"
