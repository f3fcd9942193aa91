# SPDX-License-Identifier: Apache-2.0
"""The timeline of a plan: how it should have run, how it ran, and how its rest is expected to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from applier.assembly import Assembly
from applier.errors import sound_part
from applier.operations import changed_limits, holds
from applier.operations.last_run import attempts_of, fresh
from applier.operations.predictions import ForecastParts, concurrency_of, past_durations
from applier.run.durations import NOTHING
from applier.scheduling.course import Course, Timeline
from applier.scheduling.forecast import best_ranks, forecast
from applier.scheduling.submissions import Concurrency
from applier.store import Store
from applier.timeline.chart import chart
from applier.timeline.holds import first_run
from applier.timeline.times import Times, began, times
from applier.timeline.values import Chart, LaneKind
from applier.timeline.waits import RunLimits, Waiting, are_unexplained, critical_path, waits
from planner.model import Action, ActionPlan
from planner.states import ActionState, PlanState

_RUNNING = (PlanState.ONGOING, PlanState.CANCELLING)


class Observed(NamedTuple):
    """When the actions of a plan ran or will run, why each waited, and the critical path.

    ``waiting`` is by uuid; ``critical`` are the uuids of the critical path, in its order.
    ``whole_s`` is the makespan in seconds that was forecast for the whole plan; ``is_known`` is
    false if the duration of an action was not known before the first start.
    """

    times: Times
    waiting: Mapping[str, Waiting]
    critical: Sequence[str]
    whole_s: float
    is_known: bool = True


def timeline(
    parts: Assembly,
    plan: ActionPlan,
    workers: int,
    *,
    now: datetime,
    is_stored: bool,
    keep: Callable[[Action], bool] | None = None,
    kind: LaneKind | None = None,
) -> Chart:
    """Return the timeline of a plan, or of those of its actions that ``keep`` accepts.

    Attempts, history, changed limits and the resources of other plans are read only if the plan
    ``is_stored``. The beginning is in local time. Lanes are of a ``kind``; None selects the kind
    that suits the plan.
    """
    found = observed(parts, plan, workers, now=now, is_stored=is_stored)
    at_workers = _workers(parts.store, plan) if is_stored and kind is LaneKind.WORKER else {}
    return chart(
        plan,
        found.times,
        found.waiting,
        found.critical,
        expected_s=found.whole_s,
        keep=keep,
        kind=kind,
        workers=at_workers,
    )


def drawn(plan: ActionPlan, found: Observed) -> Chart:
    """Return the timeline of all actions of a plan, from their observed times."""
    return chart(plan, found.times, found.waiting, found.critical, expected_s=found.whole_s)


def _workers(store: Store, plan: ActionPlan) -> dict[str, str]:
    """Return, by uuid of the action, the remote worker that ran it last or runs it now."""
    ended, _ = sound_part(lambda: store.all_attempts(plan.uuid, most=0))
    jobs, _ = sound_part(lambda: store.jobs_of(plan.uuid))
    found = {uuid: tried[-1].worker for uuid, tried in ended.items()}
    found |= {job.key.action: job.worker for job in jobs}
    return {uuid: name for uuid, name in found.items() if name is not None}


def observed(
    parts: Assembly, plan: ActionPlan, workers: int, *, now: datetime, is_stored: bool
) -> Observed:
    """Return when actions ran by the store, and when they are expected to: see :func:`timeline`."""
    past = past_durations(parts)
    attempts = attempts_of(parts.store, plan) if is_stored else {}
    history = sound_part(lambda: parts.store.history(plan.uuid))[0] if is_stored else []
    ran_first = first_run(history)
    limits = _limits(parts, plan, workers, is_stored=is_stored)
    concurrency, seconds = limits.concurrency, past.of(plan).seconds
    if began(plan, attempts, ran_first) is None:
        made = forecast(plan.actions, seconds, concurrency)
        found = times(plan, now=now, expected=made.timeline, attempts=attempts)
        waiting, critical = waits(plan, found, limits), made.critical
        whole_s, is_known = made.timeline.makespan_s, past.are_known(plan)
    else:
        whole = from_the_beginning(plan)
        allowed = concurrency_of(parts, whole, workers)
        known = past_durations(parts, began(plan, attempts, ran_first)).of(whole)
        planned = _expected(whole.actions, known.seconds, allowed, now)
        expected = _expected(plan.actions, seconds, concurrency, now)
        found = times(
            plan,
            now=now,
            expected=expected,
            planned=planned,
            attempts=attempts,
            first_run=ran_first,
        )
        if found.began is not None:
            found = replace(found, began=found.began.astimezone())
        own = tuple(holds.of_itself(parts, plan, found, history, now))
        waiting = waits(plan, found, replace(limits, holds=own))
        if are_unexplained(waiting):
            others = tuple(holds.of_others(parts, plan, found))
            waiting = waits(plan, found, replace(limits, holds=(*own, *others)))
        critical, whole_s = critical_path(found, waiting), planned.makespan_s
        is_known = NOTHING not in known.known_from
    return Observed(found, waiting, critical, whole_s, is_known)


def _limits(parts: ForecastParts, plan: ActionPlan, workers: int, *, is_stored: bool) -> RunLimits:
    """Return the limits as operators have changed them, and the resources that other plans hold."""
    changed = {"max_workers": workers, **plan.limits}
    changed |= changed_limits.of_last_run(parts.store, plan) if is_stored else {}
    workers = changed.pop("max_workers")
    runs = is_stored and plan.state in _RUNNING
    return RunLimits(
        concurrency=concurrency_of(parts, replace(plan, limits=changed), workers),
        held={
            r.resource: f"{r.resource}, on which plan {r.name or r.plan[:8]} of {r.user} works"
            for r in (parts.store.held_by_others(plan.uuid) if runs else ())
        },
    )


def from_the_beginning(plan: ActionPlan) -> ActionPlan:
    """Return a plan as if nothing of it had run."""
    return replace(plan, actions=tuple(map(fresh, plan.actions)))


def _expected(
    actions: Sequence[Action],
    seconds: Mapping[str, float],
    concurrency: Concurrency,
    now: datetime,
) -> Timeline:
    """Predict how the open actions run from now on: those that run keep running."""
    left = dict(seconds)
    running = [a for a in actions if a.state is ActionState.ONGOING]
    for action in running:
        if action.started_at is not None:
            ran_s = (now - action.started_at).total_seconds()
            left[action.uuid] = max(0.0, left[action.uuid] - max(0.0, ran_s))
    ranks = dict(best_ranks(actions, left, concurrency))
    ranks |= {action.uuid: i - len(running) for i, action in enumerate(running)}
    return Course(actions, left, concurrency).run(ranks)
