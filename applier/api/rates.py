# SPDX-License-Identifier: Apache-2.0
"""Bounds how often each caller may ask."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

#: For how many seconds' worth of requests may come at once.
BURST_S = 10.0
#: How many callers are remembered; a caller with a full allowance need not be.
MOST_CALLERS = 10_000


class Rates:
    """Counts the requests of each caller: an allowance that fills up at a constant rate."""

    def __init__(self, per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second, self._clock = per_second, clock
        self._most = max(1.0, per_second * BURST_S)
        #: The allowance that was left, and when, by caller.
        self._left: dict[str, tuple[float, float]] = {}
        self._lock = threading.Lock()

    def wait_s(self, caller: str) -> float:
        """Count a request; return 0, or after how many seconds it would be accepted.

        >>> rates = Rates(0.1, clock=lambda: 0.0)
        >>> rates.wait_s("ada"), rates.wait_s("ada"), rates.wait_s("bob")
        (0.0, 10.0, 0.0)
        """
        now = self._clock()
        with self._lock:
            left, since = self._left.pop(caller, (self._most, now))
            left = min(self._most, left + (now - since) * self._per_second)
            wait_s = 0.0 if left >= 1 else (1 - left) / self._per_second
            self._left[caller] = (left if wait_s else left - 1, now)
            if len(self._left) > MOST_CALLERS:
                self._left.pop(next(iter(self._left)))
        return wait_s
