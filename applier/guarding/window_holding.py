# SPDX-License-Identifier: Apache-2.0
"""Holds actions back that are not expected to end while a window is open. Pure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from applier.guarding.node_work import NodeWork
from applier.wording import count
from planner.plan.model import Action

if TYPE_CHECKING:
    from applier.guarding.open_times import OpenTimes

#: The most seconds between two comparisons with the clock, which may be set meanwhile.
LONGEST_WAIT_S = 60.0
_SHORTEST_S = 0.05


class WindowHolding:
    """Lets an action start only if 9 in 10 such actions would end before the windows close.

    The first action on a node that holds a place starts only if all that is left there would; what
    follows on that node starts at any time. ``tell`` is called with messages for the user. With
    ``hands_back``, a plan of which nothing runs becomes PENDING again when each action that could
    start waits for a window.
    """

    def __init__(
        self,
        times: OpenTimes,
        work: NodeWork,
        clock: Callable[[], datetime],
        *,
        tell: Callable[[str], None] = lambda _: None,
        hands_back: bool = False,
    ) -> None:
        self._times, self._work, self._clock = times, work, clock
        self._tell, self._hands_back = tell, hands_back
        self._told: str | None = None
        #: The actions that were held back here, and how many are held back in all.
        self._held: set[str] = set()
        self._number = 0

    def holds(self, action: Action, *, begins: bool) -> bool:
        """Return whether the windows are closed, or an action would end after they close."""
        if not begins:
            return False
        now = self._clock()
        found = self._times.at(now)
        held = found is None or now + timedelta(seconds=self._work.needed_s(action)) > found.end
        if held:
            self._held.add(action.uuid)
        else:
            self._held.discard(action.uuid)
        return held

    def again_s(self) -> float | None:
        """Return the seconds until the windows open next, but not more than LONGEST_WAIT_S.

        None to hand the plan back: each action that could start waits for a window.
        """
        if self._hands_back and self._held and len(self._held) >= self._number:
            return None
        now = self._clock()
        opens = self._times.opens_after(now)
        if opens is None:
            return LONGEST_WAIT_S
        return min(LONGEST_WAIT_S, max(_SHORTEST_S, (opens - now).total_seconds()))

    def ended(self) -> None:
        """Do nothing: the clock alone decides."""

    def tell(self, number: int) -> None:
        """Report how many actions wait and for which window, or that it is open.

        The report is left out if it is the same as the last one.
        """
        self._number = number
        if not number:
            if self._told:
                self._tell("The window is open.")
            self._told = None
            self._held.clear()
            return
        if not self._held:
            return
        window = awaited(self._times, self._times.opens_after(self._clock()))
        text = f"{count(number, 'action')} waiting for {window}"
        if text != self._told:
            self._tell(text)
        self._told = text


def awaited(times: OpenTimes, opens: datetime | None) -> str:
    """Return a text with the windows and the time at which they open; with None, never."""
    when = f", which opens at {opens:%Y-%m-%d %H:%M} UTC" if opens else ", which never opens"
    return f"the window {times.words}{when}"
