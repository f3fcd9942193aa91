# SPDX-License-Identifier: Apache-2.0
"""Writes events in the transactions of the changes that they describe.

The numbers come from a row that the transaction keeps locked until its end. So they are in the
order of the commits, and a reader that has read up to a number has missed none below it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from applier.contracts import Approval, HistoryEntry, Report
from applier.notifications import schema
from applier.storage import rows, transitions
from applier.storage.schema import words
from applier.storage.transactions import Write
from planner.plan.states import PlanState

#: Reserve ``count`` numbers for events. Other transactions wait here until this one ends.
TAKE_NUMBERS = "UPDATE actionplan_turn SET events = events + :count"
#: Insert an event; its number is the last one that was taken minus ``back``.
INSERT = """
    INSERT INTO actionplan_event (number, plan, action, type, at, old, data)
    VALUES (
        (SELECT events - :back FROM actionplan_turn),
        :event_plan, :event_action, :event_type, :event_at, :event_old, :event_data)"""
#: Insert the event of an action of another plan that this one reverts, if its state allows that.
INSERT_UNDONE = f"""
    INSERT INTO actionplan_event (number, plan, action, type, at, old, data)
    SELECT t.events - :back, s.plan, s.uuid, :event_type, :event_at, s.state, :event_data
    FROM actionplan_turn AS t CROSS JOIN actionplan_action_state AS s
    WHERE s.plan = :event_plan AND s.uuid = :event_action
        AND s.state IN {words(sorted(transitions.UNDOABLE))}"""


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


class Entered(NamedTuple):
    """A plan has entered a state, with a message."""

    state: PlanState
    message: str | None


#: What has happened to a plan, and is told in an event.
Fact = Entered | HistoryEntry | Approval | Report


def _events(plan: str, facts: Iterable[Fact]) -> list[NewEvent]:
    """Return the events of facts about a plan, in their order.

    The event of a reverted action of another plan follows that of the action that reverts it.
    """
    found: list[NewEvent] = []
    for fact in facts:
        match fact:
            case Entered(state, message):
                data = schema.plan_data(state, rows.storable(message))
                found.append(NewEvent(schema.PLAN_STATE, data))
            case HistoryEntry():
                found.append(NewEvent(schema.PLAN_HISTORY, _storable(schema.history_data(fact))))
            case Approval():
                found.append(NewEvent(schema.PLAN_APPROVED, _storable(schema.approval_data(fact))))
            case Report():
                found.append(_of_report(fact))
                if fact.undoes and (undone := transitions.undone(plan, fact)):
                    found.append(_of_report(undone, undone_in=fact.undoes.plan))
    return found


def _storable(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: rows.storable(value) for name, value in data.items()}


def _of_report(report: Report, undone_in: str | None = None) -> NewEvent:
    data = schema.report_data(report)
    return NewEvent(
        type=schema.ACTION_STATE,
        action=report.uuid,
        old=str(report.old),
        data={**data, "message": rows.storable(report.message)},
        undone_in=undone_in,
    )


def of(plan: str, facts: Iterable[Fact], at: datetime) -> Iterator[Write]:
    """Yield the writes that add the events of these facts, with consecutive numbers.

    They read the old states of reverted actions, so run them before what changes those states.
    """
    told = _events(plan, facts)
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
