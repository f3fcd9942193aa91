# SPDX-License-Identifier: Apache-2.0
"""Explains when an action starts, why it waits, or why it did not run."""

from __future__ import annotations

from applier.operations import changed_limits, start_times, worker_lines
from applier.operations.predictions import ForecastParts, past_durations, predicted, sentence
from applier.operations.reasons import foreseen, waiting
from applier.operations.triggers import sources
from applier.scheduling.queue_limits import queue_of
from applier.store.worker_jobs import WorkerJobStore, unserved
from applier.wording import one_line
from planner.model import Action, ActionPlan
from planner.states import ActionState, PlanState

_RUNNING = (PlanState.ONGOING, PlanState.CANCELLING)


def explained(
    parts: ForecastParts, plan: ActionPlan, action: Action, workers: int, window: str | None = None
) -> list[str]:
    """Return lines about when an action ended or starts, and why it waits.

    If its plan does not run, the start is forecast with ``workers`` workers. ``window`` names the
    window for which it waits; None if it waits for none.
    """
    store = parts.store
    if action.state is not ActionState.PENDING:
        about = list(sources(plan, action))
        if action.state is ActionState.ONGOING and isinstance(store, WorkerJobStore):
            about[:0] = worker_lines.lines(store, plan, action)
        return [*_ended_or_runs(action), *(f"  {line}" for line in about)]
    if plan.state in _RUNNING:
        others, changed = store.held_by_others(plan.uuid), changed_limits.holding_now(store, plan)
        waits = waiting(plan, action, others, changed, workers, window)
        return [f"{one_line(action.label)} waits:", *(f"  {line}" for line in waits)]
    durations = past_durations(parts).of(plan)
    made = predicted(parts, plan, durations, workers)
    later = [f"It waits for {window}."] if window else []
    if made.unserved and (queue := queue_of(action, parts.route or ())) in made.unserved:
        later.append(unserved([queue]))
    found = foreseen(plan, action, made.forecast, made.concurrency)
    return [*start_times.lines(plan), *found, *later, sentence(durations)]


def _ended_or_runs(action: Action) -> list[str]:
    """Return lines about the end of an action, or the start of a running one."""
    label, why = one_line(action.label), one_line(action.status_message or "")
    if action.state is ActionState.ONGOING:
        since = f" since {action.started_at:%Y-%m-%d %H:%M:%S} UTC" if action.started_at else ""
        return [f"{label} runs{since}, attempt {action.attempts}."]
    ran = "ran" if action.started_at else "did not run"
    outcome = f" ({action.outcome})" if action.outcome else ""
    return [f"{label} {ran}: it is {action.state}{outcome}{f': {why}' if why else '.'}"]
