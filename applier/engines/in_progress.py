# SPDX-License-Identifier: Apache-2.0
"""The running attempts, executed or on timers: starts them, stops them, gives them up."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from applier.contracts import Report
from applier.engines.executor import Executor
from applier.engines.threads import Timer, Timers
from applier.store.worker_jobs import StopReason
from planner.states import ActionState, Outcome

LOG = logging.getLogger(__name__)


class AttemptsInProgress:
    """The attempts that have started and not ended. Only the engine's thread uses it.

    ``tasks`` are :class:`applier.engines.tasks.ActionTask` by uuid. An attempt that has not ended
    ``grace_s`` seconds after its stop signal is given up: the executor allows another attempt in
    its place, and its later report is ignored.
    """

    def __init__(
        self, tasks: Mapping[str, Any], executor: Executor, timers: Timers, *, grace_s: float
    ) -> None:
        self._tasks, self._executor, self._timers = tasks, executor, timers
        self._grace_s = grace_s
        self._executed: set[str] = set()
        #: The executed attempts that do not count against the maximum number of workers.
        self._extra: set[str] = set()
        #: The duration in seconds of each attempt that only waits, by uuid.
        self._waiting: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._executed) + len(self._waiting)

    def start(self, uuid: str) -> None:
        """Start an attempt, or follow one that goes on, and set its timers."""
        task = self._tasks[uuid]
        if task.waits_s is None:
            # An attempt that goes on is followed even if fewer workers are allowed by now.
            is_counted = task.plugin.TAKES_WORKER and task.continued_s is None
            extra = self._extra if is_counted else self._extra | {uuid}
            self._executor.grow(len(self._executed) + 1, extra=len(extra))
            self._extra = extra
            self._executed.add(uuid)
            if task.continued_s is None:
                self._executor.submit(task)
            else:
                self._executor.adopt(task)
        else:
            self._waiting[uuid] = task.waits_s
            self._timers.set(Timer("wait", uuid), task.waits_s)
        if task.limit_s is not None:
            left_s = max(0.0, task.limit_s - (task.continued_s or 0.0))
            self._timers.set(Timer("limit", uuid), left_s)

    def ended(self, report: Report) -> bool:
        """Remove an attempt that has ended; return False if it had already been given up."""
        if report.uuid not in self._executed:
            LOG.warning("Action %s was given up, and has ended now: %s", report.uuid, report)
            return False
        self._executed.remove(report.uuid)
        self._extra.discard(report.uuid)
        task = self._tasks[report.uuid]
        # A worker on another machine sets ``broke`` only in its own copy of the task.
        task.broke = report.outcome is Outcome.ERROR
        if task.limit_s is not None:
            self._timers.drop(Timer("limit", report.uuid))
        if task.stop.is_set():
            self._timers.drop(Timer("grace", report.uuid))
        return True

    def stop(self, uuid: str) -> Report | None:
        """Send an attempt the stop signal; if it only waits, end it and return its report.

        Otherwise return None: its report follows as an event. An attempt whose plugin is not
        STOPPABLE goes on.
        """
        if not self._tasks[uuid].plugin.STOPPABLE:
            return None
        self._timers.drop(Timer("limit", uuid))
        if uuid in self._waiting:
            message = f"aborted: it was to wait for {self._waiting[uuid]:g} s"
            return self._wait_over(uuid, ActionState.CANCELLED, None, message)
        if uuid in self._executed and not self._tasks[uuid].stop.is_set():
            self._stop(uuid, StopReason.ABORT)
        return None

    def stop_all(self) -> None:
        """Stop all attempts as :meth:`stop` does, but without reports of those that only wait.

        Their commands go on, because this applier cannot record how they end. Attempts at workers
        on other machines are not stopped, but left to the next applier.
        """
        for uuid in [*self._waiting, *self._executed]:
            if uuid in self._executed and self._executor.let_go(self._tasks[uuid]):
                self._executed.remove(uuid)
            else:
                self.stop(uuid)

    def due(self, timer: Timer) -> Report | None:
        """Handle a timer that is due; return the report of an attempt that ends or is given up.

        Return None if another timer that was due at the same time has ended the attempt.
        """
        uuid = timer.uuid
        if uuid not in self._waiting and uuid not in self._executed:
            return None
        if timer.kind == "wait":
            self._timers.drop(Timer("limit", uuid))
            return self._wait_over(uuid, ActionState.SUCCEEDED, Outcome.CHANGED, None)
        if timer.kind == "limit":
            return self._time_out(uuid)
        self._executed.remove(uuid)
        self._extra.discard(uuid)
        self._executor.replace()
        message = "hangs: its thread was given up"
        LOG.error("Action %s %s", uuid, message, extra={"action": uuid})
        return _report(uuid, ActionState.UNKNOWN, None, message, given_up=True)

    def _time_out(self, uuid: str) -> Report | None:
        if uuid in self._waiting:
            message = f"timed out after {self._tasks[uuid].limit_s:g} s"
            return self._wait_over(uuid, ActionState.FAILED, Outcome.ERROR, message)
        self._stop(uuid, StopReason.TIMEOUT)
        return None

    def _stop(self, uuid: str, why: StopReason) -> None:
        self._executor.stop(self._tasks[uuid], why)
        self._timers.set(Timer("grace", uuid), self._grace_s + self._executor.away_s)

    def _wait_over(
        self, uuid: str, state: ActionState, outcome: Outcome | None, message: str | None
    ) -> Report:
        del self._waiting[uuid]
        self._timers.drop(Timer("wait", uuid))
        return _report(uuid, state, outcome, message)


def _report(
    uuid: str,
    state: ActionState,
    outcome: Outcome | None,
    message: str | None,
    *,
    given_up: bool = False,
) -> Report:
    return Report(
        uuid=uuid,
        old=ActionState.ONGOING,
        state=state,
        outcome=outcome,
        message=message,
        given_up=given_up,
    )
