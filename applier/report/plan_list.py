# SPDX-License-Identifier: Apache-2.0
"""The rows of the list of plans, with the progress of each plan and what it needs."""

from __future__ import annotations

from datetime import datetime

from applier.report.values import Listed
from applier.report.work import progress
from applier.store import PlanSummary
from applier.wording import duration, seconds_between
from planner.plan.states import ENDED_PLAN, ActionState, PlanState
from planner.render.look import mark_of


def listed(plan: PlanSummary, now: datetime, *, needs_approval: bool) -> Listed:
    """Return the row of a plan; its state is ``damaged`` if its rows cannot be read."""
    state = str(plan.state) if plan.state else "damaged"
    until = plan.updated_at if plan.state in (*ENDED_PLAN, PlanState.PAUSED) else now
    return Listed(
        uuid=plan.uuid,
        name=plan.name or "",
        state=state,
        mark=mark_of(state),
        progress=progress(plan.actions),
        needs="approval" if needs_approval else _needs(plan),
        planner=plan.planner,
        made=f"{plan.created_at.astimezone():%Y-%m-%d %H:%M}" if plan.created_at else "",
        took=duration(seconds_between(plan.began_at, until)) if plan.began_at else "",
        creator=plan.creator or "",
    )


def _needs(plan: PlanSummary) -> str:
    if doubtful := plan.actions.get(ActionState.UNKNOWN):
        return f"{doubtful} in doubt"
    return "paused" if plan.state is PlanState.PAUSED else ""
