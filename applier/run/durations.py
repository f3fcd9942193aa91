# SPDX-License-Identifier: Apache-2.0
"""Estimates the durations of the actions of a plan, and says what each estimate is based on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import quantiles
from typing import NamedTuple

from applier.scheduling.type_policy import TypePolicy
from planner.model import JOIN, Action, ActionPlan
from planner.states import OPEN

#: The expected duration of an action of which nothing is known, in seconds.
OTHERWISE_S = 1.0
#: The sources of expected durations.
ESTIMATE, RECORD, NOTHING = "estimate", "record", "nothing"


def estimates(policies: Mapping[str, TypePolicy]) -> dict[str, float]:
    """Return the configured ``estimate_s`` of each action type that has one."""
    return {
        name: policy.estimate_s
        for name, policy in policies.items()
        if policy.estimate_s is not None
    }


class Took(NamedTuple):
    """The median and the 90th percentile of the durations of earlier runs of an action type."""

    median_s: float
    nine_in_ten_s: float


@dataclass(frozen=True)
class Durations:
    """The expected duration of each action by uuid, and the number of open actions by source.

    ``cautious`` holds the 90th percentiles instead, for action types with earlier runs.
    """

    seconds: Mapping[str, float]
    cautious: Mapping[str, float]
    known_from: Mapping[str, int]


class PastDurations:
    """Looks up the durations of earlier runs, once for each action type.

    ``look_up`` is :meth:`applier.store.Store.durations`. ``otherwise`` has the seconds to use for
    action types without earlier runs.
    """

    def __init__(
        self,
        look_up: Callable[[Sequence[str]], Mapping[str, list[float]]],
        otherwise: Mapping[str, float],
    ) -> None:
        self._look_up, self._otherwise = look_up, otherwise
        self._took: dict[str, Took | None] = {}

    def of(self, plan: ActionPlan, *, recorded: bool = True) -> Durations:
        """Return the expected duration of each action.

        That is the estimate of the action itself, else the median of earlier runs of its type, else
        the seconds of its type in ``otherwise``, else one second. Earlier runs are looked up only
        if ``recorded``, and only if an action has no estimate.
        """
        left = _left(plan)
        if recorded:
            self._ask(_without_estimate(left))
        seconds: dict[str, float] = dict.fromkeys((a.uuid for a in plan.actions), 0.0)
        cautious, known_from = dict(seconds), Counter[str]()
        for action in left:
            took, source = self._one(action)
            seconds[action.uuid], cautious[action.uuid] = took
            known_from[source] += 1
        return Durations(seconds, cautious, known_from)

    def are_known(self, plan: ActionPlan, *, recorded: bool = True) -> bool:
        """Return whether :meth:`of` bases the duration of each action on something."""
        names = _without_estimate(_left(plan))
        if recorded:
            self._ask(names)
        return all(self._took.get(name) or name in self._otherwise for name in names)

    def _one(self, action: Action) -> tuple[Took, str]:
        if action.estimate_s is not None:
            return Took(action.estimate_s, action.estimate_s), ESTIMATE
        found = self._took.get(action.action_type)
        if found is not None:
            return found, RECORD
        estimate = self._otherwise.get(action.action_type)
        if estimate is not None:
            return Took(estimate, estimate), ESTIMATE
        return Took(OTHERWISE_S, OTHERWISE_S), NOTHING

    def _ask(self, names: Iterable[str]) -> None:
        new = sorted(set(names) - set(self._took))
        found = self._look_up(new) if new else {}
        self._took |= {name: took(found.get(name, ())) for name in new}


def _left(plan: ActionPlan) -> list[Action]:
    return [a for a in plan.actions if a.state in OPEN and a.action_type != JOIN]


def _without_estimate(actions: Iterable[Action]) -> set[str]:
    """Return the types of the actions that have no estimate of their own."""
    return {action.action_type for action in actions if action.estimate_s is None}


def took(runs: Sequence[float]) -> Took | None:
    """Return the median and the 90th percentile of durations in seconds; None if there are none.

    Quantiles, not averages: one run that hung for an hour must not move them.

    >>> took([10, 12, 11, 3600, 10, 13, 12, 11, 10, 12])
    Took(median_s=11.5, nine_in_ten_s=13.0)
    >>> took([7.0])
    Took(median_s=7.0, nine_in_ten_s=7.0)
    """
    if not runs:
        return None
    if len(runs) == 1:
        return Took(runs[0], runs[0])
    ordered = sorted(runs)
    middle = quantiles(ordered, n=2, method="inclusive")[0]
    # The shortest duration within which at least nine of ten runs ended.
    return Took(float(middle), float(ordered[-(-9 * len(ordered) // 10) - 1]))
