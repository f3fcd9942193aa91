"""Writes to a record that may be away for a while."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from applier.backoff import delays_s
from applier.errors import PlanConflict, StoreError
from planner.errors import InvalidTransition

LOG = logging.getLogger(__name__)

#: Seconds until the first new try, and the most between two; each delay is twice the one before.
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
        """Return once ``attempt`` has returned; raises the last StoreError when patience ends.

        A try that failed may have been written all the same, when the answer was what got lost: a
        later one that is refused asks ``is_written``, which may raise what the store raises.
        ``wait`` is called between two tries with the seconds to wait.
        """
        began, delays = self._clock(), delays_s(FIRST_DELAY_S, LONGEST_DELAY_S)
        again = False
        while True:
            try:
                try:
                    attempt()
                except (PlanConflict, InvalidTransition):
                    if not again or not is_written():
                        raise
                break
            except StoreError as error:
                left = self._patience_s - (self._clock() - began)
                if left <= 0:
                    raise
                # Once is enough to know; a disk that is full stays so for many tries.
                level = logging.INFO if again else logging.WARNING
                LOG.log(
                    level, "The record cannot be reached, tried again for %.0f s: %s", left, error
                )
                again = True
                wait(min(next(delays), left))
        if again:
            LOG.warning("The record can be reached again")
