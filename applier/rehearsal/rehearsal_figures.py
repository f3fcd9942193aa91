# SPDX-License-Identifier: Apache-2.0
"""Sums up many rehearsed runs of a plan, and finds a limit whose lower value does less damage."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from applier.contracts import MAX_WORKERS
from applier.rehearsal.one_rehearsal import Rehearsed
from applier.scheduling.concurrency import Concurrency
from planner.plan.model import JOIN, Action
from planner.plan.states import WELL, ActionState, PlanState

#: The guard that keeps actions from running after a failure.
NEEDS = "needs"
#: A rehearsal that does not end is counted under this text, instead of the state of the plan.
HANGS = "does not end"
#: An action in one of these went wrong by itself.
WRONG = frozenset({ActionState.FAILED, ActionState.UNKNOWN})
#: An action in one of these did not run.
NOT_RUN = frozenset({ActionState.PENDING, ActionState.FAILED_DEPENDENCIES, ActionState.CANCELLED})


class Quantiles(NamedTuple):
    """Half of the runs have at most ``median``, nine in ten at most ``nine_in_ten``."""

    median: float
    nine_in_ten: float
    worst: float


class OfAction(NamedTuple):
    """The numbers of runs in which an action went wrong, did not run, or did not end."""

    action: Action
    wrong: int
    not_run: int
    hangs: int


class HalfDone(NamedTuple):
    """A resource, and the number of runs in which only some of its actions ended well."""

    resource: str
    runs: int


class RehearsalFigures(NamedTuple):
    """The figures of ``runs`` rehearsals of a plan.

    ``states`` counts the runs by the state of the plan in the end, or HANGS. ``makespan_s`` is of
    all runs, infinite for one that does not end. ``wrong`` are numbers of actions that went wrong
    in a run, ``wrong_mean`` is their mean. ``stopped_by`` counts the runs that each guard stopped
    or, for ``needs``, in which it kept actions from running. ``homeless`` are the largest numbers
    of instances without a home (:class:`applier.rehearsal.one_rehearsal.Homes`) at one time of a
    run, ``homeless_runs`` is the number of runs with the worst of them, ``homeless_left`` the
    largest number at the end of a run.
    """

    runs: int
    states: Mapping[str, int]
    makespan_s: Quantiles
    wrong: Quantiles
    wrong_mean: float
    not_run_mean: float
    stopped_by: Mapping[str, int]
    homeless: Quantiles
    homeless_runs: int
    homeless_left: int
    actions: Sequence[OfAction]
    half_done: Sequence[HalfDone]

    @property
    def well(self) -> int:
        """The number of runs that end well."""
        return self.states.get(PlanState.SUCCEEDED, 0)

    @property
    def endless(self) -> int:
        """The number of runs that do not end."""
        return self.states.get(HANGS, 0)


def figures(actions: Sequence[Action], runs: Sequence[Rehearsed]) -> RehearsalFigures:
    """Sum up rehearsals of the same actions; there is at least one."""
    working = [a for a in actions if a.action_type != JOIN]
    wrong = [sum(run.ends[a.uuid] in WRONG for a in working) for run in runs]
    not_run = [sum(run.ends[a.uuid] in NOT_RUN for a in working) for run in runs]
    homeless = [run.homeless_most for run in runs]
    return RehearsalFigures(
        runs=len(runs),
        states=Counter(HANGS if run.state is None else str(run.state) for run in runs),
        makespan_s=quantiles(run.makespan_s for run in runs),
        wrong=quantiles(wrong),
        wrong_mean=sum(wrong) / len(runs),
        not_run_mean=sum(not_run) / len(runs),
        stopped_by=_stopped_by(runs),
        homeless=quantiles(homeless),
        homeless_runs=homeless.count(max(homeless)),
        homeless_left=max(run.homeless_left for run in runs),
        actions=_of_actions(working, runs),
        half_done=_half_done(working, runs),
    )


def quantiles(values: Iterable[float]) -> Quantiles:
    """Return the quantiles of values: for each, the smallest value that is large enough.

    >>> quantiles([5, 1, 2, 9])
    Quantiles(median=2, nine_in_ten=9, worst=9)
    """
    ordered = sorted(values)

    def at(share: float) -> float:
        return ordered[max(0, math.ceil(share * len(ordered)) - 1)]

    return Quantiles(at(0.5), at(0.9), ordered[-1])


def _stopped_by(runs: Sequence[Rehearsed]) -> Counter[str]:
    found = Counter[str]()
    for run in runs:
        ends = run.ends.values()
        if run.guard is not None and (ActionState.PENDING in ends or ActionState.CANCELLED in ends):
            found[run.guard] += 1
        if ActionState.FAILED_DEPENDENCIES in ends:
            found[NEEDS] += 1
    return found


def _of_actions(actions: Sequence[Action], runs: Sequence[Rehearsed]) -> list[OfAction]:
    """Return the actions that did not always end well, those that went wrong most often first."""
    found = []
    for action in actions:
        ends = Counter(run.ends[action.uuid] for run in runs)
        wrong = sum(ends[state] for state in WRONG)
        not_run = sum(ends[state] for state in NOT_RUN)
        if wrong or not_run or ends[ActionState.ONGOING]:
            found.append(OfAction(action, wrong, not_run, ends[ActionState.ONGOING]))
    return sorted(found, key=lambda of: (-of.wrong - of.hangs, -of.not_run))


def _half_done(actions: Sequence[Action], runs: Sequence[Rehearsed]) -> list[HalfDone]:
    """Return the resources on which some actions were done and others not, most often first."""
    on: dict[str, list[str]] = {}
    for action in actions:
        for token in action.tokens:
            if not token.startswith("type:"):
                on.setdefault(token, []).append(action.uuid)
    shared = {resource: uuids for resource, uuids in on.items() if len(uuids) > 1}
    found = Counter[str]()
    for run in runs:
        well = {uuid for uuid, state in run.ends.items() if state in WELL}
        if len(well) == len(run.ends):
            continue
        for resource, uuids in shared.items():
            done = sum(uuid in well for uuid in uuids)
            found[resource] += 0 < done < len(uuids)
    return [HalfDone(resource, number) for resource, number in found.most_common() if number]


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
