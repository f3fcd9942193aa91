# SPDX-License-Identifier: Apache-2.0
"""Carries out jobs at a worker: takes them, runs or verifies them, and writes how they end."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

from applier import log_fields
from applier.backoff import delays_s
from applier.contracts import Claimant, Report
from applier.engines.attempts_in_progress import start_abort
from applier.engines.environment import ActionEnvironment
from applier.engines.tasks import ActionTask
from applier.errors import ActionFailed, ApplierError, DamagedRecord, StoreError
from applier.run.interrupted_actions import Finding, InterruptedActions
from applier.scheduling.interrupted import in_doubt
from applier.store.worker_jobs import AttemptKey, HeldJob, JobTask, StopReason, TakenJob, Worker
from applier.workers.payloads import action_of, process_of, require_able, result_of, task_of
from planner.errors import short
from planner.plan.states import ActionState, Outcome

if TYPE_CHECKING:
    from applier.machines.open_machines import AttemptMachines
    from applier.storage.sql_store import SqlStore


LOG = logging.getLogger(__name__)
Answer = TypeVar("Answer")

#: The shortest and the longest pause before a call of the record is repeated, in seconds.
SHORTEST_S, LONGEST_S = 0.05, 1.0
#: How many threads may use the record at once; each needs a database connection.
ASKING = 8
#: The part of a lease after which a worker that could not renew it gives its job up. It is less
#: than 1, so that no other worker takes the job before that.
LOST_AT = 0.9


def _seconds() -> float:
    """Return the seconds since the start of the machine, also those in which it was suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass(slots=True)
class _Held:
    """A job that this worker took.

    ``task`` is None before the action begins and after it has ended. ``why`` is the reason for
    which the job is to stop; None if it is not. ``is_lost`` is true if another worker may hold the
    job by now.
    """

    key: AttemptKey
    task: ActionTask | None = None
    why: StopReason | None = None
    is_lost: bool = False

    def tell(self, task: ActionTask) -> None:
        """Stop its task if that is asked for; the next worker finds the commands of a lost job."""
        if self.is_lost:
            task.let_go()
            task.stop.set()
        elif self.why is not None:
            task.stop_for(self.why)


