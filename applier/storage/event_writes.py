# SPDX-License-Identifier: Apache-2.0
"""Writes events in the transactions of the changes that they describe.

The numbers come from a row that the transaction keeps locked until its end. So they are in the
order of the commits, and a reader that has read up to a number has missed none below it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import bindparam

from applier.contracts import Approval, HistoryEntry, Report
from applier.notifications import schema
from applier.storage import rows, transitions
from applier.storage.columns import Count
from applier.storage.compiled import Deferred, words
from applier.storage.tables import action_states, events, turn
from applier.storage.transactions import Write
from planner.states import PlanState


def _number() -> sa.ColumnElement[int]:
    """Return the SQL expression for the number of an event: the last one taken minus ``back``."""
    return turn.c.events - bindparam("back", type_=Count)


#: Reserve ``count`` numbers for events. Other transactions wait here until this one ends.
TAKE_NUMBERS = Deferred(
    lambda: sa.update(turn).values(events=turn.c.events + bindparam("count", type_=Count))
)
#: Insert an event.
INSERT = Deferred(
    lambda: (
        sa.insert(events)
        .inline()
        .values(
            number=sa.select(_number()).scalar_subquery(),
            **{c.key: bindparam(f"event_{c.key}") for c in events.c if c.key != "number"},
        )
    )
)
#: Insert the event of an action of another plan that this one reverts, if its state allows that.
INSERT_UNDONE = Deferred(
    lambda: (
        sa.insert(events)
        .inline()
        .from_select(
            ["number", "plan", "action", "type", "at", "old", "data"],
            sa.select(
                _number(),
                action_states.c.plan,
                action_states.c.uuid,
                bindparam("event_type", type_=events.c.type.type),
                bindparam("event_at", type_=events.c.at.type),
                action_states.c.state,
                bindparam("event_data", type_=events.c.data.type),
            )
            .where(
                action_states.c.plan == bindparam("event_plan"),
                action_states.c.uuid == bindparam("event_action"),
                action_states.c.state.in_(words(sorted(transitions.UNDOABLE))),
            )
            .select_from(sa.join(turn, action_states, sa.true())),
        )
    )
)


class NewEvent(NamedTuple):
    """An event that is about to be written; its number is assigned when it is written.

    ``action`` is the uuid of the action, ``old`` the state that it leaves. ``undone_in`` is the
    uuid of another plan if the action is one of that, which this plan reverts.
    """

    type: str
    data: dict[str, Any]
    action: str | None = None
    old: str | None = None
    undone_in: str | None = None


def of_plan(state: PlanState, message: str | None) -> NewEvent:
    """Return the event of a plan that enters a state."""
    return NewEvent(type=schema.PLAN_STATE, data=schema.plan_data(state, rows.storable(message)))


def of_history(entry: HistoryEntry) -> NewEvent:
    """Return the event of a new history entry."""
    data = {k: rows.storable(v) for k, v in schema.history_data(entry).items()}
    return NewEvent(type=schema.PLAN_HISTORY, data=data)


def of_approval(approval: Approval) -> NewEvent:
    """Return the event of an approval."""
    data = {k: rows.storable(v) for k, v in schema.approval_data(approval).items()}
    return NewEvent(type=schema.PLAN_APPROVED, data=data)


def of_reports(plan: str, reports: Sequence[Report]) -> list[NewEvent]:
    """Return the events of reports on the actions of a plan, in their order.

    The event of a reverted action of another plan follows that of the action that reverts it.
    """
    found: list[NewEvent] = []
    for report in reports:
        found.append(_of_report(report))
        if report.undoes and (undone := transitions.undone(plan, report)):
            found.append(_of_report(undone, undone_in=report.undoes.plan))
    return found


def _of_report(report: Report, undone_in: str | None = None) -> NewEvent:
    data = schema.report_data(report)
    return NewEvent(
        type=schema.ACTION_STATE,
        action=report.uuid,
        old=str(report.old),
        data={**data, "message": rows.storable(report.message)},
        undone_in=undone_in,
    )


def writes(plan: str, told: Sequence[NewEvent], at: datetime) -> Iterator[Write]:
    """Yield the writes of events, with consecutive numbers.

    Run them before the writes that change reverted actions, whose old states they read.
    """
    yield Write(TAKE_NUMBERS, {"count": len(told)}, None)
    for place, event in enumerate(told, start=1):
        values = {
            "back": len(told) - place,
            "event_plan": event.undone_in or plan,
            "event_action": event.action,
            "event_type": event.type,
            "event_at": at,
            "event_data": json.dumps(event.data, separators=(",", ":")),
        }
        if event.undone_in:
            yield Write(INSERT_UNDONE, values, None)
        else:
            yield Write(INSERT, {**values, "event_old": event.old}, None)
