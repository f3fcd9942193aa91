# SPDX-License-Identifier: Apache-2.0
"""Predicts a run of a plan: its course, its critical path, and the slack of each action.

A run uses the same scheduler, so a prediction can differ from a run only in durations and outcomes.
Every action is assumed to end with the outcome ``changed``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from applier.scheduling.concurrency import Concurrency
from applier.scheduling.course import ROUNDS, Ranking, Timeline
from applier.scheduling.critical_path import critical_path, slacks
from planner.plan.model import Action


@dataclass(frozen=True, kw_only=True, slots=True)
class Forecast:
    """A timeline with its critical path, and the ranks with which a run follows it.

    No order of the actions can take less than ``lower_bound_s``. ``critical`` is a chain of actions
    from the beginning to the end of the plan, each of which starts when the previous one ends.
    ``slack_s`` is how late each action may end without delaying the end of the plan.
    """

    timeline: Timeline
    lower_bound_s: float
    slack_s: Mapping[str, float]
    critical: tuple[str, ...]
    ranks: Mapping[str, int]


def forecast(
    actions: Sequence[Action],
    durations: Mapping[str, float],
    concurrency: Concurrency,
    *,
    rounds: int = ROUNDS,
) -> Forecast:
    """Predict the start and the end of each action, by the ranking of :class:`Ranking`."""
    ranking = Ranking(actions, durations, concurrency, rounds=rounds)
    course, timeline = ranking.course, ranking.timeline
    return Forecast(
        timeline=timeline,
        lower_bound_s=course.lower_bound(timeline),
        slack_s=slacks(course, timeline),
        critical=critical_path(course, timeline),
        ranks=ranking.ranks,
    )