class JobRunner:
    """Carries out jobs, each in the thread that calls :meth:`perform`, until they have ended.

    ``worker`` is the registration; ``environment`` has open machines, if it has any. The write of a
    result is repeated until the record answers. Meanwhile, a
    :class:`applier.workers.lease_keeper.LeaseKeeper` has to renew the leases.
    """

    def __init__(
        self,
        store: SqlStore,
        worker: Worker,
        environment: ActionEnvironment,
        *,
        lease_s: float,
        clock: Callable[[], float] = _seconds,
    ) -> None:
        self._store, self._own, self._environment = store, worker, environment
        self._lease_s, self._clock = lease_s, clock
        #: By token: a lost job may be taken here again while its action still stops.
        self._held: dict[str, _Held] = {}
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._asking = threading.BoundedSemaphore(ASKING)

    def end(self) -> None:
        """Stop repeating failed calls of the record: from now on, they raise their errors."""
        self._over.set()

    def held(self) -> list[HeldJob]:
        """List the jobs that this worker took and whose results are not on record yet."""
        with self._lock:
            return [HeldJob(held.key, token) for token, held in self._held.items()]

    def perform(self, key: AttemptKey) -> None:
        """Take a job and carry it out; return when the record has accepted or rejected its result.

        Return at once if the job cannot be taken, because another worker has it or it is over.
        Raises StoreError if the record cannot be reached and :meth:`end` was called.
        """
        token = str(uuid4())
        with log_fields.about(plan=key.plan, action=key.action):
            asked_at = self._clock()
            taken = self._take(key, token)
            if taken is None:
                LOG.debug("There is nothing to take of action %s", key.action)
                return
            with self._holding(key, token) as held:
                try:
                    left, report = self._carried_out(held, token, taken, asked_at)
                except StoreError:
                    raise
                except Exception as error:
                    LOG.exception("Action %s: the worker broke", key.action)
                    left, report = None, self._broken(held, taken, error)
                with self._lock:
                    held.task = None  # its lease is renewed, and no more
                kept = self._ended(held, token, report)
            if not kept:
                LOG.warning("The job of action %s was lost before its end: %s", key.action, report)
            elif left is not None and report.state is not ActionState.UNKNOWN:
                left.forget()

    def stop(self, job: HeldJob, why: StopReason | None) -> bool:
        """Stop a job that runs here; return whether it runs and was not stopped before.

        If its action has not begun, return False, and stop the action when it begins. If ``why`` is
        None, the job may be lost and is given up: its action is aborted, and its commands go on.
        """
        with self._lock:
            held = self._held.get(job.token or "")
            if held is None or (held.is_lost if why is None else held.why is not None):
                return False
            held.is_lost, held.why = held.is_lost or why is None, held.why or why
            if (task := held.task) is None:
                return False
            held.tell(task)
        with log_fields.about(plan=job.key.plan):
            start_abort(task)
        return True

    @contextmanager
    def _holding(self, key: AttemptKey, token: str) -> Iterator[_Held]:
        held = _Held(key)
        with self._lock:
            self._held[token] = held
        try:
            yield held
        finally:
            with self._lock:
                del self._held[token]

    def _take(self, key: AttemptKey, token: str) -> TakenJob | None:
        """Take a job, or renew the lease of one that is held with this token; else return None."""
        name, lease_s = self._own.name, self._lease_s
        return self._insist(
            lambda: self._store.take_job(key, worker=name, token=token, lease_s=lease_s)
        )

    def _ended(self, held: _Held, token: str, report: Report) -> bool:
        """Record the result of a job; return whether it was accepted.

        Of a job that was lost, only a success is recorded.
        """
        if held.is_lost and report.state is not ActionState.SUCCEEDED:
            return False  # it was given up, and that is no result
        own = process_of(self._own.name)
        result = result_of(report._replace(left_in=report.left_in or own))
        # It reads no values, so a later attempt may succeed, whatever the error.
        errors = (StoreError, DamagedRecord)
        return self._insist(lambda: self._store.end_job(held.key, token, result), errors)

    def _carried_out(
        self, held: _Held, token: str, taken: TakenJob, asked_at: float
    ) -> tuple[ActionTask | AttemptMachines | None, Report]:
        """Run or verify a job that was taken; return its report as the second value.

        The first value is the task or the machines whose ``forget`` is to be called once the report
        is on record; None if there are none. ``asked_at`` is when the job was asked for, by the
        clock of this object.
        """
        key, payload = held.key, taken.payload
        is_new = taken.task is JobTask.ACT
        environment = replace(self._environment, plan=key.plan)
        try:
            require_able(payload, environment, self._own.cloud, self._own.version)
        except ActionFailed as reason:
            return None, self._unable(key, taken, reason)
        continued_s = None
        if not is_new:
            found = self._verified(key, taken, environment)
            if found.report is not None:
                return found.not_begun, found.report
            LOG.info("Action %s goes on: its command is followed", key.action)
            continued_s = found.age_s
        task = task_of(key, payload, environment, continued_s)
        if is_new:
            if not task.permit():
                text = "not started: its permit cannot be written, see the log of the worker"
                return None, self._unable(key, taken, ActionFailed(text))
            if not self._is_still_held(key, token, asked_at):
                task.forget()
                held.is_lost = True
                return None, _report(key, ActionState.UNKNOWN, "its lease ran out before it began")
        with self._lock:
            held.task, held.why = task, held.why or taken.stop
            held.tell(task)
        return task, task.execute()

    def _is_still_held(self, key: AttemptKey, token: str, asked_at: float) -> bool:
        """Return whether this worker still holds a job that it asked for at ``asked_at``.

        The record is read only if most of a lease has passed since, as after a SIGSTOP. A job that
        is lost later does not begin either: its permit is written by now, and can be withdrawn.
        """
        if self._clock() - asked_at < LOST_AT * self._lease_s:
            return True
        return self._take(key, token) is not None

    def _unable(self, key: AttemptKey, taken: TakenJob, reason: ActionFailed) -> Report:
        """Return the report of a job that cannot be carried out here.

        It is FAILED for a job that was to be run, and UNKNOWN for one that was to be verified.
        """
        text = f"worker {self._own.name} cannot carry it out: {reason}"
        LOG.error("Action %s: %s", key.action, text)
        if taken.task is JobTask.ACT:
            return _report(key, ActionState.FAILED, text, Outcome.ERROR)
        doubt = in_doubt(taken.payload.get("name") or short(key.action))
        text = f"its worker {taken.lost_worker} was lost; {text}; {doubt}"
        lost = process_of(taken.lost_worker)
        return _report(key, ActionState.UNKNOWN, text)._replace(given_up=True, left_in=lost)

    def _broken(self, held: _Held, taken: TakenJob, error: Exception) -> Report:
        """Return the report of a job during which the code of this worker raised an error.

        It is as for one that cannot be carried out; but UNKNOWN if the action has begun.
        """
        text = f"it broke: {type(error).__name__}: {error}"
        if taken.task is not JobTask.ACT or held.task is None:
            return self._unable(held.key, taken, ActionFailed(text))
        doubt = in_doubt(taken.payload.get("name") or short(held.key.action))
        text = f"worker {self._own.name} carried it out when {text}; {doubt}"
        return _report(held.key, ActionState.UNKNOWN, text)._replace(given_up=True)

    def _verified(
        self, key: AttemptKey, taken: TakenJob, environment: ActionEnvironment
    ) -> Finding:
        """Look for the commands of the attempt of a lost worker, else verify it."""
        lost = taken.lost_worker or self._own.name
        left = InterruptedActions(
            environment=environment,
            before=_claimant(lost),
            host=self._own.host,
            permits_are_here=_origin(lost) == _origin(self._own.name),
        )
        return left.verify([action_of(key, taken.payload)])[0]

    def _insist(
        self,
        ask: Callable[[], Answer],
        errors: tuple[type[ApplierError], ...] = (StoreError,),
    ) -> Answer:
        """Call ``ask``, and repeat it with growing pauses while it raises one of ``errors``.

        The error is raised after :meth:`end`. The call must be one that may be repeated.
        """
        told = False
        for delay_s in delays_s(SHORTEST_S, LONGEST_S):
            try:
                with self._asking:
                    return ask()
            except errors as reason:
                if not told:
                    LOG.warning("The record cannot be reached; retrying: %s", reason)
                told = True
                if self._over.wait(delay_s):
                    raise
        raise AssertionError  # the delays have no end


def worker_name(host: str, pid: int, origin: str) -> str:
    """Return a unique name for a worker: ``HOST:PID:LETTERS``.

    The letters are the ``origin`` of its permits, see
    :func:`applier.machines.attempt_jobs.origin`, and four random ones.
    """
    return f"{host}:{pid}:{origin}{uuid4().hex[:4]}"


def _origin(worker: str) -> str:
    """Return the origin of the permits of a worker, by its name."""
    return worker.rpartition(":")[2][:-4]


def _claimant(worker: str | None) -> Claimant | None:
    """Return the host and process that a worker is named after; None if its name has none."""
    try:
        host, pid, _ = (worker or "").rsplit(":", 2)
        return Claimant(host=host, pid=int(pid), user="")
    except ValueError:
        return None


def _report(
    key: AttemptKey, state: ActionState, message: str, outcome: Outcome | None = None
) -> Report:
    return Report(
        uuid=key.action, old=ActionState.ONGOING, state=state, outcome=outcome, message=message
    )
