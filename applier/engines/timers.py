"""What is to happen later: the engine's own clock, without a thread."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from typing import NamedTuple


class Timer(NamedTuple):
    """What a timer is for (``delay``, ``wait``, ``limit``, ``grace``), and for which action."""

    kind: str
    uuid: str


class Timers:
    """Timers of one owner; each is set once at a time, and can be dropped.

    >>> timers = Timers(lambda: 10.0)
    >>> timers.set(Timer("delay", "a"), 0); timers.set(Timer("grace", "b"), 5)
    >>> timers.due(), timers.left_s()
    ([Timer(kind='delay', uuid='a')], 5.0)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._heap: list[tuple[float, int, Timer]] = []
        #: The number of the entry that counts: those of dropped timers stay in the heap.
        self._set: dict[Timer, int] = {}
        self._count = 0

    def set(self, timer: Timer, seconds: float) -> None:
        """Let a timer be due in so many seconds."""
        self._count += 1
        self._set[timer] = self._count
        heapq.heappush(self._heap, (self._clock() + seconds, self._count, timer))

    def drop(self, timer: Timer) -> bool:
        """Forget a timer; says whether it was set."""
        return self._set.pop(timer, None) is not None

    def left_s(self) -> float | None:
        """Give the seconds until the next is due, or None if none is set."""
        while self._heap and self._set.get(self._heap[0][2]) != self._heap[0][1]:
            heapq.heappop(self._heap)
        return max(0.0, self._heap[0][0] - self._clock()) if self._heap else None

    def due(self) -> list[Timer]:
        """Give, and forget, those whose time has come, in the order of their times."""
        found: list[Timer] = []
        while self.left_s() == 0.0:
            timer = heapq.heappop(self._heap)[2]
            del self._set[timer]
            found.append(timer)
        return found
