# SPDX-License-Identifier: Apache-2.0
"""Holds back what does not end while a window is open, refuses what fits into none. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from applier.errors import GuardRefusal
from applier.wording import count, duration, one_line
from planner.errors import short
from planner.plan.model import JOIN, Action, ActionPlan
from planner.plan.place_rules import HeldPlace
from planner.plan.states import OPEN, ActionState, PlanState

if TYPE_CHECKING:
    from applier.guarding.open_times import OpenTimes


class NodeWork:
    """The seconds that an action needs, or what is left on a whole node for the first on it.

    ``actions`` are those of a plan; of a node that holds a place, an action starts the work on the
    node, which must not be left half done when a window closes. ``expected_s`` returns the seconds
    within which 9 in 10 such actions end.
    """

    def __init__(self, actions: Iterable[Action], expected_s: Callable[[Action], float]) -> None:
        self._expected_s = expected_s
        self._left: Counter[HeldPlace] = Counter()
        self._begun: set[HeldPlace] = set()
        for action in actions:
            if action.places and action.state in OPEN:
                self._left.update(dict.fromkeys(action.places, expected_s(action)))
            if action.attempts or action.state is ActionState.ONGOING:
                self._begun.update(action.places)

    def needed_s(self, action: Action) -> float:
        """Return for how many seconds a window must be open when an action starts."""
        if not action.places:
            return self._expected_s(action)
        return 0.0 if self.goes_on(action) else max(self._left[place] for place in action.places)

    def goes_on(self, action: Action) -> bool:
        """Return whether its node has begun: no window holds it back."""
        return not self._begun.isdisjoint(action.places)

    def fits(self, action: Action, times: OpenTimes, now: datetime) -> bool:
        """Return whether windows are open until an action that starts now would have ended."""
        found = times.at(now)
        return found is not None and self.needed_s(action) <= (found.end - now).total_seconds()


def require(
    plan: ActionPlan,
    times: OpenTimes | None,
    work: NodeWork,
    now: datetime,
    *,
    has_to_be_open: bool,
) -> None:
    """Raise GuardRefusal if an action, or all on a node, needs longer than the longest window.

    With ``has_to_be_open`` also if nothing could start now and end before the windows close. If
    ``times`` is None, there are no windows, and every plan is accepted.
    """
    if times is None:
        return
    longest = times.longest_s(now)
    left = (a for a in plan.actions if a.state is ActionState.PENDING and a.action_type != JOIN)
    for action in left:
        seconds = work.needed_s(action)
        if seconds > longest:
            what = action.label if not action.places else f"all on {action.places[0].member}"
            raise GuardRefusal(
                plan.uuid,
                f"{one_line(what)} of plan {short(plan.uuid)} is expected to take up to "
                f"{duration(seconds)}, and the longest window lasts {duration(longest)}: "
                f"{times.words}",
            )
    if has_to_be_open and not _may_begin(plan, times, work, now):
        text = awaited(times, times.opens_after(now))
        raise GuardRefusal(plan.uuid, f"plan {short(plan.uuid)} waits for {text}")


def _may_begin(plan: ActionPlan, times: OpenTimes, work: NodeWork, now: datetime) -> bool:
    """Return whether an action whose predecessors have ended would end in the open window.

    True at any time for a plan with ONGOING actions, which a dead applier has left, and for one
    with a node that has begun.
    """
    if any(action.state is ActionState.ONGOING for action in plan.actions):
        return True
    left = {action.uuid: action for action in plan.actions if action.state in OPEN}
    ready = [a for a in left.values() if left.keys().isdisjoint(a.before())]
    if any(work.goes_on(action) for action in ready):
        return True
    if times.at(now) is None:
        return False
    return not ready or any(a.action_type == JOIN or work.fits(a, times, now) for a in ready)


def lines(plan: ActionPlan, times: OpenTimes | None, now: datetime) -> Iterator[str]:
    """Yield a line about the windows of a plan that is not over."""
    waits = (PlanState.RECOMMENDED, PlanState.PENDING, PlanState.ONGOING, PlanState.PAUSED)
    if times is not None and plan.state in waits:
        found = times.at(now)
        is_open = f"; open until {found.end:%Y-%m-%d %H:%M} UTC" if found else ""
        yield f"Window: {times.words}{is_open or _opens(times, now)}"


def _opens(times: OpenTimes, now: datetime) -> str:
    found = times.next(now)
    return f"; opens at {found.start:%Y-%m-%d %H:%M} UTC" if found else "; never opens"


def waiting(action: Action, times: OpenTimes | None, work: NodeWork, now: datetime) -> str | None:
    """Return the window, in words, for which an action has to wait; None if it need not."""
    if times is None or work.goes_on(action) or work.fits(action, times, now):
        return None
    return awaited(times, times.opens_after(now))


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
        held = begins and not self._work.fits(action, self._times, self._clock())
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
