# SPDX-License-Identifier: Apache-2.0
"""Finds the times in which a plan could not start actions, and the hold of each wait. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

from applier.contracts import PAUSES, HistoryEntry
from applier.store import Attempt
from applier.timeline.times import Times, began
from applier.timeline.values import Hold, Reason
from applier.wording import duration
from planner.plan.model import Action, ActionPlan
from planner.plan.states import PlanState

#: The verb of the history entry that is written when a run begins.
RUN = "apply"
_RUNNING = (PlanState.ONGOING, PlanState.CANCELLING)
#: The states in which nobody runs a plan that has begun and is not over.
STILL = frozenset({PlanState.PAUSED, PlanState.PENDING})


#: A part of a wait, from a second to another, and the hold that caused it; None if none is known.
Piece = tuple[float, float, Hold | None]


class Holds:
    """The holds of a plan; finds those that kept an action waiting."""

    def __init__(self, holds: Iterable[Hold]) -> None:
        self._by_token: defaultdict[str | None, list[Hold]] = defaultdict(list)
        for hold in sorted(holds):
            self._by_token[hold.token].append(hold)

    def pieces(self, action: Action, start_s: float, end_s: float, takes_s: float) -> list[Piece]:
        """Divide the time in which an action waited into parts, each with one hold or none.

        A hold by closed windows begins ``takes_s`` seconds before they close, because an action of
        that duration could not end in time. Of two holds at once, the one that began first counts.
        """
        if not self._by_token:
            return [(start_s, end_s, None)]
        tokens = (None, *action.tokens)
        found = sorted(
            (max(start_s, one.start_s - early_s), min(end_s, one.end_s), one)
            for token in tokens
            for one in self._by_token.get(token, ())
            for early_s in (takes_s if one.reason is Reason.WINDOW else 0.0,)
        )
        pieces, at = list[Piece](), start_s
        for begin, end, hold in found:
            if end <= max(at, begin):
                continue
            if begin > at:
                pieces.append((at, begin, None))
            pieces.append((max(at, begin), end, hold))
            at = end
        if at < end_s:
            pieces.append((at, end_s, None))
        return pieces


class Run(NamedTuple):
    """A run of a plan, from when it was begun to the last end of an action; who began it.

    A run that is ``cut_off``, because its applier died, went on for an unknown time after that.
    """

    began: datetime
    ended: datetime
    who: str = ""
    cut_off: bool = False


def runs(
    plan: ActionPlan,
    history: Sequence[HistoryEntry],
    attempts: Mapping[str, Sequence[Attempt]] = MappingProxyType({}),
    now: datetime | None = None,
) -> list[Run]:
    """Return the runs of a plan in their order; one that goes on lasts until ``now``, if given.

    ``attempts`` are those of actions that were retried, by uuid. A history without runs means one
    run, from the first start.
    """
    begins = [(entry.at, entry.who) for entry in history if entry.verb == RUN]
    if not begins and (first := began(plan, attempts)):
        begins = [(first, "")]
    tries = [(action.started_at, action.ended_at) for action in plan.actions]
    tries += [(one.started_at, one.ended_at) for tried in attempts.values() for one in tried]
    ends = sorted(end for _, end in tries if end is not None)
    found = []
    for number, (at, who) in enumerate(begins, 1):
        next_at = begins[number][0] if number < len(begins) else None
        before_next = len(ends) if next_at is None else bisect_left(ends, next_at)
        last = ends[before_next - 1] if before_next else at
        if now is not None and number == len(begins) and plan.state in _RUNNING:
            last = now
        # What it was in the middle of has an end that was found by the next run.
        cut_off = next_at is not None and any(
            start is not None and at <= start < next_at and (end is None or end >= next_at)
            for start, end in tries
        )
        found.append(Run(at, max(at, last), who, cut_off))
    return found


def taken(plan: ActionPlan, found: Sequence[Run]) -> str:
    """Return a text with the time that all runs took, or have taken if the plan is not over.

    The times between runs do not count.

    >>> minute = [datetime(2026, 1, 2, 3, number) for number in range(60)]
    >>> plan = ActionPlan(uuid="p", planner="weight", actions=(), state=PlanState.SUCCEEDED)
    >>> taken(plan, [Run(minute[0], minute[2]), Run(minute[30], minute[31])])
    'took 3m00s in 2 runs'
    >>> taken(plan, [Run(minute[0], minute[2], cut_off=True), Run(minute[30], minute[31])])
    'took at least 3m00s in 2 runs'
    """
    seconds = sum((run.ended - run.began).total_seconds() for run in found)
    several = f" in {len(found)} runs" if len(found) > 1 else ""
    # When the applier of a run died is not known.
    least = "at least " if any(run.cut_off for run in found) else ""
    if plan.state in _RUNNING:
        return f"has run {least}{duration(seconds)}{several}"
    if plan.state in STILL:
        return f"ran {least}{duration(seconds)}{several}, and stands still"
    return f"took {least}{duration(seconds)}{several}"


def standstills(
    plan: ActionPlan,
    found: Times,
    ran: Sequence[Run],
    history: Sequence[HistoryEntry],
    now: datetime,
) -> Iterator[Hold]:
    """Yield the times in which a begun plan was not run: between its runs, and since the last."""
    first = found.began
    if first is None:
        return
    next_ones = [run.began for run in ran[1:]] + ([now] if plan.state not in _RUNNING else [])
    for run, next_at in zip(ran, next_ones, strict=False):
        pauses = [e for e in history if e.verb in PAUSES and run.began <= e.at <= next_at]
        start = min([run.ended, *(entry.at for entry in pauses[:1])])
        start_s, end_s = ((at - first).total_seconds() for at in (start, next_at))
        yield Hold(start_s, end_s, Reason.PAUSE, _why(pauses))


def _why(pauses: Sequence[HistoryEntry]) -> str:
    if not pauses:
        return "the next run of the plan"
    asked = pauses[0]
    return f"the end of the pause by {asked.who}" + (f": {asked.why}" if asked.why else "")
