# SPDX-License-Identifier: Apache-2.0
"""Carries out jobs at a worker: takes them, runs or verifies them, and writes how they end."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from uuid import uuid4

from applier import log_fields
from applier.backoff import delays_s
from applier.contracts import Claimant, Report
from applier.engines.environment import ActionEnvironment
from applier.engines.tasks import ActionTask
from applier.errors import ActionFailed, StoreError
from applier.run.verify import verify_all
from applier.store.worker_jobs import (
    AttemptKey,
    HeldJob,
    JobTask,
    StopReason,
    TakenJob,
    WorkerJobStore,
)
from applier.workers.payloads import action_of, require_able, result_of, task_of
from planner.states import ActionState, Outcome

LOG = logging.getLogger(__name__)
Answer = TypeVar("Answer")

#: The shortest and the longest pause between two tries to reach the record, in seconds.
SHORTEST_S, LONGEST_S = 0.05, 1.0
#: How many threads ask the record at once: each needs a connection then.
ASKING = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Capacities:
    """What a worker is able to do, and as whom.

    ``name`` is the name of the worker, ``host`` that of its machine, ``cloud`` that of its cloud,
    ``release`` that of ActionPlan there. ``environment`` has open machines, if it has any.
    """

    name: str
    host: str
    cloud: str
    release: str
    environment: ActionEnvironment


class JobRunner:
    """Carries out jobs, each in the thread that calls :meth:`perform`, until they have ended.

    A result is kept until the record has it. A :class:`applier.workers.lease_keeper.LeaseKeeper`
    renews the leases meanwhile.
    """

    def __init__(self, store: WorkerJobStore, capacities: Capacities, *, lease_s: float) -> None:
        self._store, self._own, self._lease_s = store, capacities, lease_s
        self._held: dict[AttemptKey, tuple[str, ActionTask | None]] = {}
        self._lock = threading.Lock()
        #: Why jobs are to stop whose tasks are not made yet.
        self._early: dict[AttemptKey, StopReason] = {}
        self._over = threading.Event()
        self._asking = threading.BoundedSemaphore(ASKING)

    def end(self) -> None:
        """Stop trying to reach the record: the process ends."""
        self._over.set()

    def held(self) -> list[HeldJob]:
        """List the jobs that run here and are not ended yet."""
        with self._lock:
            return [HeldJob(key, token) for key, (token, _) in self._held.items()]

    def perform(self, key: AttemptKey) -> None:
        """Carry out a job, if it is still to be taken; return when its end is on record."""
        token = str(uuid4())
        with log_fields.about(plan=key.plan, action=key.action):
            taken = self._insist(
                lambda: self._store.take_job(
                    key, worker=self._own.name, token=token, lease_s=self._lease_s
                )
            )
            if taken is None:
                LOG.debug("There is nothing to take of action %s", key.action)
                return
            with self._holding(key, token):
                task, report = self._carried_out(key, taken)
                result = result_of(report)
                with self._lock:
                    self._held[key] = (token, None)  # its lease is renewed, and no more
                kept = self._insist(lambda: self._store.end_job(key, token, result))
            if not kept:
                LOG.warning("The job of action %s was lost before its end: %s", key.action, report)
            elif task is not None and report.state is not ActionState.UNKNOWN:
                task.forget()

    def stop(self, key: AttemptKey, why: StopReason) -> bool:
        """Tell a job to stop that runs here; return whether it runs and was not told before."""
        with self._lock:
            _, task = self._held.get(key, ("", None))
            if key in self._held and task is None:
                self._early.setdefault(key, why)
            if task is None or task.stop.is_set():
                return False
            _tell(task, why)
        name = f"action-abort-{key.action}"
        threading.Thread(target=self._abort, args=(key.plan, task), name=name, daemon=True).start()
        return True

    @staticmethod
    def _abort(plan: str, task: ActionTask) -> None:
        with log_fields.about(plan=plan):
            task.abort()

    @contextmanager
    def _holding(self, key: AttemptKey, token: str) -> Iterator[None]:
        with self._lock:
            self._held[key] = (token, None)
        try:
            yield
        finally:
            with self._lock:
                del self._held[key]
                self._early.pop(key, None)

    def _carried_out(self, key: AttemptKey, taken: TakenJob) -> tuple[ActionTask | None, Report]:
        """Carry out what is asked for; return the task, if one was made, and its report."""
        payload = taken.payload
        environment = replace(self._own.environment, plan=key.plan)
        try:
            require_able(payload, environment, self._own.cloud, self._own.release)
        except ActionFailed as reason:
            text = f"worker {self._own.name} cannot carry it out: {reason}"
            LOG.error("Action %s: %s", key.action, text)
            return None, _report(key, ActionState.FAILED, text, Outcome.ERROR)
        continued_s = None
        if taken.task is JobTask.VERIFY:
            found, continued_s = self._verified(key, taken, environment)
            if found is not None:
                return None, found
        task = task_of(key, payload, environment, continued_s)
        self._begin(key, task, taken.stop)
        if continued_s is None:
            task.permit()
        return task, task.execute()

    def _begin(self, key: AttemptKey, task: ActionTask, why: StopReason | None) -> None:
        with self._lock:
            token, _ = self._held[key]
            self._held[key] = (token, task)
            why = why or self._early.get(key)
            if why is not None:
                _tell(task, why)

    def _verified(
        self, key: AttemptKey, taken: TakenJob, environment: ActionEnvironment
    ) -> tuple[Report | None, float | None]:
        """Find out what became of an attempt whose worker was lost.

        Return its report, or how many seconds ago it began, if it goes on here.
        """
        action = action_of(key, taken.payload)
        findings = verify_all(
            [action], environment, before=_claimant(taken.lost_worker), host=self._own.host
        )
        if findings.continued:
            LOG.info("Action %s goes on: its command is followed", key.action)
            return None, findings.continued[key.action]
        for machines in findings.not_begun:
            machines.forget()
        (report,) = findings.reports
        return report, None

    def _insist(self, ask: Callable[[], Answer]) -> Answer:
        """Ask the record until it answers; each question may be repeated."""
        told = False
        for delay_s in delays_s(SHORTEST_S, LONGEST_S):
            try:
                with self._asking:
                    return ask()
            except StoreError as reason:
                if not told:
                    LOG.warning("The record cannot be reached; retrying: %s", reason)
                told = True
                if self._over.wait(delay_s):
                    raise
        raise AssertionError  # the delays have no end


def worker_name(host: str, pid: int) -> str:
    """Return a new name for a worker: where it runs, and letters that no other has."""
    return f"{host}:{pid}:{uuid4().hex[:6]}"


def _claimant(worker: str | None) -> Claimant | None:
    """Return where a worker ran, by its name; None if it is not known."""
    try:
        host, pid, _ = (worker or "").rsplit(":", 2)
        return Claimant(host=host, pid=int(pid), user="")
    except ValueError:
        return None


def _tell(task: Any, why: StopReason) -> None:
    if why is StopReason.TIMEOUT:
        task.time_out()
    else:
        task.stop.set()


def _report(
    key: AttemptKey, state: ActionState, message: str, outcome: Outcome | None = None
) -> Report:
    return Report(
        uuid=key.action, old=ActionState.ONGOING, state=state, outcome=outcome, message=message
    )
