# SPDX-License-Identifier: Apache-2.0
"""Opens the record for a service, with retries until it can be opened."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TypeVar

from applier.backoff import delays_s
from applier.errors import DamagedRecord, StoreError

LOG = logging.getLogger(__name__)
Opened = TypeVar("Opened")

#: The maximum of the seconds between two attempts; the delays double up to it.
LONGEST_DELAY_S = 30.0


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
