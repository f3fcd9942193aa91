# SPDX-License-Identifier: Apache-2.0
"""The forecast: the scheduler, driven by a simulated clock.

The engine drives the same scheduler, so that prediction and run can differ only in durations and
failures. Every action is assumed to succeed and to change something.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from applier.scheduling.course import Course, Timeline
from applier.scheduling.critical import critical_path, slacks
from planner.model import Action

#: How many forward-backward rounds are tried for a shorter makespan.
ROUNDS = 3
#: Above this many actions no rounds are tried: they would take too long.
MANY = 5000


@dataclass(frozen=True, kw_only=True, slots=True)
class Forecast:
    """A timeline, what decides its length, and the ranks that give it.

    ``lower_bound_s`` is what no order can beat. ``critical`` is a chain of actions, each of which
    starts when the one before it ends, from the beginning to the makespan; ``slack_s`` is by how
    much an action may be late without moving the end, in this schedule.
    """

    timeline: Timeline
    lower_bound_s: float
    slack_s: Mapping[str, float]
    critical: tuple[str, ...]
    ranks: Mapping[str, int]


def forecast(
    actions: Sequence[Action],
    durations: Mapping[str, float],
    *,
    limits: Mapping[str, int],
    max_workers: int,
    rounds: int = ROUNDS,
    workerless: Collection[str] = (),
) -> Forecast:
    """Predict when each action starts and ends, with the best ranks that were found.

    Longest remaining path first; then, ``rounds`` times, scheduled backwards from the ends and
    forwards again in that order; the best of all is kept, so it is never longer than the first.
    ``durations`` are seconds by uuid. Each round costs two simulations; above ``MANY`` actions
    there are none.
    """
    course = Course(actions, durations, limits, max_workers, workerless)
    best, ranks = _best(course, _longest_first(course), _rounds(course, rounds))
    return Forecast(
        timeline=best,
        lower_bound_s=course.lower_bound(best),
        slack_s=slacks(course, best),
        critical=critical_path(course, best),
        ranks=ranks,
    )


def makespan_s(
    actions: Sequence[Action],
    durations: Mapping[str, float],
    *,
    limits: Mapping[str, int],
    max_workers: int,
    workerless: Collection[str] = (),
) -> float:
    """Return the seconds from the first start to the last end, as :func:`forecast` predicts them.

    Cheaper than a forecast, because slacks and the critical path are not computed.
    """
    course = Course(actions, durations, limits, max_workers, workerless)
    return _best(course, _longest_first(course), _rounds(course, ROUNDS))[0].makespan_s


def best_ranks(
    actions: Sequence[Action],
    durations: Mapping[str, float],
    *,
    limits: Mapping[str, int],
    max_workers: int,
    rounds: int = ROUNDS,
    workerless: Collection[str] = (),
) -> Mapping[str, int]:
    """Return only the ranks of :func:`forecast`, for running the plan.

    Without rounds, nothing is simulated.
    """
    course = Course(actions, durations, limits, max_workers, workerless)
    ranks, rounds = _longest_first(course), _rounds(course, rounds)
    return _best(course, ranks, rounds)[1] if rounds else ranks


def _longest_first(course: Course) -> dict[str, int]:
    return course.ranked(course.remaining(course.durations))


def _rounds(course: Course, rounds: int) -> int:
    return rounds if len(course.actions) <= MANY else 0


def _best(
    course: Course, ranks: Mapping[str, int], rounds: int
) -> tuple[Timeline, Mapping[str, int]]:
    """Return the shortest timeline of the first simulation and all rounds, and its ranks."""
    best = current = course.run(ranks)
    bound = course.lower_bound(best) if rounds else 0.0
    for _ in range(rounds):
        if best.makespan_s <= bound:
            break
        backwards = course.run_backwards(course.ranked(current.end_s))
        tried = course.ranked(backwards.end_s)
        current = course.run(tried)
        if current.makespan_s < best.makespan_s:
            best, ranks = current, tried
    return best, ranks
