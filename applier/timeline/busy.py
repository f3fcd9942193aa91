# SPDX-License-Identifier: Apache-2.0
"""Finds the times at which a limit was reached: all units of a token, or all workers. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from applier.timeline.values import TimeSpan


class BusyTimes:
    """The times at which at least ``limit`` of the intervals ``held`` were open at once.

    ``held`` are pairs of a name and an interval. A gap of at most ``slight_s`` seconds between two
    such times is part of them, because in a run, the next action starts a moment after the last one
    ended. The constructor takes O(n log n), each method O(log n).

    >>> busy = BusyTimes([("a", TimeSpan(0, 2)), ("b", TimeSpan(1, 4)), ("c", TimeSpan(2, 3))], 2)
    >>> busy.seconds(0, 9), busy.seconds(2, 2.5), busy.last_ended(3), busy.last_ended(1)
    (2.0, 0.5, 'c', None)
    """

    def __init__(
        self, held: Iterable[tuple[str, TimeSpan]], limit: int, slight_s: float = 0.0
    ) -> None:
        self._names: list[str] = []
        #: End, length and position in the names of each interval.
        self._ends: list[tuple[float, float, int]] = []
        moments: list[tuple[float, int]] = []
        for name, (start_s, end_s) in held:
            moments += [(start_s, 1), (end_s, -1)]
            self._ends.append((end_s, end_s - start_s, -len(self._names)))
            self._names.append(name)
        self._ends.sort()
        self._from: list[float] = []
        self._to: list[float] = []
        count = 0
        # At one moment, ends come before starts.
        for at, change in sorted(moments):
            count += change
            if change > 0 and count == limit:
                if self._to and at - self._to[-1] <= slight_s:
                    self._to.pop()
                else:
                    self._from.append(at)
            elif change < 0 and count == limit - 1:
                self._to.append(at)
        self._sums = [0.0]
        for start_s, end_s in zip(self._from, self._to, strict=True):
            self._sums.append(self._sums[-1] + end_s - start_s)

    def seconds(self, start_s: float, end_s: float) -> float:
        """Return for how many seconds between two times the limit was reached."""
        return max(0.0, self._until(end_s) - self._until(start_s))

    def _until(self, at: float) -> float:
        found = bisect_right(self._from, at)
        if not found:
            return 0.0
        return self._sums[found - 1] + min(at, self._to[found - 1]) - self._from[found - 1]

    def last_ended(self, at: float) -> str | None:
        """Return the name of the interval that ended last, but not after ``at``; None if none has.

        Of several that ended at the same time, the longest is chosen.
        """
        found = bisect_right(self._ends, at, key=lambda end: end[0])
        return self._names[-self._ends[found - 1][2]] if found else None
