# SPDX-License-Identifier: Apache-2.0
"""How long the last run of a plan took, by its record, and how long it was expected to take."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from applier.operations.predictions import ForecastParts, makespan_s, past_durations
from applier.operations.timelines import attempts_of, fresh
from applier.run.durations import NOTHING
from applier.store import Store
from planner.model import ActionPlan

#: The entry of the history with which a run begins.
_BEGINS = "apply"


class LastRun(NamedTuple):
    """The seconds of a run from its first start to its last end, as expected and as they were.

    ``planned_s`` is None if the duration of an action was not known before.
    """

    planned_s: float | None
    taken_s: float


def last_run(parts: ForecastParts, store: Store, plan: ActionPlan, workers: int) -> LastRun:
    """Return the times of the last run of a stored plan with this number of workers."""
    planned_s = _planned_s(parts, plan, _began(store, plan), workers)
    return LastRun(planned_s, taken_s(store, plan))


def taken_s(store: Store, plan: ActionPlan) -> float:
    """Return the seconds from the first start to the last end of the last run of a stored plan."""
    first = first_start(store, plan)
    last = max((a.ended_at for a in plan.actions if a.ended_at is not None), default=None)
    return 0.0 if first is None or last is None else max(0.0, (last - first).total_seconds())


def first_start(store: Store, plan: ActionPlan) -> datetime | None:
    """Return when the first action started that the last run of a stored plan has started."""
    began = _began(store, plan)
    starts = [a.started_at for a in plan.actions if a.started_at is not None]
    starts += [one.started_at for tried in attempts_of(store, plan).values() for one in tried]
    return min((at for at in starts if began is None or at >= began), default=None)


def _began(store: Store, plan: ActionPlan) -> datetime | None:
    """Return when the last run of a plan began; None if an older release has run it."""
    entries = reversed(store.history(plan.uuid))
    return next((entry.at for entry in entries if entry.verb == _BEGINS), None)


def _planned_s(
    parts: ForecastParts, plan: ActionPlan, began: datetime | None, workers: int
) -> float | None:
    """Return how long what had not ended when the run began was expected to take."""

    def had_ended(at: datetime | None) -> bool:
        return at is not None and began is not None and at < began

    actions = (a if had_ended(a.ended_at) else fresh(a) for a in plan.actions)
    open_then = replace(plan, actions=tuple(actions))
    durations = past_durations(parts, began).of(open_then)
    if NOTHING in durations.known_from:
        return None
    return makespan_s(parts, open_then, durations, workers)
