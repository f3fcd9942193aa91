# SPDX-License-Identifier: Apache-2.0
"""Estimates the durations of the actions of a plan, and compares them with those of its run."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from applier.scheduling.failures import TypePolicy
from applier.store.runs import Sample, node_of, size_of
from applier.wording import seconds_between
from planner.plan.model import JOIN, Action, ActionPlan
from planner.plan.states import OPEN, ActionState

#: The expected duration of an action without an estimate and without earlier runs, in seconds.
OTHERWISE_S = 1.0
#: The sources of expected durations: an estimate, earlier runs on record, or neither.
ESTIMATE, RECORD, NOTHING = "estimate", "record", "nothing"


def estimates(policies: Mapping[str, TypePolicy]) -> dict[str, float]:
    """Return the configured ``estimate_s`` of each action type that has one."""
    return {
        name: policy.estimate_s
        for name, policy in policies.items()
        if policy.estimate_s is not None
    }


#: The share of the actions that end within their cautious duration.
CAUTIOUS = 0.9
#: The size and the node of an action, each None if not known.
_Kind = tuple[str | None, str | None]


@dataclass(frozen=True)
class Durations:
    """The expected durations of actions in seconds by uuid, and the number of open ones by source.

    The duration of a join or of an action that has ended is 0. ``cautious`` has the 90th
    percentiles instead for actions whose durations come from earlier runs.
    """

    seconds: Mapping[str, float]
    cautious: Mapping[str, float]
    known_from: Mapping[str, int]


class PastDurations:
    """Looks up the durations of earlier runs, once for each action type.

    ``look_up`` is :meth:`applier.store.runs.RunStore.durations`. ``otherwise`` has the seconds to
    use for action types without earlier runs.
    """

    def __init__(
        self,
        look_up: Callable[[Sequence[str]], Mapping[str, Sequence[Sample]]],
        otherwise: Mapping[str, float],
    ) -> None:
        self._look_up, self._otherwise = look_up, otherwise
        self._samples: dict[str, SamplesOfType | None] = {}

    def of(self, plan: ActionPlan, *, recorded: bool = True) -> Durations:
        """Return the expected duration of each action: see :meth:`expected`.

        Earlier runs are looked up only if ``recorded``, and only if an action has no estimate.
        """
        left = _left(plan)
        if recorded:
            self._ask(_without_estimate(left))
        seconds: dict[str, float] = dict.fromkeys((a.uuid for a in plan.actions), 0.0)
        cautious, known_from = dict(seconds), Counter[str]()
        for action in left:
            seconds[action.uuid] = self._quantile(action, 0.5)
            cautious[action.uuid] = self._quantile(action, CAUTIOUS)
            known_from[self._source(action)] += 1
        return Durations(seconds, cautious, known_from)

    def expected(self, action: Action, share: float) -> float:
        """Return the seconds within which this share of actions such as this one end.

        That is the estimate of the action itself, else the quantile of earlier runs of its type, in
        which those of the same size and node count more (:class:`applier.run.pooled.Pooled`), else
        the seconds of its type in ``otherwise``, else one second.
        """
        self._ask(_without_estimate([action]))
        return self._quantile(action, share)

    def drawn(self, action: Action, chance: float) -> float:
        """Return a duration that is drawn from earlier runs, in seconds.

        ``chance`` is a random number from 0 to below 1. For an action with an estimate, or without
        earlier runs, the duration is that of :meth:`expected`.
        """
        self._ask(_without_estimate([action]))
        pooled = self._pooled(action)
        return self._assumed(action)[0] if pooled is None else pooled.draw(chance)

    def samples(self, plan: ActionPlan) -> int:
        """Return the number of earlier runs from which the durations of a plan are taken."""
        names = _without_estimate(_left(plan))
        self._ask(names)
        return sum(found.number for name in names if (found := self._samples.get(name)))

    def are_known(self, plan: ActionPlan, *, recorded: bool = True) -> bool:
        """Return whether each open action has an estimate or earlier runs, as :meth:`of` uses."""
        names = _without_estimate(_left(plan))
        if recorded:
            self._ask(names)
        return all(self._samples.get(name) or name in self._otherwise for name in names)

    def is_known(self, action: Action) -> bool:
        """Return whether an action has an estimate or earlier runs of its type."""
        self._ask(_without_estimate([action]))
        return self._source(action) != NOTHING

    def _quantile(self, action: Action, share: float) -> float:
        pooled = self._pooled(action)
        return self._assumed(action)[0] if pooled is None else pooled.quantile(share)

    def _source(self, action: Action) -> str:
        return self._assumed(action)[1] if self._pooled(action) is None else RECORD

    def _pooled(self, action: Action) -> Pooled | None:
        """Return the earlier runs for an action; None if there are none or it has an estimate."""
        samples = self._samples.get(action.action_type)
        if action.estimate_s is not None or samples is None:
            return None
        return samples.pooled(size_of(action.input_parameters), node_of(action.tokens))

    def _assumed(self, action: Action) -> tuple[float, str]:
        """Return the duration of an action without earlier runs, and its source."""
        estimate = action.estimate_s
        if estimate is None:
            estimate = self._otherwise.get(action.action_type)
        return (OTHERWISE_S, NOTHING) if estimate is None else (estimate, ESTIMATE)

    def _ask(self, names: Iterable[str]) -> None:
        new = sorted(set(names) - set(self._samples))
        found = self._look_up(new) if new else {}
        for name in new:
            samples = found.get(name)
            self._samples[name] = SamplesOfType(samples) if samples else None


class SamplesOfType:
    """The durations of earlier runs of one action type, by size and node."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        ordered = sorted(samples, key=lambda sample: sample.seconds)
        self.number = len(ordered)
        self._groups: dict[_Kind, list[float]] = {(None, None): [s.seconds for s in ordered]}
        for sample in ordered:
            kinds = {(sample.size, sample.node), (sample.size, None), (None, sample.node)}
            for kind in kinds - {(None, None)}:
                self._groups.setdefault(kind, []).append(sample.seconds)
        self._pooled: dict[_Kind, Pooled] = {}

    def pooled(self, size: str | None, node: str | None) -> Pooled:
        """Return the pooled durations for a size and a node, each None if it is not known.

        The nested groups are all durations of the type, those of the size, and those of the size on
        the node.
        """
        found = self._pooled.get((size, node))
        if found is None:
            nested = [(None, None), (size, None), (size, node)]
            groups = [self._groups.get(kind, []) for kind in dict.fromkeys(nested)]
            found = self._pooled[size, node] = Pooled(groups)
        return found


