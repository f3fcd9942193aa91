# SPDX-License-Identifier: Apache-2.0
"""Finds the times in which a plan could not start actions, and the hold of each wait. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

from applier.contracts import PAUSES, HistoryEntry
from applier.timeline.times import Times
from applier.timeline.values import Hold, Reason
from planner.model import Action, ActionPlan
from planner.states import PlanState

#: The verb of the history entry that is written when a run begins.
RUN = "apply"
_RUNNING = (PlanState.ONGOING, PlanState.CANCELLING)


class Piece(NamedTuple):
    """A part of a wait, and the hold that caused it; None if no hold is known."""

    start_s: float
    end_s: float
    hold: Hold | None


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
            return [Piece(start_s, end_s, None)]
        tokens = (None, *action.tokens)
        found = sorted(
            (max(start_s, one.start_s - early_s), min(end_s, one.end_s), one)
            for token in tokens
            for one in self._by_token.get(token, ())
            for early_s in (takes_s if one.reason is Reason.WINDOW else 0.0,)
        )
        pieces, at = [], start_s
        for begin, end, hold in found:
            if end <= max(at, begin):
                continue
            if begin > at:
                pieces.append(Piece(at, begin, None))
            pieces.append(Piece(max(at, begin), end, hold))
            at = end
        if at < end_s:
            pieces.append(Piece(at, end_s, None))
        return pieces


def first_run(history: Sequence[HistoryEntry]) -> datetime | None:
    """Return when the first run of a plan began; None if the history does not have it."""
    return min((entry.at for entry in history if entry.verb == RUN), default=None)


def standstills(
    plan: ActionPlan, found: Times, history: Sequence[HistoryEntry], now: datetime
) -> Iterator[Hold]:
    """Yield the times in which a begun plan was not run: between two runs, and since the last."""
    began = found.began
    if began is None:
        return
    runs = [entry.at for entry in history if entry.verb == RUN]
    if plan.state not in _RUNNING:
        runs.append(now)
    ends = sorted(end_s for _, end_s in attempt_spans(found))
    for before, run in pairwise((at - began).total_seconds() for at in runs):
        pauses = [
            entry
            for entry in history
            if entry.verb in PAUSES and before <= (entry.at - began).total_seconds() <= run
        ]
        last_end_s = max((end_s for end_s in ends if end_s <= run), default=before)
        starts = [max(before, last_end_s)]
        starts += [(entry.at - began).total_seconds() for entry in pauses[:1]]
        yield Hold(min(starts), run, Reason.PAUSE, _why(pauses))


def attempt_spans(found: Times) -> Iterator[tuple[float, float]]:
    """Yield the start and the end of each attempt that ran or is expected to run."""
    for uuid in found.runs:
        yield from found.earlier.get(uuid, ())
        yield found.intervals[uuid]


def _why(pauses: Sequence[HistoryEntry]) -> str:
    if not pauses:
        return "the next run of the plan"
    asked = pauses[0]
    return f"the end of the pause by {asked.who}" + (f": {asked.why}" if asked.why else "")
