# SPDX-License-Identifier: Apache-2.0
"""Sums up many rehearsed runs of a plan."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from applier.rehearsal.rehearsed import Rehearsed
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
    of instances without a home (:class:`applier.rehearsal.rehearsed.Homes`) at one time of a run,
    ``homeless_runs`` is the number of runs with the worst of them, ``homeless_left`` the largest
    number at the end of a run.
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
