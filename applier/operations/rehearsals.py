# SPDX-License-Identifier: Apache-2.0
"""Rehearses a plan with the configuration, the action plugins and the durations of this record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from applier.assembly import Assembly
from applier.configuration import plugin_options
from applier.contracts import ActionPlugin
from applier.guarding.failure_budget import FailureBudget
from applier.operations.predictions import concurrency_of
from applier.rehearsal import rehearsal_figures
from applier.rehearsal.faults import Attempts, Fault, concerned
from applier.rehearsal.one_rehearsal import HomesOfPlan, Rehearsal, Rehearsed
from applier.rehearsal.rehearsal_figures import Lowered, OfAction, RehearsalFigures, figures
from applier.run.expected_durations import PastDurations
from applier.run.plan_cloud import name_of
from applier.scheduling.concurrency import Concurrency
from applier.scheduling.course import Course, Ranking
from applier.scheduling.failures import FailureRules
from planner.plan.model import Action, ActionPlan, Touch

#: How often a plan is rehearsed by default.
TIMES = 200
#: How often it is rehearsed at most for each lower limit that is tried.
_TRIES = 60
#: Plans with more actions are not tried with lower limits.
_MANY = 2000


class Settings(NamedTuple):
    """The injected faults, the number of rehearsals, and the seed of the random numbers."""

    faults: tuple[Fault, ...]
    times: int = TIMES
    seed: int = 1


@dataclass(frozen=True, kw_only=True)
class Rehearsals:
    """The figures of many rehearsals of a plan, and one rehearsal without faults.

    ``tried`` are the lower limits that were tried. They are compared with ``compared``, the figures
    of as many rehearsals with the limits of the plan. ``advised`` is the best of ``tried``; None if
    none helps. ``samples`` is the number of earlier runs of actions from which durations were
    drawn. ``not_rehearsed`` are the guards of the plan that are not simulated.
    """

    plan: ActionPlan
    settings: Settings
    max_workers: int
    figures: RehearsalFigures
    without_faults: Rehearsed
    samples: int
    compared: RehearsalFigures
    tried: Sequence[Lowered] = ()
    advised: Lowered | None = None
    not_rehearsed: Sequence[str] = ()


#: Is called after each rehearsal.
Progress = Callable[[], None]


def rehearsed(
    assembly: Assembly,
    plan: ActionPlan,
    known: PastDurations,
    settings: Settings,
    *,
    max_workers: int,
    advise: bool = True,
    progress: Progress = lambda: None,
) -> Rehearsals:
    """Rehearse the open actions of a plan; raises InvalidInput for faults that concern no action.

    With ``advise``, lower limits are tried if an action goes wrong in any rehearsal; not if a run
    does not end, because one that hangs early has few failures.
    """
    prepared = _Preparation(assembly, plan, known, settings)
    concurrency = concurrency_of(assembly, plan, max_workers)
    found = compared = prepared.figures(concurrency, settings.times, progress)
    tried: list[Lowered] = []
    advised = None
    if advise and found.wrong.worst and not found.endless and len(plan.actions) <= _MANY:
        times = min(settings.times, _TRIES)
        if times < settings.times:
            compared = prepared.figures(concurrency, times, progress)
        tried = rehearsal_figures.lowered(
            plan.actions, concurrency, lambda c: prepared.figures(c, times, progress)
        )
        advised = rehearsal_figures.best(compared, tried)
    return Rehearsals(
        plan=plan,
        settings=settings,
        max_workers=max_workers,
        figures=found,
        without_faults=prepared.without_faults(concurrency),
        samples=known.samples(plan),
        compared=compared,
        tried=tried,
        advised=advised,
        not_rehearsed=_left_out(assembly, plan),
    )


def _left_out(assembly: Assembly, plan: ActionPlan) -> list[str]:
    """Return the names of the guards of a plan that rehearsals do not simulate."""
    windows = assembly.guard.demanded(plan).windows
    found = {"windows": windows, "health_probe": assembly.conf.watcher_applier.health_probe}
    return [name for name, demanded in found.items() if demanded]


class _Preparation:
    """Rehearses one plan with different limits."""

    def __init__(
        self,
        assembly: Assembly,
        plan: ActionPlan,
        known: PastDurations,
        settings: Settings,
    ) -> None:
        self._plan = plan
        budget = assembly.guard.demanded(plan).failure_budget
        self._make_budget = partial(FailureBudget, budget, plan.actions) if budget else None
        self._seconds = known.of(plan).seconds
        self._rules = FailureRules(
            on_failure=plugin_options.on_failure_of(assembly.conf, plan),
            policies=assembly.policies,
            tolerances=plan.tolerances,
        )
        installed = {a.action_type for a in plan.actions} & set(assembly.action_types)
        plugins = {name: assembly.plugins[name] for name in installed}
        self._homes = HomesOfPlan(plan.actions, touches_of(plan.actions, plugins))
        make = partial(
            Attempts,
            plan.actions,
            policies=assembly.policies,
            verified={n for n, p in plugins.items() if p.verify is not ActionPlugin.verify},
            seed=settings.seed,
        )
        self._attempts = make(known.drawn, faults=concerned(settings.faults, plan.actions))
        self._calm = make(lambda action, _: self._seconds[action.uuid], faults={})

    def figures(self, concurrency: Concurrency, times: int, progress: Progress) -> RehearsalFigures:
        """Rehearse the plan ``times`` times with these limits, and return the figures."""
        rehearsal, runs = self._with(concurrency), []
        for number in range(1, times + 1):
            runs.append(rehearsal.run(partial(self._attempts.end, number)))
            progress()
        return figures(self._plan.actions, runs)

    def without_faults(self, concurrency: Concurrency) -> Rehearsed:
        """Rehearse once without faults and with the expected durations."""
        return self._with(concurrency).run(partial(self._calm.end, 0))

    def _with(self, concurrency: Concurrency) -> Rehearsal:
        course = Course(self._plan.actions, self._seconds, concurrency)
        ranks = Ranking(self._plan.actions, self._seconds, concurrency).ranks
        return Rehearsal(course, ranks, self._rules, self._homes, self._make_budget)


def touches_of(
    actions: Sequence[Action], plugins: Mapping[str, type[ActionPlugin]]
) -> dict[str, Sequence[Touch]]:
    """Return the resources that each action touches, by uuid, but for types without a plugin."""
    return {
        a.uuid: plugins[a.action_type].touches(a.input_parameters)
        for a in actions
        if a.action_type in plugins
    }


def as_dict(found: Rehearsals) -> dict[str, Any]:
    """Return rehearsals as a mapping, for JSON; times are seconds, null for "does not end"."""
    plan = found.plan
    return {
        "uuid": plan.uuid,
        "name": plan.name,
        "cloud": name_of(plan),
        "inject": [str(fault) for fault in found.settings.faults],
        "seed": found.settings.seed,
        "max_workers": found.max_workers,
        "not_rehearsed": list(found.not_rehearsed),
        "samples": found.samples,
        **_figures(found.figures),
        "without_faults": {
            "makespan_s": _finite(found.without_faults.makespan_s),
            "homeless": found.without_faults.homeless_most,
        },
        "actions": [_of_action(of) for of in found.figures.actions],
        "half_done": [of._asdict() for of in found.figures.half_done],
        "lower_limits": [
            {
                "limit": tried.limit,
                "planned": tried.old,
                "tried": tried.new,
                "advised": tried is found.advised,
                **_figures(tried.figures),
            }
            for tried in found.tried
        ],
    }


def _figures(found: RehearsalFigures) -> dict[str, Any]:
    return {
        "runs": found.runs,
        "states": dict(found.states),
        "makespan_s": {name: _finite(value) for name, value in found.makespan_s._asdict().items()},
        "went_wrong": {**found.wrong._asdict(), "mean": found.wrong_mean},
        "not_run_mean": found.not_run_mean,
        "stopped_by": dict(found.stopped_by),
        "homeless": {**found.homeless._asdict(), "left": found.homeless_left},
    }


def _of_action(of: OfAction) -> dict[str, Any]:
    return {
        "uuid": of.action.uuid,
        "name": of.action.name,
        "went_wrong": of.wrong,
        "not_run": of.not_run,
        "hangs": of.hangs,
    }


def _finite(seconds: float) -> float | None:
    return seconds if seconds != float("inf") else None
