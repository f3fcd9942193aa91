# SPDX-License-Identifier: Apache-2.0
"""Collects the content of a report of a plan, from the record and from forecasts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from applier.assembly import Assembly
from applier.contracts import HistoryEntry
from applier.errors import sound_part
from applier.operations import approving, predictions, timelines, worker_lines
from applier.operations.last_run import next_steps
from applier.operations.timelines import Observed
from applier.report import heads, inputs, lists, pictures, what_if
from applier.report.action_rows import OUTPUT, SLIGHT_S, rows, spare
from applier.report.values import CurvePoint, ReportContent, Slow, TypeTimes
from applier.run.durations import Durations
from applier.run.planned_and_taken import by_type
from applier.scheduling.forecast import Forecast
from applier.store import Attempt, Store
from applier.wording import count, duration
from planner.errors import shown
from planner.model import JOIN, ActionPlan
from planner.render.look import LOOKS
from planner.states import ENDED_PLAN

#: How many of the slowest actions are listed.
SLOWEST = 5


def report(
    parts: Assembly,
    plan: ActionPlan,
    workers: int,
    *,
    now: datetime,
    is_stored: bool,
    before: ReportContent | None = None,
) -> ReportContent:
    """Return the content of the report of a plan at the time ``now``.

    Attempts, history, approvals and differences are included only if the plan ``is_stored``.
    ``before`` is an earlier report of the same plan: the parts that a run does not change are
    copied from it, which is faster.
    """
    store = parts.store if is_stored else None
    found = timelines.observed(parts, plan, workers, now=now, is_stored=is_stored)
    fresh = timelines.from_the_beginning(plan)
    durations = predictions.past_durations(parts).of(fresh)
    planned_s = _planned_s(parts, fresh, found.times.began)
    made = predictions.predicted(parts, fresh, durations, workers)
    kept = _kept(store, plan.uuid) if store else _NOTHING
    attempts, history = kept.attempts, kept.history
    curve = before.points if before else _curve(parts, fresh, durations, workers)
    left = list(lists.left(plan))
    return ReportContent(
        uuid=plan.uuid,
        title=plan.name or plan.planner,
        state=str(plan.state),
        mark=_mark(plan),
        summary=heads.summary(plan, found),
        is_open=plan.state not in ENDED_PLAN,
        facts=list(heads.facts(parts, plan, found, history, workers, store)),
        warnings=[*plan.warnings, *_unserved(store, plan), *kept.damaged],
        left=left[: lists.MOST_LEFT],
        more_left=max(0, len(left) - lists.MOST_LEFT),
        next_steps=list(next_steps(plan)),
        timeline=pictures.timeline(timelines.drawn(plan, found)),
        graph=pictures.graph(plan),
        rows=rows(plan, found, made.forecast, attempts),
        actions=sum(a.action_type != JOIN for a in plan.actions),
        points=curve,
        curve=what_if.drawn(curve),
        slack=_slack(made.forecast),
        slowest=_slowest(plan, found, made.forecast, planned_s),
        types=list(_types(plan, planned_s)),
        differences=before.differences
        if before
        else lists.differences(parts, store, plan, workers)
        if store
        else None,
        approvals=list(approving.lines(parts, plan, zone=None)) if store else [],
        history=lists.entries(plan, history),
        durations=predictions.sentence(durations),
        input=before.input if before else inputs.actions_text(plan, parts.action_types),
        configuration=inputs.configuration_text(parts.conf, plan),
        made=f"{now.astimezone():%Y-%m-%d %H:%M:%S %z}",
    )


class _Kept(NamedTuple):
    """What is kept about a plan, and a sentence about each damaged row of it, which is left out."""

    attempts: Mapping[str, Sequence[Attempt]]
    history: Sequence[HistoryEntry]
    damaged: Sequence[str]


_NOTHING = _Kept({}, [], [])


def _kept(store: Store, uuid: str) -> _Kept:
    attempts, of_attempts = sound_part(lambda: store.all_attempts(uuid, most=OUTPUT))
    history, of_history = sound_part(lambda: store.history(uuid))
    _, of_requests = sound_part(lambda: store.requests(uuid))
    _, of_approvals = sound_part(lambda: store.approvals(uuid))
    damaged = (*of_attempts, *of_history, *of_requests, *of_approvals)
    return _Kept(attempts, history, shown([f"{row}; it is left out" for row in damaged]))


def _unserved(store: object, plan: ActionPlan) -> list[str]:
    """Return the warning about queues without workers in which actions wait, if there are any."""
    return [text] if (text := worker_lines.waits_in_vain(store, plan)) else []


def _curve(
    parts: Assembly, fresh: ActionPlan, durations: Durations, workers: int
) -> list[CurvePoint]:
    def makespan_s(number: int) -> float:
        return predictions.makespan_s(parts, fresh, durations, number)

    return what_if.points(makespan_s, len(fresh.actions), workers)


def _planned_s(parts: Assembly, fresh: ActionPlan, began: datetime | None) -> dict[str, float]:
    """Return the expected seconds of actions by uuid, as known when the plan began.

    Actions without an estimate or earlier runs are left out.
    """
    known = predictions.past_durations(parts, began)
    seconds = known.of(fresh).seconds
    return {a.uuid: seconds[a.uuid] for a in fresh.actions if known.is_known(a)}


def _mark(plan: ActionPlan) -> str:
    return LOOKS[str(plan.state)].mark if str(plan.state) in LOOKS else ""


def _slack(made: Forecast) -> str:
    """Return a sentence with the number of actions without slack, and the bound of the makespan."""
    if not made.slack_s:
        return "The plan has no actions."
    bound = sum(slack < SLIGHT_S for slack in made.slack_s.values())
    return (
        f"{bound} of {count(len(made.slack_s), 'action')} may not be late: what delays one of them "
        f"delays the plan. No order of the actions takes less than {duration(made.lower_bound_s)}."
    )


def _slowest(
    plan: ActionPlan, found: Observed, made: Forecast, planned_s: Mapping[str, float]
) -> list[Slow]:
    times, critical = found.times, set(found.critical)

    def took_s(uuid: str) -> float:
        return times.intervals[uuid].end_s - times.intervals[uuid].start_s

    ran = [a for a in plan.actions if a.uuid in times.runs]
    return [
        Slow(
            name=action.label,
            action_type=action.action_type,
            planned=duration(planned_s.get(action.uuid)),
            took=duration(took_s(action.uuid)),
            slack=spare(made.slack_s.get(action.uuid)),
            is_critical=action.uuid in critical,
        )
        for action in sorted(ran, key=lambda a: took_s(a.uuid), reverse=True)[:SLOWEST]
    ]


def _types(plan: ActionPlan, planned_s: Mapping[str, float]) -> Iterator[TypeTimes]:
    for name, sums in by_type(plan.actions, planned_s).items():
        error = "-" if sums.error is None else f"{sums.error:+.0%}"
        yield TypeTimes(name, sums.actions, duration(sums.planned_s), duration(sums.taken_s), error)
