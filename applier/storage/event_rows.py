# SPDX-License-Identifier: Apache-2.0
"""Events and subscriptions as rows: the statements that read and change them, and conversions.

Events are written in the transactions of the changes that they describe. Their numbers come from a
row that the transaction keeps locked until its end. So they are in the order of the commits, and a
reader that has read up to a number has missed none below it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from applier.contracts import Approval, HistoryEntry, Report
from applier.notifications import schema
from applier.storage import state_refusals, statements
from applier.storage.rows import reading, storable
from applier.storage.statements import Row, Write
from applier.store.entries import DeadEvent, Subscription, Trouble
from planner.errors import short
from planner.plan.states import PlanState

#: How many characters of the reason of a failed delivery are stored.
_REASON = 1000


@reading
def event_of(row: Row) -> schema.Event:
    """Return the event of a row, which also has the name and the type of its action."""
    data = json.loads(row["data"])
    if row["type"] == schema.ACTION_STATE:
        named = {
            "name": row["name"] or short(row["action"]),
            "action_type": row["action_type"] or "",
        }
        data = {**named, "old": row["old"], **data}
    same = {name: row[name] for name in ("plan", "number", "at", "action")}
    event = schema.event(row["type"], data=data, **same)
    schema.require_form(event)
    return event


@reading
def subscription_of(row: Row) -> Subscription:
    """Return the subscription of a row."""
    held = {plan: _trouble_of(values) for plan, values in json.loads(row["held_back"]).items()}
    away = _trouble_of(json.loads(row["away"])) if row["away"] else None
    return Subscription(**{**row, "held_back": held, "away": away})


def subscription_row(subscription: Subscription) -> dict[str, Any]:
    """Return the row of a subscription."""
    held = {plan: _trouble_row(one) for plan, one in subscription.held_back.items()}
    away = None if subscription.away is None else json.dumps(_trouble_row(subscription.away))
    return {**subscription._asdict(), "held_back": json.dumps(held), "away": away}


def needed_from(subscription: Subscription) -> int:
    """Return the number of the first event that was not delivered to a receiver."""
    held = (held.number for held in subscription.held_back.values())
    return min([subscription.delivered + 1, *held])


def dead_row(dead: DeadEvent) -> dict[str, Any]:
    """Return the row of a dead event."""
    return {
        "subscription": dead.subscription,
        "number": dead.event["number"],
        "event": json.dumps(dead.event),
        "why": _reason(dead.why),
        "at": dead.at,
    }


@reading
def dead_of(row: Row) -> DeadEvent:
    """Return the dead event of a row."""
    event = json.loads(row["event"])
    schema.require_form(event)
    return DeadEvent(row["subscription"], event, row["why"], row["at"])


def _trouble_row(trouble: Trouble) -> dict[str, Any]:
    why = _reason(trouble.why)
    return {**trouble._asdict(), "since": trouble.since.isoformat(), "why": why}


def _trouble_of(values: Mapping[str, Any]) -> Trouble:
    return Trouble(**{**values, "since": datetime.fromisoformat(values["since"])})


def _reason(why: str) -> str:
    return (storable(why) or "")[:_REASON]


class Entered(NamedTuple):
    """A plan has entered a state, with a message."""

    state: PlanState
    message: str | None


#: What has happened to a plan, and is told in an event.
Fact = Entered | HistoryEntry | Approval | Report


def event_writes(plan: str, facts: Iterable[Fact], at: datetime) -> Iterator[Write]:
    """Yield the writes that add the events of these facts, with consecutive numbers.

    They read the old states of reverted actions, so run them before what changes those states.
    """
    told = [event for fact in facts for event in _events(plan, fact)]
    yield Write(statements.TAKE_EVENT_NUMBERS, {"count": len(told)}, None)
    for place, (statement, values) in enumerate(told, start=1):
        yield Write(statement, {**values, "event_at": at, "back": len(told) - place}, None)


def _events(plan: str, fact: Fact) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the statement and the values of each event of a fact about a plan.

    The event of a reverted action of another plan follows that of the action that reverts it.
    """
    match fact:
        case Entered(state, message):
            data = schema.plan_data(state, message)
            yield statements.INSERT_EVENT, _values(plan, schema.PLAN_STATE, data)
        case HistoryEntry() | Approval():
            is_entry = isinstance(fact, HistoryEntry)
            kind = schema.PLAN_HISTORY if is_entry else schema.PLAN_APPROVED
            yield statements.INSERT_EVENT, _values(plan, kind, schema.data_of(kind, fact))
        case Report():
            values = _of_report(plan, fact)
            yield statements.INSERT_EVENT, {**values, "event_old": str(fact.old)}
            if fact.undoes and (undone := state_refusals.undone(plan, fact)):
                yield statements.INSERT_UNDONE_EVENT, _of_report(fact.undoes.plan, undone)


def _of_report(plan: str, report: Report) -> dict[str, Any]:
    return _values(plan, schema.ACTION_STATE, schema.report_data(report), report.uuid)


def _values(
    plan: str, kind: str, data: Mapping[str, Any], action: str | None = None
) -> dict[str, Any]:
    stored = {name: storable(value) for name, value in data.items()}
    return {
        "event_plan": plan,
        "event_action": action,
        "event_type": kind,
        "event_old": None,
        "event_data": json.dumps(stored, separators=(",", ":")),
    }
