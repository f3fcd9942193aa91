# SPDX-License-Identifier: Apache-2.0
"""Opens the record for a service, which waits for it as long as it takes."""

from __future__ import annotations

import logging
import threading

from applier.assembly import Assembly
from applier.backoff import delays_s
from applier.errors import StoreError
from applier.store import Store

LOG = logging.getLogger(__name__)

#: The maximum of the seconds between two attempts; the delays double up to it.
LONGEST_DELAY_S = 30.0


def opened(assembly: Assembly, ending: threading.Event) -> Store | None:
    """Open the store, with retries until it works; return None if ``ending`` is set before that."""
    for delay_s in delays_s(1.0, LONGEST_DELAY_S):
        if ending.is_set():
            return None
        try:
            return assembly.store
        except StoreError as reason:
            if delay_s == 1.0:
                LOG.warning("The record cannot be opened; retrying: %s", reason)
        ending.wait(delay_s)
    raise AssertionError  # the sequence of delays is infinite
