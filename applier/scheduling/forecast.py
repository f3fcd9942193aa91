# SPDX-License-Identifier: Apache-2.0
"""Predicts a run of a plan: drives the scheduler with a simulated clock.

A run uses the same scheduler, so a prediction can differ from a run only in durations and outcomes.
Every action is assumed to end with the outcome ``changed``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from applier.scheduling.course import Course, Timeline
from applier.scheduling.critical import critical_path, slacks
from applier.scheduling.submissions import Concurrency
from planner.model import Action

#: The default number of forward-backward rounds that look for a shorter makespan.
ROUNDS = 3
#: For plans with more actions than this, no rounds are made: they would take too long.
MANY = 5000


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
    """Predict the start and the end of each action, with the best ranks that were found.

    The first simulation gives priority to the longest remaining path. Each of the ``rounds``
    simulates the plan backwards, and then forwards with the resulting order. The shortest timeline
    of all is returned. ``durations`` are seconds by uuid. A round takes two simulations; plans with
    more than ``MANY`` actions have none.
    """
    course = Course(actions, durations, concurrency)
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
    concurrency: Concurrency,
) -> float:
    """Return the seconds from the first start to the last end, as :func:`forecast` predicts them.

    This is faster than a forecast, because slacks and the critical path are not computed.
    """
    course = Course(actions, durations, concurrency)
    return _best(course, _longest_first(course), _rounds(course, ROUNDS))[0].makespan_s


class Ranking:
    """The ranks of :func:`forecast`, to run a plan with them, and the makespan on demand.

    Without rounds, nothing is simulated until the makespan is read.
    """

    def __init__(
        self,
        actions: Sequence[Action],
        durations: Mapping[str, float],
        concurrency: Concurrency,
        *,
        rounds: int = ROUNDS,
    ) -> None:
        self._course = Course(actions, durations, concurrency)
        self.ranks: Mapping[str, int] = _longest_first(self._course)
        self._timeline: Timeline | None = None
        rounds = _rounds(self._course, rounds)
        if rounds:
            self._timeline, self.ranks = _best(self._course, self.ranks, rounds)

    @property
    def makespan_s(self) -> float:
        """The seconds from the first start to the last end."""
        self._timeline = self._timeline or self._course.run(self.ranks)
        return self._timeline.makespan_s


def best_ranks(
    actions: Sequence[Action],
    durations: Mapping[str, float],
    concurrency: Concurrency,
    *,
    rounds: int = ROUNDS,
) -> Mapping[str, int]:
    """Return the ranks, by uuid, of the shortest timeline that :func:`forecast` finds."""
    return Ranking(actions, durations, concurrency, rounds=rounds).ranks


def _longest_first(course: Course) -> dict[str, int]:
    return course.ranked(course.remaining(course.durations))


def _rounds(course: Course, rounds: int) -> int:
    return rounds if len(course.actions) <= MANY else 0


def _best(
    course: Course, ranks: Mapping[str, int], rounds: int
) -> tuple[Timeline, Mapping[str, int]]:
    """Return the shortest timeline of the first simulation and all rounds, and its ranks."""
    best = current = course.run(ranks)
    bound = course.lower_bound(best)
    for _ in range(rounds):
        if best.makespan_s <= bound:
            break
        backwards = course.run_backwards(course.ranked(current.end_s))
        tried = course.ranked(backwards.end_s)
        current = course.run(tried)
        if current.makespan_s < best.makespan_s:
            best, ranks = current, tried
    return best, ranks
