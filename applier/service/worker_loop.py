"""Takes plans from the record and runs them, until it is told to end."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from futurist import ThreadPoolExecutor

from applier.contracts import Claimant
from applier.errors import ApplierError, PlanConflict, StoreError
from applier.run import resume
from applier.run.runner import Runner
from applier.store import Service, Store
from planner.errors import PlannerError
from planner.states import PlanState

LOG = logging.getLogger(__name__)

#: How many heartbeats may be missing before somebody is taken for gone.
MISSED_HEARTBEATS = 6
#: The most seconds between two tries while the record is away; each delay is twice the one before.
LONGEST_DELAY_S = 30.0


class WorkerLoop:
    """Runs PENDING plans, oldest first, up to ``workers`` at once, and takes over what others left.

    ``service`` is who this is, as the record lists it; ``make_runner`` makes a runner for one plan.
    :meth:`run` ends once ``ending`` is set, which any thread may do.
    """

    def __init__(
        self,
        store: Store,
        make_runner: Callable[[], Runner],
        service: Service,
        *,
        ending: threading.Event,
        workers: int = 1,
        poll_s: float = 1.0,
        heartbeat_interval_s: float = 5.0,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store, self._make_runner, self._service = store, make_runner, service
        self._workers, self._poll_s, self._clock = workers, poll_s, clock
        self._interval_s = heartbeat_interval_s
        self._patience_s = MISSED_HEARTBEATS * heartbeat_interval_s
        self._running: dict[str, Runner] = {}
        #: Plans that cannot run here, so that each is told once.
        self._refused: set[str] = set()
        #: Since when each claim has been silent, by this process's own clock.
        self._silent: dict[tuple[str, Claimant], float] = {}
        self._next_report = 0.0
        self._away_delay_s = 0.0
        self._ending = ending
        #: Set when there is room for another plan.
        self._wake = threading.Event()

    def run(self) -> None:
        """Take plans and run them until told to end: what runs ends, and plans are handed back."""
        pool = ThreadPoolExecutor(max_workers=self._workers)
        try:
            next_look = time.monotonic()
            while not self._ending.is_set():
                if self._wake.is_set() or time.monotonic() >= next_look:
                    self._wake.clear()
                    next_look = time.monotonic() + self._turn(pool)
                # Never longer, so that an end that is asked for is heard.
                self._wake.wait(min(self._poll_s, max(0.0, next_look - time.monotonic())))
        finally:
            for runner in list(self._running.values()):
                runner.hand_back(f"the applier on {self._service.host}", "it ends")
            LOG.info("%d plans are handed back once what runs has ended", len(self._running))
            pool.shutdown(wait=True)
        try:
            self._store.remove_service(self._service.uuid)
        except StoreError as reason:
            LOG.warning("That this service ended is not on record: %s", reason)

    def _turn(self, pool: ThreadPoolExecutor) -> float:
        """Look once at what there is to do; gives the seconds until the next look."""
        try:
            if time.monotonic() >= self._next_report:
                self._report()
                self._take_over()
                self._next_report = time.monotonic() + self._interval_s
            self._take(pool)
        except StoreError as reason:
            return self._away(reason)
        if self._away_delay_s:
            LOG.info("The record is there again")
            self._away_delay_s = 0.0
        return min(self._poll_s, self._interval_s)

    def _away(self, reason: StoreError) -> float:
        """Tell of an outage once; gives the seconds until the next try."""
        if not self._away_delay_s:
            LOG.warning("The record is away, and asked again until it is there: %s", reason)
        # While it is away nobody can write a heartbeat.
        self._silent.clear()
        self._away_delay_s = min(2 * self._away_delay_s or self._poll_s, LONGEST_DELAY_S)
        return self._away_delay_s

    def _report(self) -> None:
        self._service = replace(self._service, heartbeat_at=self._clock(), plans=len(self._running))
        self._store.report_service(self._service)

    def _take(self, pool: ThreadPoolExecutor) -> None:
        """Start as many of the waiting plans as there is room for."""
        if len(self._running) >= self._workers:
            return
        waiting = self._store.pending_plans()
        self._refused.intersection_update(waiting)
        for uuid in waiting:
            if len(self._running) >= self._workers or self._ending.is_set():
                return
            if uuid not in self._running and uuid not in self._refused:
                runner = self._running[uuid] = self._make_runner()
                pool.submit(runner.run, uuid).add_done_callback(partial(self._ended, uuid))

    def _ended(self, uuid: str, run: Future[PlanState]) -> None:
        error = run.exception()
        if error is None:
            LOG.info("Plan %s is %s", uuid, run.result())
        elif isinstance(error, PlanConflict):
            LOG.info("Plan %s is left alone: %s", uuid, error)
        elif isinstance(error, StoreError):
            LOG.error("Plan %s stands still, and is taken up again: %s", uuid, error)
        elif isinstance(error, ApplierError | PlannerError):
            self._refused.add(uuid)
            LOG.error("Plan %s cannot run here: %s", uuid, error)
        else:
            LOG.error("Plan %s broke", uuid, exc_info=error)
        del self._running[uuid]
        self._wake.set()

    def _take_over(self) -> None:
        """Make the plans PENDING again whose applier is gone."""
        silent, self._silent = self._silent, {}
        for state in (PlanState.ONGOING, PlanState.CANCELLING):
            for summary in self._store.list_plans(state=state):
                claimant = self._store.claimant(summary.uuid)
                if claimant is None or summary.uuid in self._running:
                    continue
                if self._is_gone(summary.uuid, claimant, silent):
                    self._settle(summary.uuid, claimant)

    def _is_gone(
        self, uuid: str, claimant: Claimant, silent: dict[tuple[str, Claimant], float]
    ) -> bool:
        """Say whether an applier is gone.

        Of one that may be on another host, whose clock may be any, the heartbeat must have stayed
        the same while it was watched here.
        """
        if resume.is_gone(claimant):
            return True
        since = silent.get((uuid, claimant), time.monotonic())
        self._silent[uuid, claimant] = since
        return time.monotonic() - since >= self._patience_s

    def _settle(self, uuid: str, claimant: Claimant) -> None:
        """Let a plan go on, or end, whose applier is gone."""
        gone, who = resume.gone(claimant), f"the applier on {self._service.host}"
        try:
            state = resume.take_over(self._store, uuid, claimant, now=self._clock(), who=who)
        except PlanConflict as reason:
            LOG.info("Plan %s is left alone: %s", uuid, reason)
        else:
            LOG.warning("Plan %s: %s, it is %s", uuid, gone, state)
