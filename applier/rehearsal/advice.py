# SPDX-License-Identifier: Apache-2.0
"""Finds a limit of a plan whose lower value reduces the damage of failures in a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from applier.contracts import MAX_WORKERS
from applier.rehearsal.rehearsal_figures import RehearsalFigures
from applier.scheduling.submissions import Concurrency
from planner.plan.model import Action

#: A lower limit helps if it lowers a figure at least to this share.
_BETTER = 0.9
#: Limits whose figures differ by less than this factor help alike.
_ALIKE = 1.1
#: The most limits that are tried, besides the number of workers.
MOST = 6


class Lowered(NamedTuple):
    """A limit that was tried with a lower value, and the figures of the rehearsals with it."""

    limit: str
    old: int
    new: int
    figures: RehearsalFigures


#: Rehearses the plan with other limits.
Rehearse = Callable[[Concurrency], RehearsalFigures]


def lowered(
    actions: Sequence[Action], concurrency: Concurrency, rehearse: Rehearse
) -> list[Lowered]:
    """Rehearse with each limit that can bind at a half, a quarter, ... of its value, down to 1."""
    limits = dict(concurrency.limits)
    found = []
    for name, old in _binding(actions, concurrency):
        value = old // 2
        while value:
            if name == MAX_WORKERS:
                changed = replace(concurrency, max_workers=value)
            else:
                changed = replace(concurrency, limits={**limits, name: value})
            found.append(Lowered(name, old, value, rehearse(changed)))
            value //= 2
    return found


def best(planned: RehearsalFigures, tried: Sequence[Lowered]) -> Lowered | None:
    """Return the lower limit to advise; None if none helps.

    A limit helps if fewer actions go wrong on average, or fewer instances are without a home at
    worst, and neither gets worse. Of those that help about alike, the fastest is returned.
    """
    helps = [found for found in tried if _is_better(found.figures, planned)]
    if not helps:
        return None
    least = min(found.figures.wrong_mean for found in helps)
    alike = [found for found in helps if found.figures.wrong_mean <= _ALIKE * least]
    return min(alike, key=lambda f: (f.figures.makespan_s.median, f.figures.homeless.worst))


def _is_better(found: RehearsalFigures, planned: RehearsalFigures) -> bool:
    wrong, homeless = planned.wrong_mean, planned.homeless.worst
    if found.wrong_mean > wrong or found.homeless.worst > homeless:
        return False
    return found.wrong_mean < _BETTER * wrong or found.homeless.worst < _BETTER * homeless


def _binding(actions: Sequence[Action], concurrency: Concurrency) -> Iterator[tuple[str, int]]:
    """Yield the limits above 1, each at most as high as the number of actions that can use it."""
    workers = min(concurrency.max_workers, len(actions))
    if workers > 1:
        yield MAX_WORKERS, workers
    holders = Counter(token for action in actions for token in action.tokens)
    members = {place for action in actions for place in action.places}
    holders.update(place.token for place in members)
    for token, number in list(holders.items()):
        every = f"{token.partition(':')[0]}:*"
        holders[every] = max(holders[every], number)
    bounds = ((name, min(number, holders[name])) for name, number in concurrency.limits.items())
    yield from [(name, number) for name, number in bounds if number > 1][:MOST]
