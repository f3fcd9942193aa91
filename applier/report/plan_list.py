# SPDX-License-Identifier: Apache-2.0
"""The rows of the list of plans, with the progress of each plan."""

from __future__ import annotations

from applier.report.values import Listed
from applier.store import PlanSummary
from planner.plan.states import OPEN, WELL
from planner.render.look import LOOKS


def listed(plan: PlanSummary) -> Listed:
    """Return the row of a plan; its state is ``damaged`` if its rows cannot be read."""
    state = str(plan.state) if plan.state else "damaged"
    return Listed(
        uuid=plan.uuid,
        name=plan.name or "",
        state=state,
        mark=LOOKS[state].mark if state in LOOKS else "",
        total=sum(plan.actions.values()),
        ended=sum(number for one, number in plan.actions.items() if one not in OPEN),
        bad=sum(number for one, number in plan.actions.items() if one not in OPEN | WELL),
        made=f"{plan.created_at.astimezone():%Y-%m-%d %H:%M:%S}" if plan.created_at else "",
        creator=plan.creator or "",
    )
