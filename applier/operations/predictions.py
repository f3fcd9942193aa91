# SPDX-License-Identifier: Apache-2.0
"""Predicts when the actions of a plan run, how long it takes, and how many windows it needs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from applier.assembly import Assembly, now
from applier.engines.tasks import only_waiting, workerless
from applier.guarding.nights import Night, nights
from applier.run import expected_durations as past
from applier.run.plan_cloud import name_of
from applier.scheduling.concurrency import Concurrency, QueueLimits, queue_limits
from applier.scheduling.course import Ranking
from applier.scheduling.forecast import Forecast, forecast
from applier.wording import count, duration, one_line, some
from planner.plan.model import JOIN, ActionPlan
from planner.plan.states import OPEN


@dataclass(frozen=True)
class Prediction:
    """A forecast, the durations behind it, and the makespan with their 90th percentiles.

    ``concurrency`` are the limits of what may run at once. ``unserved`` are the queues of its
    actions that no worker serves.
    """

    forecast: Forecast
    durations: past.Durations
    cautious_s: float
    concurrency: Concurrency
    unserved: Collection[str] = ()


def past_durations(assembly: Assembly, before: datetime | None = None) -> past.PastDurations:
    """Return the durations of earlier runs; the record is opened when they are first read.

    With ``before``, they are those that were known at that time.
    """
    return past.PastDurations(
        lambda names: assembly.plans.durations(names, before=before),
        past.estimates(assembly.policies),
    )


def predicted(
    assembly: Assembly, plan: ActionPlan, durations: past.Durations, max_workers: int
) -> Prediction:
    """Forecast the open actions of a plan, with the scheduler that a run uses."""

    concurrency, queues = _concurrency_and_queues(assembly, plan, max_workers)
    found = forecast(plan.actions, durations.seconds, concurrency)
    known = durations.known_from.get(past.RECORD)
    cautious = forecast(plan.actions, durations.cautious, concurrency) if known else found
    makespan_s = cautious.timeline.makespan_s
    return Prediction(found, durations, makespan_s, concurrency, queues.unserved)


def makespan_s(
    assembly: Assembly, plan: ActionPlan, durations: past.Durations, max_workers: int
) -> float:
    """Return the makespan that :func:`predicted` computes, in seconds; faster than a forecast."""
    concurrency = concurrency_of(assembly, plan, max_workers)
    return Ranking(plan.actions, durations.seconds, concurrency).timeline.makespan_s


def sentence(durations: past.Durations) -> str:
    """Return a sentence with the number of durations from each source.

    >>> sentence(past.Durations({}, {}, {"estimate": 2, "nothing": 1}))
    'Durations: 2 actions estimated, 1 action taken for 1 s each.'
    """
    words = {
        past.ESTIMATE: "estimated",
        past.RECORD: "from earlier runs (median)",
        past.NOTHING: f"taken for {past.OTHERWISE_S:g} s each",
    }
    parts = [
        f"{count(durations.known_from[source], 'action')} {text}"
        for source, text in words.items()
        if durations.known_from.get(source)
    ]
    return f"Durations: {', '.join(parts) or 'nothing is left to do'}."


def as_dict(plan: ActionPlan, made: Prediction) -> dict[str, Any]:
    """Return a forecast as a mapping, for JSON; times are seconds from the start.

    ``cautious_makespan_s`` is the makespan with the 90th percentile of each duration.
    """
    found = made.forecast
    critical = set(found.critical)
    return {
        "uuid": plan.uuid,
        "name": plan.name,
        "cloud": name_of(plan),
        "makespan_s": found.timeline.makespan_s,
        "cautious_makespan_s": made.cautious_s,
        "lower_bound_s": found.lower_bound_s,
        "actions": [
            {
                "uuid": a.uuid,
                "name": a.name,
                "start_s": found.timeline.start_s[a.uuid],
                "end_s": found.timeline.end_s[a.uuid],
                "slack_s": found.slack_s[a.uuid],
                "critical": a.uuid in critical,
            }
            for a in plan.actions
            if a.uuid in found.timeline.start_s
        ],
    }


def concurrency_of(assembly: Assembly, plan: ActionPlan, max_workers: int) -> Concurrency:
    """Return the limits of what may run at once in a plan: by token, by queue, and of workers.

    Raises StoreError.
    """
    return _concurrency_and_queues(assembly, plan, max_workers)[0]


def _concurrency_and_queues(
    assembly: Assembly, plan: ActionPlan, max_workers: int
) -> tuple[Concurrency, QueueLimits]:
    # A plan may have action types that are not installed.
    names = {a.action_type for a in plan.actions} & set(assembly.action_types)
    plugins = {name: assembly.plugins[name] for name in names}
    without = workerless(plan.actions, plugins)
    queues = QueueLimits()
    if assembly.route is not None:
        here = without | only_waiting(plan.actions, plugins)
        queues = queue_limits(plan.actions, assembly.route, here, assembly.store.served_queues())
    concurrency = Concurrency(
        limits={**plan.limits, **queues.limits},
        places=plan.places,
        max_workers=max_workers,
        workerless=without,
        queue_tokens=queues.tokens,
    )
    return concurrency, queues


#: How many actions a line names.
_MOST_NAMED = 4


def split_by_window(
    assembly: Assembly, plan: ActionPlan, found: Prediction, workers: int
) -> Sequence[Night]:
    """Return the windows in which a plan would run, each with the actions that start in it.

    They are none if neither the plan nor the configuration has windows.
    """
    times = assembly.open_times(plan)
    if times is None:
        return ()
    concurrency = concurrency_of(assembly, plan, workers)
    expected_s, ranks = found.durations.cautious, found.forecast.ranks
    return nights(plan.actions, expected_s, concurrency, ranks, times, now())


def window_lines(plan: ActionPlan, found: Sequence[Night]) -> Iterator[str]:
    """Yield a line with the number of windows, one about each, and one about unstarted actions.

    There are none for a plan without windows.
    """
    if not found:
        return
    labels = {a.uuid: one_line(a.label) for a in plan.actions}
    left = sum(a.state in OPEN and a.action_type != JOIN for a in plan.actions)
    missing = left - sum(len(night.actions) for night in found)
    yield f"It takes {count(len(found), 'window')}, if each action takes as long as 9 in 10 did:"
    for night in found:
        names = some([labels[uuid] for uuid in night.actions], _MOST_NAMED, ", ")
        seconds = (night.ends_at - night.interval.start).total_seconds()
        until = f"{night.interval.start:%Y-%m-%d %H:%M} to {night.interval.end:%H:%M} UTC"
        done = f"{count(len(night.actions), 'action')} until {duration(seconds)} after its begin"
        yield f"  {until}: {done}: {names}"
    if missing:
        yield f"  {count(missing, 'action')} would never start: no window is long enough."


def windows_as_list(found: Sequence[Night]) -> list[dict[str, Any]]:
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
