# SPDX-License-Identifier: Apache-2.0
"""Predicts in how many windows a plan ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from applier.assembly import Assembly, now
from applier.errors import ConfigurationError
from applier.guarding.nights import Night, nights
from applier.operations.predictions import Prediction, concurrency_of
from applier.wording import count, duration, one_line, some
from planner.model import JOIN, ActionPlan
from planner.states import OPEN

#: How many actions a line names.
_MOST = 4


def split(assembly: Assembly, plan: ActionPlan, found: Prediction, workers: int) -> Sequence[Night]:
    """Return the windows in which a plan would run, each with the actions that start in it.

    Raises ConfigurationError if neither the plan nor the configuration has windows.
    """
    times = assembly.open_times(plan)
    if times is None:
        raise ConfigurationError(
            "--split-by-window: neither the plan nor [watcher_applier] has windows"
        )
    concurrency = concurrency_of(assembly, plan, workers)
    expected_s, ranks = found.durations.cautious, found.forecast.ranks
    return nights(plan.actions, expected_s, concurrency, ranks, times, now())


def lines(plan: ActionPlan, found: Sequence[Night]) -> Iterator[str]:
    """Yield a line with the number of windows, one about each, and one about unstarted actions."""
    labels = {a.uuid: one_line(a.label) for a in plan.actions}
    left = sum(a.state in OPEN and a.action_type != JOIN for a in plan.actions)
    missing = left - sum(len(night.actions) for night in found)
    yield f"It takes {count(len(found), 'window')}, if each action takes as long as 9 in 10 did:"
    for night in found:
        names = some([labels[uuid] for uuid in night.actions], _MOST, ", ")
        seconds = (night.ends_at - night.interval.start).total_seconds()
        until = f"{night.interval.start:%Y-%m-%d %H:%M} to {night.interval.end:%H:%M} UTC"
        done = f"{count(len(night.actions), 'action')} until {duration(seconds)} after its begin"
        yield f"  {until}: {done}: {names}"
    if missing:
        yield f"  {count(missing, 'action')} would never start: no window is long enough."


def as_list(found: Sequence[Night]) -> list[dict[str, Any]]:
    """Return windows as JSON types."""
    return [
        {
            "opens_at": night.interval.start.isoformat(),
            "closes_at": night.interval.end.isoformat(),
            "ends_at": night.ends_at.isoformat(),
            "actions": list(night.actions),
        }
        for night in found
    ]
