# SPDX-License-Identifier: Apache-2.0
"""Forecasts for the verbs, and a sentence about the durations behind them."""

from __future__ import annotations

from dataclasses import dataclass

from applier.cli.session import Session
from applier.engines.tasks import workerless
from applier.run.durations import (
    ESTIMATE,
    NOTHING,
    OTHERWISE_S,
    RECORD,
    Durations,
    PastDurations,
    estimates,
)
from applier.scheduling import forecast as forecasting
from applier.scheduling.forecast import Forecast, forecast
from applier.scheduling.gates import Concurrency
from applier.wording import count
from planner.model import ActionPlan


@dataclass(frozen=True)
class Prediction:
    """A forecast, the durations behind it, and the makespan with their 90th percentiles."""

    forecast: Forecast
    durations: Durations
    cautious_s: float


def past_durations(session: Session) -> PastDurations:
    """Return the durations of earlier runs; the record is opened when they are first read."""
    return PastDurations(lambda names: session.store.durations(names), estimates(session.policies))


def predicted(
    session: Session, plan: ActionPlan, durations: Durations, max_workers: int
) -> Prediction:
    """Forecast the open actions of a plan, with the scheduler that a run uses."""

    concurrency = _concurrency(session, plan, max_workers)
    found = forecast(plan.actions, durations.seconds, concurrency)
    known = durations.known_from.get(RECORD)
    cautious = forecast(plan.actions, durations.cautious, concurrency) if known else found
    return Prediction(found, durations, cautious.timeline.makespan_s)


def makespan_s(session: Session, plan: ActionPlan, durations: Durations, max_workers: int) -> float:
    """Return the makespan that :func:`predicted` gives, without the rest of its forecast."""
    concurrency = _concurrency(session, plan, max_workers)
    return forecasting.makespan_s(plan.actions, durations.seconds, concurrency)


def sentence(durations: Durations) -> str:
    """Return a sentence that says where the durations come from.

    >>> sentence(Durations({}, {}, {"estimate": 2, "nothing": 1}))
    'Durations: 2 actions estimated, 1 action taken for 1 s each.'
    """
    words = {
        ESTIMATE: "estimated",
        RECORD: "from earlier runs (median of the type)",
        NOTHING: f"taken for {OTHERWISE_S:g} s each",
    }
    parts = [
        f"{count(durations.known_from[source], 'action')} {text}"
        for source, text in words.items()
        if durations.known_from.get(source)
    ]
    return f"Durations: {', '.join(parts) or 'nothing is left to do'}."


def _concurrency(session: Session, plan: ActionPlan, max_workers: int) -> Concurrency:
    # A plan may have action types that are not installed.
    names = {a.action_type for a in plan.actions} & set(session.action_types)
    plugins = {name: session.plugins[name] for name in names}
    return Concurrency(
        limits=plan.limits, max_workers=max_workers, workerless=workerless(plan.actions, plugins)
    )
