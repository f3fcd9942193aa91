# SPDX-License-Identifier: Apache-2.0
"""Detects claimants that have not written a heartbeat for so long that they count as dead."""

from __future__ import annotations

import time
from collections.abc import Callable

from applier.contracts import Claimant
from applier.run import resume


class SilenceWatch:
    """Measures, by a clock of this process, for how long each claim has had no new heartbeat.

    The clock of a claimant's host may be wrong, so the time in a heartbeat is never compared with a
    clock. Instead, this measures how long a heartbeat has not changed. Claims are checked in
    rounds; one that is not checked in a round is dropped.

    >>> now = [0.0]
    >>> watch = SilenceWatch(30.0, clock=lambda: now[0])
    >>> claimant = Claimant(host="elsewhere", pid=1, user="ann")
    >>> watch.begin_round(); watch.is_dead("plan", claimant)
    False
    >>> now[0] = 31.0
    >>> watch.begin_round(); watch.is_dead("plan", claimant)
    True
    """

    def __init__(self, patience_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._patience_s, self._clock = patience_s, clock
        self._last_round: dict[tuple[str, Claimant], float] = {}
        self._this_round: dict[tuple[str, Claimant], float] = {}

    def begin_round(self) -> None:
        """Begin a round, in which each claim is checked once."""
        self._last_round, self._this_round = self._this_round, {}

    def reset(self) -> None:
        """Restart all measurements: no heartbeat can be written while the store is unreachable."""
        self._last_round, self._this_round = {}, {}

    def is_dead(self, plan: str, claimant: Claimant) -> bool:
        """Return whether a claimant was silent for ``patience_s``, or its process is gone."""
        if resume.is_gone(claimant):
            return True
        now = self._clock()
        since = self._last_round.get((plan, claimant), now)
        self._this_round[plan, claimant] = since
        return now - since >= self._patience_s
