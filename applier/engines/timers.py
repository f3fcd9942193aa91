# SPDX-License-Identifier: Apache-2.0
"""The timers of an engine: a heap of due times, without a thread."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from typing import NamedTuple


class Timer(NamedTuple):
    """The purpose of a timer (``delay``, ``wait``, ``limit``, ``grace``), and its action."""

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
