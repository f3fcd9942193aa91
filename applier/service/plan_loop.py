# SPDX-License-Identifier: Apache-2.0
"""The main loop of the service: takes plans from the store and runs them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from applier import log_fields
from applier.backoff import delays_s
from applier.contracts import Report
from applier.errors import (
    ApplierError,
    DamagedRecord,
    GuardRefusal,
    NoThread,
    OtherCloud,
    PlanConflict,
    PlanNotFound,
    StoreError,
)
from applier.run import liveness, resume
from applier.run.runner import Runner
from applier.store import PlanSummary, Service
from applier.wording import planned_and_taken
from planner.errors import InvalidTransition, PlannerError
from planner.plan.states import ENDED_PLAN, PlanState

if TYPE_CHECKING:
    from applier.storage.sql_store import SqlStore


LOG = logging.getLogger(__name__)

#: The most seconds between two looks for plans.
POLL_S = 1.0
#: The maximum of the seconds between two attempts to reach the store; the delays double up to it.
LONGEST_DELAY_S = 30.0


class PlanLoop:
    """Runs PENDING plans, oldest first, up to ``workers`` at once; takes over abandoned plans.

    ``service`` is the entry of this process in the list of services. ``make_runner`` makes the
    runner of one plan. ``failed`` is called with the uuid of each plan that ended FAILED.
    :meth:`run` ends after ``ending`` was set, which any thread may do.
    """

    def __init__(
        self,
        store: SqlStore,
        make_runner: Callable[[], Runner],
        service: Service,
        *,
        ending: threading.Event,
        workers: int = 1,
        heartbeat_interval_s: float = 5.0,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        failed: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._store, self._make_runner, self._service = store, make_runner, service
        self._workers, self._clock, self._failed = workers, clock, failed
        self._interval_s = heartbeat_interval_s
        self._poll_s = min(POLL_S, heartbeat_interval_s)
        self._running: dict[str, Runner] = {}
        #: Plans that cannot run here, and those that are left alone, so that each is logged once.
        self._refused: set[str] = set()
        self._left_alone: set[str] = set()
        #: The monotonic time from which each PENDING plan may be tried. A plan that a guard refused
        #: gets a later one, so that plans that wait for their guards keep no others from running,
        #: and so does one that ended with an unexpected error.
        self._due: dict[str, float] = {}
        #: Plans that a guard refused, and why.
        self._guarded: dict[str, str] = {}
        self._silence = liveness.SilenceWatch()
        self._next_report = 0.0
        #: The delays between attempts while the store cannot be reached, else None.
        self._outage: Iterator[float] | None = None
        self._ending = ending
        #: Set when a worker has become free.
        self._wake = threading.Event()

    def run(self) -> None:
        """Run plans until ``ending`` is set; then await running actions and hand plans back.

        Raises RuntimeError, and runs nothing, if the system refuses a thread.
        """
        pool = _with_threads(self._workers)
        try:
            next_look = time.monotonic()
            while not self._ending.is_set():
                if self._wake.is_set() or time.monotonic() >= next_look:
                    self._wake.clear()
                    next_look = time.monotonic() + self._poll(pool)
                # The wait is short, so that a stop of the service is noticed.
                self._wake.wait(min(self._poll_s, max(0.0, next_look - time.monotonic())))
        finally:
            for runner in list(self._running.values()):
                runner.hand_back(f"the applier on {self._service.host}", "it ends")
            LOG.info(
                "%d plans are handed back once their running actions have ended", len(self._running)
            )
            pool.shutdown(wait=True)
        try:
            self._store.remove_service(self._service.uuid)
        except (StoreError, DamagedRecord) as reason:
            LOG.warning("The service could not be deregistered: %s", reason)

    def _poll(self, pool: ThreadPoolExecutor) -> float:
        """Write heartbeats, take over and start plans; return the seconds until the next call."""
        try:
            if time.monotonic() >= self._next_report:
                self._report()
                self._take_over()
                self._next_report = time.monotonic() + self._interval_s
            self._take(pool)
        except (StoreError, DamagedRecord) as reason:
            return self._away(reason)
        if self._outage is not None:
            LOG.info("The record can be reached again")
            self._outage = None
        return self._poll_s

    def _away(self, reason: ApplierError) -> float:
        """Log an outage once; return the seconds until the next attempt."""
        if self._outage is None:
            LOG.warning("The record cannot be reached; retrying: %s", reason)
            self._outage = delays_s(self._poll_s, LONGEST_DELAY_S)
        self._silence.reset()
        return next(self._outage)

    def _report(self) -> None:
        self._service = self._service._replace(heartbeat_at=self._clock(), plans=len(self._running))
        self._store.report_service(self._service)

    def _take(self, pool: ThreadPoolExecutor) -> None:
        """Start PENDING plans until all workers are busy."""
        if len(self._running) >= self._workers:
            return
        waiting = self._store.pending_plans()
        self._refused.intersection_update(waiting)
        for uuid in set(self._guarded).difference(waiting):
            del self._guarded[uuid]
        for uuid in set(self._due).difference(waiting):
            del self._due[uuid]
        now = time.monotonic()
        for uuid in waiting:
            self._due.setdefault(uuid, now)
        for uuid in sorted(waiting, key=self._due.__getitem__):
            if len(self._running) >= self._workers or self._ending.is_set():
                return
            if uuid not in self._running and not self._is_refused(uuid):
                runner = self._running[uuid] = self._make_runner()
                run = pool.submit(_run, runner, uuid, self._failed)
                run.add_done_callback(partial(self._ended, uuid))

    def _is_refused(self, uuid: str) -> bool:
        """Return whether a plan cannot run here, or may be tried only later."""
        return uuid in self._refused or time.monotonic() < self._due[uuid]

    def _note_guard(self, uuid: str, why: str) -> None:
        """Log once why a guard refuses a plan; it waits, for example for its approval."""
        before = self._guarded.get(uuid)
        self._guarded[uuid], self._due[uuid] = why, time.monotonic() + self._interval_s
        if why != before:
            LOG.info("Plan %s waits: %s", uuid, why)

    def _ended(self, uuid: str, run: Future[str]) -> None:
        try:
            with log_fields.about(plan=uuid):
                self._log_end(uuid, run)
        finally:
            del self._running[uuid]
            self._wake.set()

    def _log_end(self, uuid: str, run: Future[str]) -> None:
        error = run.exception()
        if error is None:
            LOG.info("Plan %s is %s", uuid, run.result())
        elif isinstance(error, PlanConflict | InvalidTransition):
            LOG.info("Plan %s is not continued: %s", uuid, error)
        elif isinstance(error, StoreError):
            LOG.error(
                "Plan %s could not be recorded, and will be taken over later: %s", uuid, error
            )
        elif isinstance(error, GuardRefusal):
            self._note_guard(uuid, str(error))
        elif isinstance(error, NoThread):
            self._due[uuid] = time.monotonic() + self._interval_s
            LOG.warning("Plan %s waits: %s", uuid, error)
        elif isinstance(error, DamagedRecord):
            # A server may lack a table for a moment.
            self._due[uuid] = time.monotonic() + self._interval_s
            self._leave_alone(uuid, error)
        elif isinstance(error, OtherCloud):
            self._refused.add(uuid)
            LOG.info("Plan %s is left to an applier of its cloud: %s", uuid, error)
        elif isinstance(error, ApplierError | PlannerError):
            self._refused.add(uuid)
            LOG.error("Plan %s cannot run here: %s", uuid, error)
        else:
            self._due[uuid] = time.monotonic() + self._interval_s
            LOG.error("Plan %s ended with an unexpected error", uuid, exc_info=error)

    def _take_over(self) -> None:
        """Take over the plans of dead appliers."""
        self._silence.begin_round()
        for state in (PlanState.ONGOING, PlanState.CANCELLING):
            for summary in self._store.list_plans(state=state):
                with log_fields.about(plan=summary.uuid):
                    self._look_at(summary)

    def _look_at(self, plan: PlanSummary) -> None:
        """Take over one plan if its applier is dead."""
        if plan.damage is not None:
            self._leave_alone(plan.uuid, plan.damage)
            return
        try:
            self._take_over_if_dead(plan)
        except (PlanConflict, InvalidTransition, PlanNotFound) as reason:
            # Another service, an operator or the claimant itself was faster.
            LOG.info("Plan %s is not taken over: %s", plan.uuid, reason)
        except StoreError:
            raise
        except DamagedRecord as reason:
            self._leave_alone(plan.uuid, reason)
        except Exception:
            if plan.uuid not in self._left_alone:
                self._left_alone.add(plan.uuid)
                LOG.exception("Plan %s is not taken over: unexpected error", plan.uuid)

    def _end_commands(self, uuid: str) -> Sequence[Report]:
        """End the commands of a plan that a dead applier has left; return reports of its actions.

        If they cannot be ended here, that is logged, and the result is empty. Raises StoreError; it
        is tried again when the store can be reached.
        """
        try:
            return self._make_runner().end_commands(uuid)
        except StoreError:
            raise
        except (ApplierError, PlannerError) as reason:
            LOG.warning("Commands of plan %s may go on: %s", uuid, reason)
            return ()

    def _leave_alone(self, uuid: str, why: object) -> None:
        """Log once that a plan neither runs nor is taken over, because rows of it are damaged."""
        if uuid not in self._left_alone:
            self._left_alone.add(uuid)
            LOG.error("Plan %s is left alone: %s; see: actionplan db check", uuid, why)

    def _take_over_if_dead(self, plan: PlanSummary) -> None:
        """Take over a plan if its applier is dead; see :func:`applier.run.resume.take_over`."""
        claimant = self._store.claimant(plan.uuid)
        if claimant is None or plan.uuid in self._running:
            return
        if self._silence.is_dead(plan.uuid, claimant):
            who = f"the applier on {self._service.host}"
            state = resume.take_over(
                self._store,
                plan.uuid,
                claimant,
                now=self._clock(),
                who=who,
                end_commands=self._end_commands,
            )
            LOG.warning("Plan %s: %s, it is %s", plan.uuid, liveness.gone(claimant), state)


def _with_threads(number: int) -> ThreadPoolExecutor:
    """Return a pool whose threads all run, so that none is refused when a plan is to begin."""
    pool, all_run = ThreadPoolExecutor(max_workers=number), threading.Barrier(number)
    try:
        for _ in range(number):
            pool.submit(all_run.wait)
    except RuntimeError:
        all_run.abort()
        pool.shutdown(cancel_futures=True)
        raise
    return pool


def _run(runner: Runner, uuid: str, failed: Callable[[str], None]) -> str:
    """Run a plan; return its state as text, with planned and real duration if it has ended.

    What this thread logs meanwhile has the uuid of the plan.
    """
    began = time.monotonic()
    with log_fields.about(plan=uuid):
        state = runner.run(uuid)
        if state is PlanState.FAILED:
            failed(uuid)
        planned_s = runner.planned_s() if state in ENDED_PLAN else None
        if planned_s is None:
            return str(state)
        return f"{state}: {planned_and_taken(planned_s, time.monotonic() - began)}"
