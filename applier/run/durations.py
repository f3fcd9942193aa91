# SPDX-License-Identifier: Apache-2.0
"""How long the actions of a plan are expected to take, and what that is based on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import quantiles
from typing import NamedTuple

from applier.scheduling.type_policy import TypePolicy
from planner.model import JOIN, Action, ActionPlan
from planner.states import OPEN

#: Expected seconds of an action of which nothing is known.
OTHERWISE_S = 1.0
#: What an expected duration is based on.
ESTIMATE, RECORD, NOTHING = "estimate", "record", "nothing"


def estimates(policies: Mapping[str, TypePolicy]) -> dict[str, float]:
    """Return the configured ``estimate_s`` by action type, where there is one."""
    return {
        name: policy.estimate_s
        for name, policy in policies.items()
        if policy.estimate_s is not None
    }


class Took(NamedTuple):
    """How long earlier runs of an action type took: the median, and the 90th percentile."""

    median_s: float
    nine_in_ten_s: float


@dataclass(frozen=True)
class Durations:
    """Expected seconds by uuid, and how many open actions are based on what.

    ``cautious`` are the 90th percentiles, where the record has earlier runs.
    """

    seconds: Mapping[str, float]
    cautious: Mapping[str, float]
    known_from: Mapping[str, int]


class PastDurations:
    """Looks up how long earlier runs took, once for each action type.

    ``look_up`` is :meth:`applier.store.Store.durations`; ``otherwise`` has seconds by action type.
    """

    def __init__(
        self,
        look_up: Callable[[Sequence[str]], Mapping[str, list[float]]],
        otherwise: Mapping[str, float],
    ) -> None:
        self._look_up, self._otherwise = look_up, otherwise
        self._took: dict[str, Took | None] = {}

    def of(self, plan: ActionPlan, *, recorded: bool = True) -> Durations:
        """Return how long each action is expected to take.

        That is its own estimate, else the median of the record for its type, else the seconds of
        its type in ``otherwise``, else a second. The record is read only if an estimate is missing,
        and not at all unless ``recorded``.
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
    """Return median and 90th percentile of durations in seconds; None if there are none.

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
    # The shortest within which at least nine in ten ended.
    return Took(float(middle), float(ordered[-(-9 * len(ordered) // 10) - 1]))
