# SPDX-License-Identifier: Apache-2.0
"""Renews the leases of the jobs of a worker, and stops jobs with a recorded stop reason."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from applier.errors import DamagedRecord, StoreError
from applier.run.liveness import may_be_at_work
from applier.store.worker_jobs import REPORT_S, AttemptKey, HeldJob, StopReason, Worker
from applier.workers.job_runner import LOST_AT, JobRunner
from applier.workers.payloads import process_of

if TYPE_CHECKING:
    from applier.storage.sql_store import SqlStore


LOG = logging.getLogger(__name__)

#: The longest pause between two looks at the jobs that run, in seconds.
LOOK_S = 1.0
#: Leases are renewed this many times before they would run out.
RENEWALS = 3


class LeaseKeeper:
    """Renews the leases of one worker, reports the worker, and stops jobs as the record states.

    As a context manager, it does so in two threads, and removes the worker from the record at the
    end. ``worker`` is the registration. ``drain`` is called once if the record tells the worker to
    drain, unless :meth:`request_drain` was called before. ``find`` is called with the key of each
    job whose worker was lost on this machine, at each renewal until one has taken it.
    """

    def __init__(
        self,
        store: SqlStore,
        runner: JobRunner,
        worker: Worker,
        *,
        lease_s: float,
        drain: Callable[[], None] = lambda: None,
        find: Callable[[AttemptKey], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._runner, self._worker = store, runner, worker
        self._lease_s, self._clock = lease_s, clock
        self._drain, self._find = drain, find
        self._interval_s = min(LOOK_S, lease_s / RENEWALS)
        self._renewed_at = self._reported_at = clock()
        self._is_draining, self._was_signalled = False, False
        self._is_away, self._is_known = False, False
        #: The tokens of held jobs that were not on record at the last look.
        self._missing: set[str] = set()
        self._wake, self._over = threading.Event(), threading.Event()
        self._threads = [
            threading.Thread(target=self._loop, name="lease-keeper", daemon=True),
            # A call of the record may block the first thread for longer than a lease.
            threading.Thread(target=self._watch, name="lease-watch", daemon=True),
        ]

    def __enter__(self) -> LeaseKeeper:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._wake.set()
        for thread in self._threads:
            thread.join()
        try:
            self._store.remove_worker(self._worker.name)
        except (StoreError, DamagedRecord) as reason:
            LOG.warning("The worker could not be deregistered: %s", reason)

    def wake_for(self, keys: Collection[AttemptKey]) -> None:
        """Read at once whether jobs are to stop, if one of these runs here."""
        if not {job.key for job in self._runner.held()}.isdisjoint(keys):
            self._wake.set()

    def request_drain(self) -> None:
        """Record at the next look that the worker takes no more jobs; safe in a signal handler."""
        self._was_signalled = True

    def look(self) -> None:
        """Renew the leases and report the worker when it is time; stop jobs as the record states.

        If the record cannot be read, log that once, and let the next look try again.
        """
        held = {job.token or "": job for job in self._runner.held()}
        began = self._clock()
        try:
            if not self._is_known or began - self._renewed_at >= self._lease_s / RENEWALS:
                self._store.renew_jobs(held.values(), self._lease_s)
                self._renewed_at = began
            is_news = not self._is_known or (self._was_signalled and not self._is_draining)
            if is_news or began - self._reported_at >= REPORT_S:
                self._report(len(held), self._was_signalled)
                self._reported_at, self._is_known = began, True
            if self._renewed_at == began:
                lost = self._store.jobs_to_find(self._worker.name, self._worker.queues)
                for key, lost_worker in lost.items():
                    # After some time, any worker verifies what may still be worked on.
                    if not may_be_at_work(process_of(lost_worker), key.action):
                        self._find(key)
            known = {job.key: job for job in self._known(held.values())}
        except (StoreError, DamagedRecord) as reason:
            if not self._is_away:
                LOG.warning("Leases cannot be renewed; retrying: %s", reason)
            self._is_away = True
            return
        self._is_away = False
        self._compare(held, known)

    def _known(self, held: Collection[HeldJob]) -> list[HeldJob]:
        """Return the jobs on record that this worker took last, or that are among ``held``."""
        if not held:
            return []
        found = self._store.held_jobs(self._worker.name)
        gone = {job.key for job in held} - {job.key for job in found}
        for plan in {key.plan for key in gone}:
            found += [
                HeldJob(job.key, None) for job in self._store.jobs_of(plan) if job.key in gone
            ]
        return found

    def _compare(self, held: Mapping[str, HeldJob], known: Mapping[AttemptKey, HeldJob]) -> None:
        """Stop held jobs that have a stop reason on record, or no record in two looks in a row.

        Give up those that this worker does not hold any more.
        """
        missing = set()
        for token, job in held.items():
            own = known.get(job.key)
            if own is None:
                missing.add(token)
                # A job that is lost may be missing in one look. One that is missing in the next
                # look, too, was removed: no worker will be sent to find its commands.
                if token in self._missing and self._runner.stop(job, StopReason.ABORT):
                    LOG.warning("Action %s is stopped: its job was removed", job.key.action)
            elif own.token != token:
                if self._runner.stop(job, None):
                    LOG.warning("Action %s is left: its job is not held any more", job.key.action)
            elif own.stop is not None:
                self._runner.stop(job, own.stop)
        self._missing = missing

    def look_at_time(self) -> None:
        """Give up all held jobs if leases were not renewed for the part LOST_AT of a lease."""
        if self._clock() - self._renewed_at > LOST_AT * self._lease_s:
            for job in self._runner.held():
                if self._runner.stop(job, None):
                    LOG.warning("Action %s is left: its lease is not renewed", job.key.action)

    def _report(self, running: int, was_signalled: bool) -> None:
        report = self._worker._replace(running=running, draining=was_signalled)
        drains = self._store.report_worker(report)
        if drains and not self._is_draining:
            self._is_draining = True
            LOG.info("The worker takes no more jobs, and ends when it has none: it has %d", running)
            if not was_signalled:
                self._drain()

    def _loop(self) -> None:
        while not self._over.is_set():
            self.look()
            self._wake.wait(self._interval_s)
            self._wake.clear()

    def _watch(self) -> None:
        while not self._over.wait(self._interval_s):
            self.look_at_time()
