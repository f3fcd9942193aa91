# SPDX-License-Identifier: Apache-2.0
"""Exponential back-off: the delays between attempts, also to open a record."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

from applier.errors import DamagedRecord, StoreError

LOG = logging.getLogger(__name__)
Opened = TypeVar("Opened")

#: The maximum of the seconds between two attempts to open a record; the delays double up to it.
LONGEST_DELAY_S = 30.0


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


def opened(open_store: Callable[[], Opened], ending: threading.Event) -> Opened | None:
    """Open a store, with retries until it works; return None if ``ending`` is set before that."""
    for delay_s in delays_s(1.0, LONGEST_DELAY_S):
        if ending.is_set():
            return None
        try:
            return open_store()
        except (StoreError, DamagedRecord) as reason:
            if delay_s == 1.0:
                LOG.warning("The record cannot be opened; retrying: %s", reason)
        ending.wait(delay_s)
    raise AssertionError  # the sequence of delays is infinite
