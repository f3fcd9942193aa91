# SPDX-License-Identifier: Apache-2.0
"""Retries writes while the record cannot be reached."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from applier.backoff import delays_s
from applier.errors import PlanConflict, StoreError
from planner.errors import InvalidTransition

LOG = logging.getLogger(__name__)

#: Seconds before the first retry, and at most between two retries.
FIRST_DELAY_S = 0.05
LONGEST_DELAY_S = 5.0


class StoreRetry:
    """Tries a write again while the store cannot be reached, for up to ``patience_s`` seconds."""

    def __init__(self, patience_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._patience_s, self._clock = patience_s, clock

    def write(
        self,
        attempt: Callable[[], None],
        is_written: Callable[[], bool],
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        """Call ``attempt`` until it returns; raise its last StoreError when the patience ends.

        A failed try may have been written all the same, if only its answer was lost. So when a
        later try is refused, ``is_written`` decides; it may raise what the store raises. ``wait``
        is called between two tries with the seconds to wait.
        """
        began = self._clock()
        try:
            attempt()
        except StoreError as error:
            self._retry(error, began, attempt, is_written, wait)

    def _retry(
        self,
        error: StoreError,
        began: float,
        attempt: Callable[[], None],
        is_written: Callable[[], bool],
        wait: Callable[[float], None],
    ) -> None:
        # Warn once: a disk that is full stays full for many tries.
        level = logging.WARNING
        for delay_s in delays_s(FIRST_DELAY_S, LONGEST_DELAY_S):
            left = self._patience_s - (self._clock() - began)
            if left <= 0:
                raise error
            LOG.log(level, "The record cannot be reached, tried again for %.0f s: %s", left, error)
            level = logging.INFO
            wait(min(delay_s, left))
            try:
                _write_unless_written(attempt, is_written)
            except StoreError as reason:
                error = reason
            else:
                LOG.warning("The record can be reached again")
                return


def _write_unless_written(attempt: Callable[[], None], is_written: Callable[[], bool]) -> None:
    try:
        attempt()
    except (PlanConflict, InvalidTransition):
        if not is_written():
            raise
