# SPDX-License-Identifier: Apache-2.0
"""Which claimants have been silent for so long that they are taken for dead."""

from __future__ import annotations

import time
from collections.abc import Callable

from applier.contracts import Claimant
from applier.run import resume


class SilenceWatch:
    """Measures how long each claim has been without a new heartbeat, by one clock of this process.

    A claimant may run on a host whose clock is wrong, so heartbeats are never compared with a
    clock: a claim is silent for as long as its heartbeat stayed the same while it was watched. A
    claim that a round does not ask about is forgotten.

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
        """Begin to ask about every claim once more."""
        self._last_round, self._this_round = self._this_round, {}

    def reset(self) -> None:
        """Measure every silence anew: no heartbeat can be written while the record is away."""
        self._last_round, self._this_round = {}, {}

    def is_dead(self, plan: str, claimant: Claimant) -> bool:
        """Return whether a claimant has been silent for the patience, or its process is gone."""
        if resume.is_gone(claimant):
            return True
        now = self._clock()
        since = self._last_round.get((plan, claimant), now)
        self._this_round[plan, claimant] = since
        return now - since >= self._patience_s
