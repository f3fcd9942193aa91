# SPDX-License-Identifier: Apache-2.0
"""Retries writes while the store cannot be reached."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from applier.backoff import delays_s
from applier.errors import ApplierError, DamagedRecord, PlanConflict, StoreError
from planner.errors import InvalidTransition

LOG = logging.getLogger(__name__)

#: The seconds before the first retry, and the longest pause between two retries.
FIRST_DELAY_S = 0.05
LONGEST_DELAY_S = 5.0


class StoreRetry:
    """Retries a write while the store cannot be reached, for up to ``patience_s`` seconds."""

    def __init__(self, patience_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._patience_s, self._clock = patience_s, clock

    def write(
        self,
        attempt: Callable[[], None],
        is_written: Callable[[], bool],
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        """Call ``attempt`` until it returns; raise StoreError with its last error when time is up.

        DamagedRecord is treated like StoreError, because a server may lack a table for a moment.
        A failed attempt may have been written even so, if only the answer of the database was lost.
        So if a later attempt raises PlanConflict or InvalidTransition, ``is_written`` is called: if
        it returns True, the write has succeeded. It may raise the errors of the store. ``wait`` is
        called between two attempts with the seconds to wait.
        """
        began = self._clock()
        try:
            attempt()
        except (StoreError, DamagedRecord) as error:
            self._retry(error, began, attempt, is_written, wait)

    def _retry(
        self,
        error: ApplierError,
        began: float,
        attempt: Callable[[], None],
        is_written: Callable[[], bool],
        wait: Callable[[float], None],
    ) -> None:
        # Warn only once: a full disk stays full for many attempts.
        level = logging.WARNING
        for delay_s in delays_s(FIRST_DELAY_S, LONGEST_DELAY_S):
            left = self._patience_s - (self._clock() - began)
            if left <= 0:
                if isinstance(error, StoreError):
                    raise error
                raise StoreError(str(error)) from error
            LOG.log(level, "The record cannot be reached; retrying for %.0f s: %s", left, error)
            level = logging.INFO
            wait(min(delay_s, left))
            try:
                _write_unless_written(attempt, is_written)
            except (StoreError, DamagedRecord) as reason:
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
