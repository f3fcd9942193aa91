# SPDX-License-Identifier: Apache-2.0
"""Limits the rate of requests of each caller."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

#: A caller may send at once the requests that the rate allows for this many seconds.
BURST_S = 10.0
#: The number of callers whose buckets are kept. Beyond it, the bucket that was used longest ago is
#: dropped; its caller begins with a full one again.
MOST_CALLERS = 10_000


class Rates:
    """A token bucket for each caller, which is refilled at ``per_second``. Safe for threads."""

    def __init__(self, per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second, self._clock = per_second, clock
        self._most = max(1.0, per_second * BURST_S)
        #: The requests left in the bucket of each caller, and the clock time of that count.
        self._left: dict[str, tuple[float, float]] = {}
        self._lock = threading.Lock()

    def wait_s(self, caller: str) -> float:
        """Count a request and return 0.0; if it is too early, return the seconds until it is not.

        A request that is too early is not counted.

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
