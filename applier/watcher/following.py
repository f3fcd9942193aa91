# SPDX-License-Identifier: Apache-2.0
"""Finds plans whose applier has died, and sends them to the appliers until one has claimed them.

A message to a queue without a reader is lost, so it is sent again. An applier that receives a plan
twice runs it once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from applier.backoff import delays_s
from applier.contracts import Claimant
from applier.errors import ApplierError, StoreError
from applier.run.liveness import SilenceWatch, gone
from applier.watcher import endings, interrupted, reopening
from applier.watcher.states import CANCEL_STATES
from planner.errors import PlannerError

Value = TypeVar("Value")

#: Seconds before an unclaimed plan is sent again: the first pause, and the longest.
FIRST_S, LONGEST_S = 5.0, 60.0


class Follower:
    """Watches the claimants of all plans, or of the plan ``only``, in calls of :meth:`look`.

    ``cast`` sends the uuid of a plan to the appliers. ``tell`` is called with sentences for the
    user.
    """

    def __init__(
        self,
        cast: Callable[[str], None],
        tell: Callable[[str], None],
        only: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cast, self._tell, self._only, self._clock = cast, tell, only, clock
        self._watch = SilenceWatch(clock)
        #: The claimants at the first look, by plan.
        self._first: dict[str, Claimant] | None = None
        #: By unclaimed plan: when it is to be sent again, and the delays after that, in seconds.
        self._sent: dict[str, tuple[float, Iterator[float]]] = {}

    def reset(self) -> None:
        """Reset the counts of missed heartbeats, after a time in which none could be written."""
        self._watch.reset()

    def look(self) -> bool:
        """Reopen the plans of claimants that have died, and send unclaimed plans to the appliers.

        Return whether another look is needed: because a plan waits for an applier, or because a
        claimant has written no heartbeat since the first look and may still turn out to be dead.
        """
        found = self._mine(reopening.claimed())
        if self._first is None:
            self._first = found
        self._watch.begin_round()
        for uuid, claimant in found.items():
            if self._watch.is_dead(uuid, claimant):
                self._revive(uuid, claimant)
        waiting = self._mine(dict.fromkeys(reopening.waiting(self._only)))
        self._sent = {uuid: known for uuid, known in self._sent.items() if uuid in waiting}
        for uuid in waiting:
            self._send(uuid)
        return bool(waiting or found.items() & self._first.items())

    def _mine(self, plans: dict[str, Value]) -> dict[str, Value]:
        return {u: value for u, value in plans.items() if self._only in (None, u)}

    def _revive(self, uuid: str, claimant: Claimant) -> None:
        try:
            if endings.plan_state(uuid) in CANCEL_STATES:
                found = interrupted.found(uuid, claimant)
                endings.take_over(uuid, claimant, resume=True, found=found)
                self._tell(f"plan {uuid}: {gone(claimant)}; its cancel was finished")
            else:
                reopening.reopen(uuid, claimant)
                self._tell(f"plan {uuid}: {gone(claimant)}; it goes on")
        except StoreError:
            raise
        except (ApplierError, PlannerError) as reason:
            self._tell(f"plan {uuid}: {reason}")

    def _send(self, uuid: str) -> None:
        now = self._clock()
        due, delays = self._sent.get(uuid) or (now, delays_s(FIRST_S, LONGEST_S))
        if now >= due:
            self._cast(uuid)
            due = now + next(delays)
        self._sent[uuid] = due, delays
