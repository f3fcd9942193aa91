# SPDX-License-Identifier: Apache-2.0
"""The timeline of a plan: how it should have run, how it ran, and how its rest is expected to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from applier.assembly import Assembly
from applier.contracts import HistoryEntry
from applier.errors import DamagedRecord, PlanNotFound
from applier.operations import who_runs
from applier.operations.last_run import attempts_of, fresh
from applier.operations.predictions import concurrency_of, past_durations
from applier.run.expected_durations import NOTHING
from applier.scheduling.concurrency import Concurrency
from applier.scheduling.course import Course, Ranking, Timeline
from applier.scheduling.forecast import forecast
from applier.scheduling.waiting import resources_of
from applier.store import PlanStore
from applier.timeline.chart import chart
from applier.timeline.holds import Run, runs, standstills, taken
from applier.timeline.times import Times, began, times
from applier.timeline.values import Chart, Hold, LaneKind, Reason
from applier.timeline.waits import Observed, RunLimits, are_unexplained, critical_path, waits
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ActionState


def timeline(
    assembly: Assembly,
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
    found = observed(assembly, plan, workers, now=now, is_stored=is_stored)
    at_workers = _workers(assembly.plans, plan) if is_stored and kind is LaneKind.WORKER else {}
    return chart(plan, found, keep=keep, kind=kind, workers=at_workers)


def _workers(store: PlanStore, plan: ActionPlan) -> dict[str, str]:
    """Return, by uuid of the action, the remote worker that ran it last or runs it now."""
    from applier.storage.sql_store import SqlStore

    if not isinstance(store, SqlStore):
        return {}
    ended = store.all_attempts(plan.uuid, most=0)
    found = {uuid: tried[-1].worker for uuid, tried in ended.items()}
    found |= {job.key.action: job.worker for job in store.jobs_of(plan.uuid)}
    return {uuid: name for uuid, name in found.items() if name is not None}


def observed(
    assembly: Assembly, plan: ActionPlan, workers: int, *, now: datetime, is_stored: bool
) -> Observed:
    """Return when actions ran by the store, and when they are expected to: see :func:`timeline`."""
    past = past_durations(assembly)
    attempts = attempts_of(assembly.plans, plan) if is_stored else {}
    history = assembly.plans.history(plan.uuid) if is_stored else []
    ran = runs(plan, history, attempts, now)
    ran_first = ran[0].began if ran else None
    limits = _limits(assembly, plan, workers, is_stored=is_stored)
    concurrency, seconds = limits.concurrency, past.of(plan).seconds
    if began(plan, attempts, ran_first) is None:
        made = forecast(plan.actions, seconds, concurrency)
        found = times(plan, now=now, expected=made.timeline, attempts=attempts)
        waiting, critical = waits(plan, found, limits), made.critical
        whole_s, is_known = made.timeline.makespan_s, past.are_known(plan)
    else:
        whole = from_the_beginning(plan)
        allowed = concurrency_of(assembly, whole, workers)
        known = past_durations(assembly, began(plan, attempts, ran_first)).of(whole)
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
        own = tuple(of_itself(assembly, plan, found, ran, history, now))
        waiting = waits(plan, found, replace(limits, holds=own))
        if are_unexplained(waiting):
            others = tuple(of_others(assembly, plan, found))
            waiting = waits(plan, found, replace(limits, holds=(*own, *others)))
        critical, whole_s = critical_path(found, waiting), planned.makespan_s
        is_known = NOTHING not in known.known_from
    told = taken(plan, ran) if ran else ""
    return Observed(found, waiting, critical, whole_s, is_known, told)


def _limits(assembly: Assembly, plan: ActionPlan, workers: int, *, is_stored: bool) -> RunLimits:
    """Return the limits as operators have changed them, and the resources that other plans hold."""
    changed = {"max_workers": workers, **plan.limits}
    changed |= who_runs.of_last_run(assembly.plans, plan) if is_stored else {}
    workers = changed.pop("max_workers")
    runs = is_stored and plan.state in who_runs.RUNNING
    return RunLimits(
        concurrency=concurrency_of(assembly, replace(plan, limits=changed), workers),
        held={
            r.resource: f"{r.resource}, on which plan {r.name or r.plan[:8]} of {r.user} works"
            for r in (assembly.plans.held_by_others(plan.uuid) if runs else ())
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
    ranks = dict(Ranking(actions, left, concurrency).ranks)
    ranks |= {action.uuid: i - len(running) for i, action in enumerate(running)}
    return Course(actions, left, concurrency).run(ranks)


#: How many plans that may have held resources are listed, and how many of them are loaded.
_MOST_LISTED, _MOST_READ = 100, 10


def of_itself(
    assembly: Assembly,
    plan: ActionPlan,
    found: Times,
    ran: Sequence[Run],
    history: Sequence[HistoryEntry],
    now: datetime,
) -> Iterator[Hold]:
    """Yield the times in which the plan was paused, or nobody ran it, or its windows were closed.

    Windows of the configuration are those that it has now, not those of then.
    """
    yield from standstills(plan, found, ran, history, now)
    windows = assembly.open_times(plan)
    if windows is not None and found.began is not None:
        end = found.began + timedelta(seconds=found.span_s)
        for closed in windows.closed(found.began, end):
            start_s, end_s = ((at - found.began).total_seconds() for at in closed)
            yield Hold(start_s, end_s, Reason.WINDOW, f"the window {windows.words}")


def of_others(assembly: Assembly, plan: ActionPlan, found: Times) -> Iterator[Hold]:
    """Yield the times of runs of other plans that work on a resource of this plan."""
    from applier.storage.sql_store import SqlStore

    wanted, store = set(resources_of(plan.actions)), assembly.plans
    if found.began is None or not wanted or not isinstance(store, SqlStore):
        return
    began, end = found.began, found.began + timedelta(seconds=found.span_s)
    listed = store.list_plans(limit=_MOST_LISTED, until=end)
    those = [
        one.uuid
        for one in listed
        if one.uuid != plan.uuid and one.updated_at is not None and one.updated_at >= began
    ]
    for uuid in those[:_MOST_READ]:
        try:
            other, history = store.load_plan(uuid), store.history(uuid)
        except (DamagedRecord, PlanNotFound):
            continue
        shared = sorted(wanted & {token for a in other.actions for token in a.tokens})
        if not shared:
            continue
        for run in runs(other, history, now=end):
            named = f"plan {other.name or uuid[:8]} of {run.who}"
            start_s, end_s = ((at - began).total_seconds() for at in (run.began, run.ended))
            for token in shared:
                yield Hold(start_s, end_s, Reason.PLAN, f"{token}, on which {named} worked", token)
