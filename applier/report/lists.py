# SPDX-License-Identifier: Apache-2.0
"""The lists of a report: unfinished actions, the history, differences from the last plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from applier.contracts import HistoryEntry
from applier.errors import DamagedRecord, PlanNotFound
from applier.operations import difference_lines
from applier.operations import differences as comparing
from applier.operations.predictions import ForecastParts
from applier.report.action_rows import cut
from applier.report.values import HistoryLine, Left, ShownDifferences
from applier.store import PlanSummary, Store
from planner.model import JOIN, ActionPlan
from planner.states import OPEN, WELL, ActionState, PlanState

#: The maximum numbers of listed unfinished actions and history entries, and of plans of the same
#: name among which the one saved before is searched.
MOST_LEFT, MOST_ENTRIES, MOST_PLANS = 40, 500, 200
_RUNNING = (PlanState.PENDING, PlanState.ONGOING, PlanState.CANCELLING)
_WORST_FIRST = (
    ActionState.FAILED,
    ActionState.REVERT_FAILED,
    ActionState.UNKNOWN,
    ActionState.ONGOING,
    ActionState.CANCELLED,
    ActionState.FAILED_DEPENDENCIES,
    ActionState.REVERTED,
    ActionState.PENDING,
)


def left(plan: ActionPlan) -> Iterator[Left]:
    """Yield the actions that have not ended well, worst states first; none before the plan begins.

    Actions that are PENDING or ONGOING are left out while the plan is queued or runs.
    """
    actions = [a for a in plan.actions if a.action_type != JOIN]
    if all(action.state is ActionState.PENDING for action in actions):
        return
    going_on = OPEN if plan.state in _RUNNING else frozenset()
    not_done = [a for a in actions if a.state not in WELL | going_on]
    for action in sorted(not_done, key=lambda a: _WORST_FIRST.index(a.state)):
        yield Left(action.label, str(action.state), cut(action.status_message or ""))


def entries(plan: ActionPlan, history: Sequence[HistoryEntry]) -> list[HistoryLine]:
    """Return the latest entries of the history of a plan, at most ``MOST_ENTRIES``, latest last."""
    names = {a.uuid: a.label for a in plan.actions}
    return [
        HistoryLine(
            at=f"{entry.at.astimezone():%Y-%m-%d %H:%M:%S}",
            what=entry.verb,
            action=names.get(entry.action, entry.action[:8]) if entry.action else "",
            who=f"{entry.who} ({entry.project})" if entry.project else entry.who,
            why=entry.why or "",
        )
        for entry in history[-MOST_ENTRIES:]
    ]


def differences(
    parts: ForecastParts, store: Store, plan: ActionPlan, workers: int
) -> ShownDifferences | None:
    """Return the differences from the plan of the same name that was saved before a plan.

    None if there is no such plan, or it cannot be read. For plans with too many actions, the only
    line names the command that compares them.
    """
    last = _last(store, plan)
    if last is None:
        return None
    named = (
        f"{last.uuid[:8]} of {last.created_at.astimezone():%Y-%m-%d %H:%M}"
        if (last.created_at)
        else last.uuid[:8]
    )
    largest = max(sum(last.actions.values()), len(plan.actions))
    is_same = last.digest == plan.digest
    if largest > comparing.MOST_COMPARED and not is_same:
        text = f"Too large for a report: actionplan diff {last.uuid[:8]} {plan.uuid[:8]}"
        return ShownDifferences(named, [text])
    try:
        old = store.load_plan(last.uuid)
    except (DamagedRecord, PlanNotFound):
        return None
    made = comparing.compared(parts, old, plan, workers)
    names = (f"plan {last.uuid[:8]}", f"plan {plan.uuid[:8]}")
    return ShownDifferences(named, list(difference_lines.lines(made, names, parts.action_types)))


def _last(store: Store, plan: ActionPlan) -> PlanSummary | None:
    """Return the plan of the same name that was saved before a plan; None if there is none."""
    if not plan.name:
        return None
    found = store.list_plans(name=plan.name, limit=MOST_PLANS)
    uuids = [summary.uuid for summary in found]
    if plan.uuid not in uuids:
        return None
    before = found[uuids.index(plan.uuid) + 1 :]
    return next((summary for summary in before if summary.damage is None), None)
