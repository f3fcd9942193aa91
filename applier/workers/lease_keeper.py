# SPDX-License-Identifier: Apache-2.0
"""Renews the leases of the jobs of a worker, and looks whether they are to stop."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from applier.errors import StoreError
from applier.store.worker_jobs import REPORT_S, AttemptKey, StopReason, Worker, WorkerJobStore
from applier.workers.job_runner import JobRunner

LOG = logging.getLogger(__name__)

#: The longest pause between two looks at the jobs that run, in seconds.
LOOK_S = 1.0
#: Leases are renewed this many times before they would run out.
RENEWALS = 3
#: The part of a lease after which jobs are stopped whose leases could not be renewed: before they
#: run out, so that none runs any more when somebody finds out what became of it.
STOPS_AT = 0.9


class LeaseKeeper:
    """Keeps the jobs of one worker; as a context manager, in a thread of its own.

    ``worker`` is what is told about the worker. ``drain`` is called once if the record says that
    it is to take no more jobs; :meth:`drains` is called when a signal says so.
    """

    def __init__(
        self,
        store: WorkerJobStore,
        runner: JobRunner,
        worker: Worker,
        *,
        lease_s: float,
        drain: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._runner, self._worker = store, runner, worker
        self._lease_s, self._drain, self._clock = lease_s, drain, clock
        self._interval_s = min(LOOK_S, lease_s / RENEWALS)
        self._renewed_at = self._reported_at = clock()
        self._is_draining, self._was_signalled, self._is_away = False, False, False
        self._wake, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._loop, name="lease-keeper", daemon=True)

    def __enter__(self) -> LeaseKeeper:
        self._store.report_worker(self._worker)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._wake.set()
        self._thread.join()
        try:
            self._store.remove_worker(self._worker.name)
        except StoreError as reason:
            LOG.warning("The worker could not be deregistered: %s", reason)

    def wake(self) -> None:
        """Look at once whether jobs are to stop."""
        self._wake.set()

    def wake_for(self, key: AttemptKey) -> None:
        """Look at once, if a job runs here."""
        if any(job.key == key for job in self._runner.held()):
            self._wake.set()

    def drains(self) -> None:
        """Record soon that the worker takes no more jobs; a signal handler may call it."""
        self._was_signalled = True

    def look(self) -> None:
        """Renew leases and report if it is time, and stop what is to stop."""
        held = {job.key: job for job in self._runner.held()}
        began = self._clock()
        try:
            if began - self._renewed_at >= self._lease_s / RENEWALS:
                self._store.renew_jobs(held.values(), self._lease_s)
                self._renewed_at = began
            is_news = self._was_signalled and not self._is_draining
            if is_news or began - self._reported_at >= REPORT_S:
                self._report(len(held), self._was_signalled)
                self._reported_at = began
            found = self._store.held_jobs(self._worker.name) if held else []
        except StoreError as reason:
            self._away(reason)
            return
        self._is_away = False
        known = {job.key: job for job in found}
        for key, job in held.items():
            own = known.get(key)
            if own is None or own.token != job.token:
                if self._runner.stop(key, StopReason.ABORT):
                    LOG.warning("Action %s is stopped: its job is not held any more", key.action)
            elif own.stop is not None:
                self._runner.stop(key, own.stop)

    def _report(self, running: int, was_signalled: bool) -> None:
        report = self._worker._replace(running=running, draining=was_signalled)
        drains = self._store.report_worker(report)
        if drains and not self._is_draining:
            self._is_draining = True
            LOG.info("The worker takes no more jobs, and ends when it has none: it has %d", running)
            if not was_signalled:
                self._drain()

    def _away(self, reason: StoreError) -> None:
        if not self._is_away:
            LOG.warning("Leases cannot be renewed; retrying: %s", reason)
        self._is_away = True
        if self._clock() - self._renewed_at > STOPS_AT * self._lease_s:
            for job in self._runner.held():
                self._runner.stop(job.key, StopReason.ABORT)

    def _loop(self) -> None:
        while not self._over.is_set():
            self._wake.wait(self._interval_s)
            self._wake.clear()
            if not self._over.is_set():
                self.look()
