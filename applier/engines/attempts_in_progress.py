# SPDX-License-Identifier: Apache-2.0
"""The running attempts: threads that execute them, timers that need no thread, and their ends."""

from __future__ import annotations

import heapq
import logging
import os
import queue
import resource
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any, NamedTuple, Self, TypeVar

from applier.contracts import Report
from applier.engines.engine import Executor
from applier.store.worker_jobs import StopReason
from planner.plan.states import ActionState, Outcome

LOG = logging.getLogger(__name__)
Answer = TypeVar("Answer")
#: The report of an attempt that ends without one of its own.
_ended = partial(Report, old=ActionState.ONGOING)

#: How many actions are asked about at once, such as whether their work is done.
AT_ONCE = 16
#: How many files an attempt may have open at once: pipes and logs of a command, or connections.
FILES = 8
#: How many files the rest of the process may open besides those that are open.
KEPT_FILES = 16


def within_room(wanted: int) -> int:
    """Return how many of ``wanted`` attempts can run at once with the files that may be opened.

    It is 1 at least. More of them would fail for want of a file, halfway or before they begin.
    """
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most == resource.RLIM_INFINITY:
        return wanted
    room = max(1, (most - len(os.listdir("/proc/self/fd")) - KEPT_FILES) // FILES)
    if room < wanted:
        LOG.warning(
            "At most %d actions run at once, not %d: only %d files may be open (ulimit -n)",
            room,
            wanted,
            most,
        )
    return min(wanted, room)


class ThreadPool:
    """Up to ``maximum`` threads, started when needed. Only one thread may call its methods.

    The threads are daemons, unlike those of ``concurrent.futures``, because a plugin that hangs
    must not keep the process alive. ``done`` is called in the thread with the result of the work,
    which must not raise.
    """

    def __init__(self, maximum: int, done: Callable[[Any], None]) -> None:
        #: The number of threads that may run at once. Lowering it does not end threads.
        self.maximum = maximum
        self._done = done
        self._work: queue.SimpleQueue[Callable[[], Any] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._given_up = 0
        self._is_short = False

    def grow(self, number: int, extra: int = 0) -> None:
        """Start threads until there are ``number``, but at most ``maximum`` plus ``extra``.

        Of the ``number``, ``extra`` threads do not count against the maximum. If the machine grants
        no more threads, fewer run at once; raises RuntimeError if it grants none.
        """
        while len(self._threads) < min(number - extra, self.maximum) + extra + self._given_up:
            name = f"action-worker-{len(self._threads) + 1}"
            thread = threading.Thread(
                target=copy_context().run, args=(self._loop,), name=name, daemon=True
            )
            try:
                thread.start()
            except RuntimeError:
                if not self._threads:
                    raise
                self._tell_once(len(self._threads))
                return
            self._threads.append(thread)

    def _tell_once(self, number: int) -> None:
        if not self._is_short:
            LOG.warning("No more threads can be started: at most %d actions run at once", number)
        self._is_short = True

    def replace(self) -> None:
        """Allow one thread more, because one hangs and will not become free."""
        self._given_up += 1

    def submit(self, work: Callable[[], Any]) -> None:
        """Queue work for the next free thread."""
        self._work.put(work)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """End the threads once the queue is empty, without waiting for them."""
        for _ in self._threads:
            self._work.put(None)

    def _loop(self) -> None:
        while (work := self._work.get()) is not None:
            self._done(work())


def answers(
    questions: Sequence[Callable[[], Answer]], at_once: int, patience_s: float
) -> list[Answer]:
    """Call functions in parallel; return their results as they come.

    If none returns for ``patience_s`` seconds, the remaining ones are left out.
    """
    come: queue.SimpleQueue[Answer] = queue.SimpleQueue()
    found: list[Answer] = []
    with ThreadPool(at_once, come.put) as pool, suppress(queue.Empty):
        pool.grow(len(questions))
        for question in questions:
            pool.submit(question)
        while len(found) < len(questions):
            found.append(come.get(timeout=patience_s))
    return found


class Threads(ThreadPool, Executor):
    """Executes each attempt in one thread of this process."""

    away_s = 0.0
    _waits = False

    def offer(self, task: Any) -> None:
        task.permit()

    def grow(self, number: int, extra: int = 0) -> None:
        """See :meth:`ThreadPool.grow`; without any thread, work waits."""
        try:
            super().grow(number, extra)
        except RuntimeError as reason:
            if not self._waits:
                LOG.warning("Actions wait until a thread can be started: %s", reason)
            self._waits = True
        else:
            self._waits = False

    def submit(self, task: Any) -> None:
        super().submit(task.execute)

    def adopt(self, task: Any) -> None:
        self.submit(task)  # a thread follows its commands

    def stop(self, task: Any, why: StopReason) -> None:
        task.stop_for(why)
        start_abort(task)

    def let_go(self, task: Any) -> bool:
        task.let_go()
        return False


def start_abort(task: Any) -> None:
    """Call the abort of an attempt's plugin in a new thread, because it may hang as well."""
    name = f"action-abort-{task.action.uuid}"
    # The thread logs for the same plan as this one.
    told = partial(copy_context().run, task.abort)
    try:
        threading.Thread(target=told, name=name, daemon=True).start()
    except RuntimeError as reason:
        LOG.warning("Action %s is stopped without its abort: %s", task.action.uuid, reason)


class Timer(NamedTuple):
    """The key of a timer: its kind, and the uuid of its action.

    ``kind`` is ``delay`` (before a retry), ``wait`` (of an action that only waits), ``limit`` (the
    time-out), ``grace`` (after a stop signal), or ``opening`` (of a window; it has no action).
    """

    kind: str
    uuid: str


class Timers:
    """The timers of one engine. Setting a timer again replaces its due time.

    >>> timers = Timers(lambda: 10.0)
    >>> timers.set(Timer("delay", "a"), 0); timers.set(Timer("grace", "b"), 5)
    >>> timers.due(), timers.left_s()
    ([Timer(kind='delay', uuid='a')], 5.0)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._heap: list[tuple[float, int, Timer]] = []
        #: The number of the valid heap entry of each timer; entries with other numbers are stale.
        self._set: dict[Timer, int] = {}
        self._count = 0

    def set(self, timer: Timer, seconds: float) -> None:
        """Make a timer due in ``seconds``."""
        self._count += 1
        self._set[timer] = self._count
        heapq.heappush(self._heap, (self._clock() + seconds, self._count, timer))

    def drop(self, timer: Timer) -> bool:
        """Remove a timer; return whether it was set."""
        return self._set.pop(timer, None) is not None

    def left_s(self) -> float | None:
        """Return the seconds until the next timer is due; None if none is set."""
        while self._heap and self._set.get(self._heap[0][2]) != self._heap[0][1]:
            heapq.heappop(self._heap)
        return max(0.0, self._heap[0][0] - self._clock()) if self._heap else None

    def due(self) -> list[Timer]:
        """Remove and return the timers that are due, in the order of their times."""
        found: list[Timer] = []
        while self.left_s() == 0.0:
            timer = heapq.heappop(self._heap)[2]
            del self._set[timer]
            found.append(timer)
        return found


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

    def grow(self) -> None:
        """Ask again for the threads of what runs, which the machine may not have granted before."""
        if self._executed:
            self._executor.grow(len(self._executed), extra=len(self._extra))

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
        return _ended(uuid=uuid, state=ActionState.UNKNOWN, message=message, given_up=True)

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
        return _ended(uuid=uuid, state=state, outcome=outcome, message=message)
