# SPDX-License-Identifier: Apache-2.0
"""Finds the times in which a pause, a closed window or another plan held actions of a plan back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from applier.assembly import Assembly
from applier.contracts import HistoryEntry
from applier.errors import DamagedRecord, PlanNotFound, sound_part
from applier.scheduling.waiting import resources_of
from applier.timeline.holds import RUN, attempt_spans, standstills
from applier.timeline.times import NOTHING, Times, times
from applier.timeline.values import Hold, Reason
from planner.model import ActionPlan

#: How many plans that may have held resources are listed, and how many of them are loaded.
_MOST_LISTED, _MOST_READ = 100, 10


class _Run(NamedTuple):
    """A run of another plan, up to its last end, in seconds from the beginning of this plan."""

    start_s: float
    end_s: float


def of_itself(
    parts: Assembly, plan: ActionPlan, found: Times, history: Sequence[HistoryEntry], now: datetime
) -> Iterator[Hold]:
    """Yield the times in which the plan was paused, or nobody ran it, or its windows were closed.

    Windows of the configuration are those that it has now, not those of then.
    """
    yield from standstills(plan, found, history, now)
    windows = parts.open_times(plan)
    if windows is not None and found.began is not None:
        end = found.began + timedelta(seconds=found.span_s)
        for closed in windows.closed(found.began, end):
            start_s, end_s = ((at - found.began).total_seconds() for at in closed)
            yield Hold(start_s, end_s, Reason.WINDOW, f"the window {windows.words}")


def of_others(parts: Assembly, plan: ActionPlan, found: Times) -> Iterator[Hold]:
    """Yield the times of runs of other plans that work on a resource of this plan."""
    wanted = set(resources_of(plan.actions))
    if found.began is None or not wanted:
        return
    began, end = found.began, found.began + timedelta(seconds=found.span_s)
    listed = parts.store.list_plans(limit=_MOST_LISTED, until=end)
    those = [
        one.uuid
        for one in listed
        if one.uuid != plan.uuid and one.updated_at is not None and one.updated_at >= began
    ]
    for uuid in those[:_MOST_READ]:
        read = partial(parts.store.history, uuid)
        try:
            other, (history, _) = parts.store.load_plan(uuid), sound_part(read)
        except (DamagedRecord, PlanNotFound):
            continue
        shared = sorted(wanted & {token for a in other.actions for token in a.tokens})
        if not shared:
            continue
        for entry, run in _runs(other, history, began, end):
            named = f"plan {other.name or uuid[:8]} of {entry.who}"
            for token in shared:
                text = f"{token}, on which {named} worked"
                yield Hold(run.start_s, run.end_s, Reason.PLAN, text, token)


def _runs(
    other: ActionPlan, history: Sequence[HistoryEntry], began: datetime, end: datetime
) -> Iterator[tuple[HistoryEntry, _Run]]:
    """Yield the runs of another plan, in seconds from the beginning of ours."""
    entries = [entry for entry in history if entry.verb == RUN]
    if not entries:
        return
    first = entries[0].at
    when = times(other, now=end, expected=NOTHING, attempts={}, first_run=first)
    ends = sorted(end_s for _, end_s in attempt_spans(when))
    offset = (first - began).total_seconds()
    starts = [(entry.at - first).total_seconds() for entry in entries]
    for entry, start_s, next_s in zip(entries, starts, [*starts[1:], float("inf")], strict=True):
        last_s = max((e for e in ends if start_s <= e < next_s), default=start_s)
        yield entry, _Run(start_s + offset, last_s + offset)
