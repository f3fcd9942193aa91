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
from applier.storage import transitions
from applier.storage.dialects import Row
from applier.storage.rows import reading, storable
from applier.storage.schema import insert_into, words
from applier.storage.transactions import Write
from applier.store.entries import DeadEvent, Subscription, Trouble
from planner.errors import short
from planner.plan.states import PlanState

#: The states of plans that somebody runs.
RUNNING = (PlanState.ONGOING, PlanState.CANCELLING)

#: The numbers of the last event, and of the last one that was deleted.
NUMBERS = "SELECT events, events_deleted FROM actionplan_turn"
#: Events with name and type of their actions, except those of joins.
_WITH_ACTIONS = """
    SELECT e.*, a.name, s.action_type
    FROM actionplan_event AS e
    LEFT JOIN actionplan_action AS a ON a.plan = e.plan AND a.uuid = e.action
    LEFT JOIN actionplan_action_state AS s ON s.plan = e.plan AND s.uuid = e.action
    WHERE coalesce(s.action_type, '') != 'join'"""
#: The events with numbers above ``after``, oldest first, with name and type of their actions.
EVENTS = f"{_WITH_ACTIONS} AND e.number > :after ORDER BY e.number LIMIT :most"
#: The same of one plan.
EVENTS_OF_PLAN = f"""{_WITH_ACTIONS}
        AND e.number > :after AND e.plan = :plan_uuid
    ORDER BY e.number
    LIMIT :most"""
#: The latest events, latest first.
LATEST = f"{_WITH_ACTIONS} ORDER BY e.number DESC LIMIT :most"
#: The same of one plan.
LATEST_OF_PLAN = f"{_WITH_ACTIONS} AND e.plan = :plan_uuid ORDER BY e.number DESC LIMIT :most"
#: How many events of a plan have numbers from ``first`` to ``last``.
NUMBER_OF_PLAN = """
    SELECT count(*) AS number FROM actionplan_event
    WHERE plan = :plan_uuid AND number BETWEEN :first AND :last"""
#: Delete the events up to a number.
DELETE_EVENTS = "DELETE FROM actionplan_event WHERE number <= :last"
#: Replace the data of an event.
SET_DATA = "UPDATE actionplan_event SET data = :new_data WHERE number = :of_number"
#: Delete the events of the joins of a plan, which no list and no delivery includes.
DELETE_OF_JOINS = """
    DELETE FROM actionplan_event
    WHERE plan = :plan_uuid AND action IN (
        SELECT uuid FROM actionplan_action_state
        WHERE plan = :plan_uuid AND action_type = 'join')"""
#: The first event with a time from ``before`` on. Clocks differ, so later events may be older.
FIRST_SINCE = "SELECT number FROM actionplan_event WHERE at >= :before ORDER BY number LIMIT 1"
#: Record that all events up to a number were deleted.
NOTE_DELETED = "UPDATE actionplan_turn SET events_deleted = :last"
#: Lock the counters until the end of the transaction.
LOCK_NUMBERS = "UPDATE actionplan_turn SET events = events"

SUBSCRIPTIONS = "SELECT * FROM actionplan_subscription ORDER BY name"
SUBSCRIPTION = "SELECT * FROM actionplan_subscription WHERE name = :named"
#: The end of a subscription. The columns of its delivery, which may be damaged, are not read.
UNTIL = "SELECT until FROM actionplan_subscription WHERE name = :named"
INSERT_SUBSCRIPTION = insert_into("actionplan_subscription")
#: Prolong the subscription of readers; it is never shortened.
PROLONG = """
    UPDATE actionplan_subscription SET until = :new_until
    WHERE name = :named AND until < :new_until"""
UNSUBSCRIBE = "DELETE FROM actionplan_subscription WHERE name = :named"
#: Become the process that delivers, or write its heartbeat. No row matches if another process is
#: the holder, and its count of heartbeats is not ``seen``.
HOLD = """
    UPDATE actionplan_subscription SET holder = :new_holder, beats = beats + 1
    WHERE name = :named AND (holder IS NULL OR holder = :new_holder OR beats = :seen)"""
#: End the hold of a process, so that another can hold the subscription at once.
RELEASE = """
    UPDATE actionplan_subscription SET holder = NULL WHERE name = :named AND holder = :held_by"""
#: Write the progress of a delivery. No row matches if another process is the holder.
DELIVERED = """
    UPDATE actionplan_subscription
    SET delivered = :new_delivered, held_back = :new_held_back, away = :new_away, beats = beats + 1
    WHERE name = :named AND holder = :held_by"""
#: Set whether running plans write events.
PUBLISH = f"""
    UPDATE actionplan_plan SET publishes = :new_publishes
    WHERE state IN {words(RUNNING)} AND publishes != :new_publishes"""

INSERT_DEAD = insert_into("actionplan_dead_event")
#: Delete a dead event, which an earlier try of the same write may have inserted.
DELETE_DEAD = (
    "DELETE FROM actionplan_dead_event WHERE subscription = :named AND number = :dead_number"
)
DELETE_ALL_DEAD = "DELETE FROM actionplan_dead_event WHERE subscription = :named"
DEAD = """
    SELECT * FROM actionplan_dead_event
    ORDER BY at DESC, subscription, number DESC
    LIMIT :most"""

#: Reserve ``count`` numbers for events. Other transactions wait here until this one ends.
TAKE_NUMBERS = "UPDATE actionplan_turn SET events = events + :count"
#: Insert an event; its number is the last one that was taken minus ``back``.
INSERT_EVENT = """
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
    event = schema.event(
        row["type"],
        row["plan"],
        number=row["number"],
        at=row["at"],
        data=data,
        action=row["action"],
    )
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
    values = {name: getattr(subscription, name) for name in Subscription._fields}
    return {**values, **_troubles(subscription)}


def delivery_values(subscription: Subscription) -> dict[str, Any]:
    """Return the bind parameters for writing the progress of a delivery."""
    return {
        "named": subscription.name,
        "held_by": subscription.holder,
        "new_delivered": subscription.delivered,
        **{f"new_{name}": text for name, text in _troubles(subscription).items()},
    }


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
    return DeadEvent(
        subscription=row["subscription"],
        event=event,
        why=row["why"],
        at=row["at"],
    )


def _troubles(subscription: Subscription) -> dict[str, str | None]:
    held = {plan: _trouble_row(one) for plan, one in subscription.held_back.items()}
    away = None if subscription.away is None else json.dumps(_trouble_row(subscription.away))
    return {"held_back": json.dumps(held), "away": away}


def _trouble_row(trouble: Trouble) -> dict[str, Any]:
    why = _reason(trouble.why)
    return {**trouble._asdict(), "since": trouble.since.isoformat(), "why": why}


def _trouble_of(values: Mapping[str, Any]) -> Trouble:
    return Trouble(**{**values, "since": datetime.fromisoformat(values["since"])})


def _reason(why: str | None) -> str | None:
    text = storable(why)
    return None if text is None else text[:_REASON]


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
                data = schema.plan_data(state, storable(message))
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
    return {name: storable(value) for name, value in data.items()}


def _of_report(report: Report, undone_in: str | None = None) -> NewEvent:
    data = schema.report_data(report)
    return NewEvent(
        type=schema.ACTION_STATE,
        action=report.uuid,
        old=str(report.old),
        data={**data, "message": storable(report.message)},
        undone_in=undone_in,
    )


def event_writes(plan: str, facts: Iterable[Fact], at: datetime) -> Iterator[Write]:
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
            yield Write(INSERT_EVENT, {**values, "event_old": event.old}, None)