def _left(plan: ActionPlan) -> list[Action]:
    return [a for a in plan.actions if a.state in OPEN and a.action_type != JOIN]


def _without_estimate(actions: Iterable[Action]) -> set[str]:
    """Return the types of the actions that have no estimate of their own."""
    return {action.action_type for action in actions if action.estimate_s is None}


#: A group with this number of samples has the same weight as the group that contains it.
PRIOR = 5
#: The largest error of a sum of weights.
_ROUNDING = 1e-9


class Pooled:
    """The distribution of a quantity of which samples are known in nested groups.

    ``groups`` have their samples in ascending order. The first has all samples; each other group is
    a part of the group before it. The distribution of a group of n samples is n / (n + k) of its
    own samples and k / (n + k) of the distribution of the group before it, with k = ``PRIOR``. That
    is the posterior mean of a Dirichlet process whose base is the group before it (T. S. Ferguson,
    "A Bayesian Analysis of Some Nonparametric Problems", Annals of Statistics 1, 1973).

    >>> Pooled([[10.0, 11.0, 12.0, 30.0]]).quantile(0.5)
    11.5
    >>> Pooled([[10.0, 11.0, 12.0, 30.0], [30.0]]).quantile(0.5)
    12.0
    """

    def __init__(self, groups: Sequence[Sequence[float]]) -> None:
        self._all = groups[0]
        #: The weight of each group, largest groups first; the weights sum up to 1.
        self._parts: list[tuple[float, Sequence[float]]] = [(1.0, groups[0])]
        for group in groups[1:]:
            if group:
                own = len(group) / (len(group) + PRIOR)
                self._parts = [(weight * (1 - own), part) for weight, part in self._parts]
                self._parts.append((own, group))

    def quantile(self, share: float) -> float:
        """Return the smallest sample that is at least as large as this share of the distribution.

        The median, ``share`` 0.5, is the mean of the two samples in the middle if there are two.
        """
        values = self._all
        at = bisect_left(values, share - _ROUNDING, key=self._below)
        found = values[min(at, len(values) - 1)]
        if share == 0.5 and self._below(found) <= share + _ROUNDING:
            above = bisect_right(values, found)
            return (found + values[min(above, len(values) - 1)]) / 2
        return found

    def draw(self, chance: float) -> float:
        """Return a sample at random; ``chance`` is evenly distributed from 0 to below 1."""
        for weight, part in self._parts:
            if chance < weight:
                return part[min(int(chance / weight * len(part)), len(part) - 1)]
            chance -= weight
        return self._parts[-1][1][-1]

    def _below(self, value: float) -> float:
        """Return the share of the distribution that is at most ``value``."""
        return sum(weight * bisect_right(part, value) / len(part) for weight, part in self._parts)


class PlannedAndTaken(NamedTuple):
    """The sums for the actions of one type: how many, planned and taken seconds."""

    actions: int
    planned_s: float
    taken_s: float

    @property
    def error(self) -> float | None:
        """The difference as a share of the planned seconds; None if nothing was planned.

        >>> PlannedAndTaken(2, 100.0, 125.0).error
        0.25
        """
        return (self.taken_s - self.planned_s) / self.planned_s if self.planned_s else None


def by_type(
    actions: Iterable[Action], planned_s: Mapping[str, float]
) -> dict[str, PlannedAndTaken]:
    """Compare planned and taken durations by action type, in the order of the types' names.

    Only actions count that SUCCEEDED and have a planned duration (by uuid) and both times; the time
    that an action took is that of its last attempt.
    """
    found: defaultdict[str, PlannedAndTaken] = defaultdict(lambda: PlannedAndTaken(0, 0.0, 0.0))
    for a in actions:
        if a.uuid not in planned_s or a.state is not ActionState.SUCCEEDED:
            continue
        taken_s = seconds_between(a.started_at, a.ended_at)
        if taken_s is None:
            continue
        number, planned, taken = found[a.action_type]
        found[a.action_type] = PlannedAndTaken(
            number + 1, planned + planned_s[a.uuid], taken + taken_s
        )
    return dict(sorted(found.items()))
