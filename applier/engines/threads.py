# SPDX-License-Identifier: Apache-2.0
"""Threads that execute actions, and timers that need no thread."""

from __future__ import annotations

import heapq
import logging
import os
import queue
import resource
import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import Any, NamedTuple

from applier.contracts import Report
from applier.store.worker_jobs import StopReason

LOG = logging.getLogger(__name__)

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

    def __enter__(self) -> ThreadPool:
        return self

    def __exit__(self, *error: object) -> None:
        """End the threads once the queue is empty, without waiting for them."""
        for _ in self._threads:
            self._work.put(None)

    def _loop(self) -> None:
        while (work := self._work.get()) is not None:
            self._done(work())


class Threads:
    """See :class:`applier.engines.executor.Executor`; each attempt occupies one thread."""

    away_s = 0.0

    def __init__(self, maximum: int, done: Callable[[Report], None]) -> None:
        self._pool = ThreadPool(maximum, done)

    @property
    def maximum(self) -> int:
        """The number of threads that may run at once."""
        return self._pool.maximum

    @maximum.setter
    def maximum(self, number: int) -> None:
        """Change it; threads that run are not ended."""
        self._pool.maximum = number

    def offer(self, task: Any) -> None:
        """Write the permit of an attempt; see :meth:`applier.engines.tasks.ActionTask.permit`."""
        task.permit()

    def grow(self, number: int, extra: int = 0) -> None:
        """See :meth:`applier.engines.threads.ThreadPool.grow`."""
        self._pool.grow(number, extra)

    def replace(self) -> None:
        """See :meth:`applier.engines.threads.ThreadPool.replace`."""
        self._pool.replace()

    def submit(self, task: Any) -> None:
        """Queue an attempt for the next free thread."""
        self._pool.submit(task.execute)

    def adopt(self, task: Any) -> None:
        """Queue an attempt that goes on: a thread follows its commands."""
        self._pool.submit(task.execute)

    def stop(self, task: Any, why: StopReason) -> None:
        """Set the stop signal of an attempt, and call its plugin's abort.

        The abort runs in a new thread, because it may hang as well.
        """
        if why is StopReason.TIMEOUT:
            task.time_out()
        else:
            task.stop.set()
        name = f"action-abort-{task.action.uuid}"
        # The thread logs for the same plan as this one.
        told = partial(copy_context().run, task.abort)
        try:
            threading.Thread(target=told, name=name, daemon=True).start()
        except RuntimeError as reason:
            LOG.warning("Action %s is stopped without its abort: %s", task.action.uuid, reason)

    def let_go(self, task: Any) -> bool:
        """Leave the commands of an attempt running at a stop; return False: the caller stops it."""
        task.let_go()
        return False

    def __enter__(self) -> Threads:
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.__exit__(*error)


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
