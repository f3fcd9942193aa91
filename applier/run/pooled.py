# SPDX-License-Identifier: Apache-2.0
"""Quantiles of few samples, pooled with those of larger groups. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

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
