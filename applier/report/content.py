# SPDX-License-Identifier: Apache-2.0
"""Collects the content of a report of a plan, from the record and from forecasts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from applier.assembly import Assembly
from applier.contracts import MAX_WORKERS, HistoryEntry
from applier.errors import DamagedRecord, PlanNotFound
from applier.operations import approving, predictions, timelines, who_runs
from applier.operations import differences as comparing
from applier.operations.differences import lines as difference_lines
from applier.operations.last_run import next_steps
from applier.report import attention, heads, inputs, what_if
from applier.report.action_rows import OUTPUT, SLIGHT_S, Row, numbered, rows
from applier.report.attention import Button, Need, ProgressBar
from applier.report.what_if import CurvePoint
from applier.run.expected_durations import Durations, PlannedAndTaken, by_type
from applier.scheduling.forecast import Forecast
from applier.store import PlanSummary
from applier.timeline import svg as timeline_svg
from applier.timeline.chart import chart
from applier.timeline.waits import Observed
from applier.wording import count, duration
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ENDED_PLAN
from planner.render import look
from planner.render import svg as graph_svg

if TYPE_CHECKING:
    from applier.storage.sql_store import SqlStore


#: The lanes of the timeline of plans with more actions than this cannot be opened.
MOST_OPEN = 1000
#: The width of the timeline in pixels.
WIDTH = 980


class ReportContent(NamedTuple):
    """All that a report shows, as its templates use it. Only its pictures are escaped already.

    ``timeline`` is folded if there are many actions; ``lanes`` is then the whole one, else empty.
    ``running`` has the actions that run, for how long and for how long they still will; ``left``
    those that are not done, in groups. ``rows`` has the first of the actions, whose ``numbers`` are
    by uuid. ``differences`` is None if there is no earlier plan of the same name, or its name and
    lines of text.
    """

    plan: ActionPlan
    summary: str
    about: str
    progress: ProgressBar
    buttons: Sequence[Button]
    needs: Sequence[Need]
    running: Sequence[tuple[Action, str, str]]
    left: Sequence[Sequence[Action]]
    is_open: bool
    facts: Sequence[tuple[str, str]]
    next_steps: Sequence[str]
    timeline: str
    lanes: str
    graph: str
    numbers: Mapping[str, int]
    rows: Sequence[Row]
    slowest: Sequence[Row]
    points: Sequence[CurvePoint]
    curve: str
    slack: str
    types: Mapping[str, PlannedAndTaken]
    differences: tuple[str, Sequence[str]] | None
    approvals: Sequence[str]
    history: Sequence[HistoryEntry]
    durations: str
    input: str
    configuration: str
    made: str


def stored(
    parts: Assembly, uuid: str, *, now: datetime, before: ReportContent | None = None
) -> ReportContent:
    """Return the report of a stored plan, in which everything is of one moment of the record.

    Raises PlanNotFound. ``before`` is as for :func:`report`.
    """

    def read() -> ReportContent:
        plan, workers = parts.store.load_plan(uuid), parts.max_workers
        return report(parts, plan, workers, now=now, is_stored=True, before=before)

    return parts.store.of_one_moment(read)


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
    history = store.history(plan.uuid) if store else []
    if store is not None:
        workers = who_runs.of_last_run(store, plan).get(MAX_WORKERS, workers)
    found = timelines.observed(parts, plan, workers, now=now, is_stored=is_stored)
    fresh = timelines.from_the_beginning(plan)
    durations = predictions.past_durations(parts).of(fresh)
    planned_s = _planned_s(parts, fresh, found.times.began)
    made = predictions.predicted(parts, fresh, durations, workers)
    timeline, lanes = _timelines(plan, found)
    attempts = store.all_attempts(plan.uuid, most=OUTPUT) if store else {}
    table, slowest = rows(plan, found, made.forecast, planned_s, attempts)
    needs, buttons = attention.for_people(parts, store, plan)
    curve = before.points if before else _curve(parts, fresh, durations, workers)
    return ReportContent(
        plan=plan,
        summary=heads.summary(plan, found),
        about=heads.about(plan, history),
        progress=attention.progress(Counter(a.state for _, a in numbered(plan))),
        buttons=buttons,
        needs=needs,
        running=list(attention.running(plan, found)),
        left=attention.left(plan),
        is_open=plan.state not in ENDED_PLAN,
        facts=list(heads.facts(parts, plan, found, history, workers, store)),
        next_steps=list(next_steps(plan)),
        timeline=timeline,
        lanes=lanes,
        graph=graph_svg.render(plan, own_style=False),
        numbers=look.numbered(plan),
        rows=table,
        slowest=slowest,
        points=curve,
        curve=what_if.drawn(curve),
        slack=_slack(made.forecast),
        types=by_type(plan.actions, planned_s),
        differences=before.differences if before else differences(parts, store, plan, workers),
        approvals=list(approving.lines(parts, plan, zone=None)) if store else [],
        history=history[-MOST_ENTRIES:],
        durations=predictions.sentence(durations),
        input=before.input if before else inputs.actions_text(plan, parts.action_types),
        configuration=inputs.configuration_text(parts.conf, plan),
        made=f"{now.astimezone():%Y-%m-%d %H:%M %z}",
    )


def _timelines(plan: ActionPlan, found: Observed) -> tuple[str, str]:
    """Return the timeline, and if it is folded, that with open lanes; else an empty text."""
    made = [chart(plan, found)]
    if any(len(bar.actions) > 1 for bar in made[0].bars) and len(numbered(plan)) <= MOST_OPEN:
        made.append(chart(plan, found, is_open=True))
    whole, *lanes = (timeline_svg.render(one, WIDTH, own_style=False) for one in made)
    return whole, "".join(lanes)


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


def _slack(made: Forecast) -> str:
    """Return a sentence with the number of actions without slack, and the bound of the makespan."""
    if not made.slack_s:
        return "The plan has no actions."
    bound = sum(slack < SLIGHT_S for slack in made.slack_s.values())
    return (
        f"{bound} of {count(len(made.slack_s), 'action')} may not be late: what delays one of them "
        f"delays the plan. No order of the actions takes less than {duration(made.lower_bound_s)}."
    )


#: The maximum numbers of listed history entries, and of earlier plans of the same name among which
#: one that is not damaged is searched.
MOST_ENTRIES, MOST_PLANS = 500, 20


def differences(
    parts: Assembly, store: SqlStore | None, plan: ActionPlan, workers: int
) -> tuple[str, Sequence[str]] | None:
    """Return the name of the plan of the same name that was saved before a plan, and differences.

    None without a store, if there is no such plan, or if it cannot be read. For plans with too
    many actions, the only line names the command that compares them.
    """
    last = _last(store, plan) if store else None
    if store is None or last is None:
        return None
    named = (
        f"{last.uuid[:8]} of {last.created_at.astimezone():%Y-%m-%d %H:%M}"
        if last.created_at
        else last.uuid[:8]
    )
    largest = max(sum(last.actions.values()), len(plan.actions))
    is_same = last.digest == plan.digest
    if largest > comparing.MOST_COMPARED and not is_same:
        text = f"Too large for a report: actionplan diff {last.uuid[:8]} {plan.uuid[:8]}"
        return named, [text]
    try:
        old = store.load_plan(last.uuid)
    except (DamagedRecord, PlanNotFound):
        return None
    made = comparing.compared(parts, old, plan, workers)
    names = (f"plan {last.uuid[:8]}", f"plan {plan.uuid[:8]}")
    return named, list(difference_lines(made, names, parts.action_types))


def _last(store: SqlStore, plan: ActionPlan) -> PlanSummary | None:
    """Return the plan that was saved last under this name before it; None if there is none."""
    if not plan.name:
        return None
    before = store.list_plans(name=plan.name, after=plan.uuid, limit=MOST_PLANS)
    return next((summary for summary in before if summary.damage is None), None)
