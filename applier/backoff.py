# SPDX-License-Identifier: Apache-2.0
"""Exponential back-off: the delays between attempts."""

from __future__ import annotations

from collections.abc import Iterator


def delays_s(first_s: float, longest_s: float) -> Iterator[float]:
    """Yield the seconds to wait between attempts, doubled each time up to ``longest_s``; endless.

    >>> delays = delays_s(1.0, 5.0)
    >>> [next(delays) for _ in range(5)]
    [1.0, 2.0, 4.0, 5.0, 5.0]
    """
    delay_s = first_s
    while True:
        yield min(delay_s, longest_s)
        delay_s = min(2 * delay_s, longest_s)
