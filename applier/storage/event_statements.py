# SPDX-License-Identifier: Apache-2.0
"""The statements on events and subscriptions, except those that write events."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy import bindparam

from applier.storage.columns import Count, Moment
from applier.storage.compiled import Deferred, insert_into, word, words
from applier.storage.tables import (
    action_states,
    actions,
    dead_events,
    events,
    plans,
    subscriptions,
    turn,
)
from planner.model import JOIN
from planner.states import PlanState

#: The states of plans that somebody runs.
RUNNING = (PlanState.ONGOING, PlanState.CANCELLING)

#: The numbers of the last event, and of the last one that was deleted.
NUMBERS = Deferred(lambda: sa.select(turn.c.events, turn.c.events_deleted))


def _with_actions() -> sa.Select[Any]:
    """Select events with name and type of their actions, except those of joins."""
    of_action = (actions.c.plan == events.c.plan) & (actions.c.uuid == events.c.action)
    of_state = (action_states.c.plan == events.c.plan) & (action_states.c.uuid == events.c.action)
    action_type = sa.func.coalesce(action_states.c.action_type, sa.literal_column("''", sa.String))
    return (
        sa.select(*events.c, actions.c.name, action_states.c.action_type)
        .select_from(events.outerjoin(actions, of_action).outerjoin(action_states, of_state))
        .where(action_type != word(JOIN))
        .limit(bindparam("most"))
    )


#: The events with numbers above ``after``, oldest first, with name and type of their actions.
EVENTS = Deferred(
    lambda: (
        _with_actions()
        .where(events.c.number > bindparam("after", type_=Count))
        .order_by(events.c.number)
    )
)
#: The same of one plan.
EVENTS_OF_PLAN = Deferred(lambda: EVENTS().where(events.c.plan == bindparam("plan_uuid")))
#: The latest events, latest first.
LATEST = Deferred(lambda: _with_actions().order_by(events.c.number.desc()))
#: The same of one plan.
LATEST_OF_PLAN = Deferred(lambda: LATEST().where(events.c.plan == bindparam("plan_uuid")))
#: How many events of a plan have numbers from ``first`` to ``last``.
NUMBER_OF_PLAN = Deferred(
    lambda: (
        sa.select(sa.func.count().label("number"))
        .select_from(events)
        .where(
            events.c.plan == bindparam("plan_uuid"),
            events.c.number.between(
                bindparam("first", type_=Count), bindparam("last", type_=Count)
            ),
        )
    )
)
#: Delete the events up to a number.
DELETE_EVENTS = Deferred(
    lambda: sa.delete(events).where(events.c.number <= bindparam("last", type_=Count))
)
#: Replace the data of an event.
SET_DATA = Deferred(
    lambda: (
        sa.update(events)
        .where(events.c.number == bindparam("of_number", type_=Count))
        .values(data=bindparam("new_data", type_=events.c.data.type))
    )
)
#: Delete the events of the joins of a plan, which no list and no delivery includes.
DELETE_OF_JOINS = Deferred(
    lambda: sa.delete(events).where(
        events.c.plan == bindparam("plan_uuid"),
        events.c.action.in_(
            sa.select(action_states.c.uuid).where(
                action_states.c.plan == bindparam("plan_uuid"),
                action_states.c.action_type == word(JOIN),
            )
        ),
    )
)
#: The first event with a time from ``before`` on. Clocks differ, so later events may be older.
FIRST_SINCE = Deferred(
    lambda: (
        sa.select(events.c.number)
        .where(events.c.at >= bindparam("before"))
        .order_by(events.c.number)
        .limit(1)
    )
)
#: Record that all events up to a number were deleted.
NOTE_DELETED = Deferred(
    lambda: sa.update(turn).values(events_deleted=bindparam("last", type_=Count))
)
#: Lock the counters until the end of the transaction.
LOCK_NUMBERS = Deferred(lambda: sa.update(turn).values(events=turn.c.events))

SUBSCRIPTIONS = Deferred(lambda: sa.select(subscriptions).order_by(subscriptions.c.name))
SUBSCRIPTION = Deferred(
    lambda: sa.select(subscriptions).where(subscriptions.c.name == bindparam("named"))
)
#: The end of a subscription. The columns of its delivery, which may be damaged, are not read.
UNTIL = Deferred(
    lambda: sa.select(subscriptions.c.until).where(subscriptions.c.name == bindparam("named"))
)
INSERT_SUBSCRIPTION = Deferred(lambda: insert_into(subscriptions))
#: Prolong the subscription of readers; it is never shortened.
PROLONG = Deferred(
    lambda: (
        sa.update(subscriptions)
        .where(
            subscriptions.c.name == bindparam("named"),
            subscriptions.c.until < bindparam("new_until", type_=Moment),
        )
        .values(until=bindparam("new_until", type_=Moment))
    )
)
UNSUBSCRIBE = Deferred(
    lambda: sa.delete(subscriptions).where(subscriptions.c.name == bindparam("named"))
)
#: Become the process that delivers, or write its heartbeat. No row matches if another process is
#: the holder, and its count of heartbeats is not ``seen``.
HOLD = Deferred(
    lambda: (
        sa.update(subscriptions)
        .where(
            subscriptions.c.name == bindparam("named"),
            subscriptions.c.holder.is_(None)
            | (subscriptions.c.holder == bindparam("new_holder"))
            | (subscriptions.c.beats == bindparam("seen", type_=Count)),
        )
        .values(
            holder=bindparam("new_holder"),
            beats=subscriptions.c.beats + sa.literal_column("1", sa.Integer),
        )
    )
)
#: Write the progress of a delivery. No row matches if another process is the holder.
DELIVERED = Deferred(
    lambda: (
        sa.update(subscriptions)
        .where(
            subscriptions.c.name == bindparam("named"),
            subscriptions.c.holder == bindparam("held_by"),
        )
        .values(
            delivered=bindparam("new_delivered", type_=Count),
            held_back=bindparam("new_held_back"),
            away=bindparam("new_away"),
            beats=subscriptions.c.beats + sa.literal_column("1", sa.Integer),
        )
    )
)
#: Set whether running plans write events.
PUBLISH = Deferred(
    lambda: (
        sa.update(plans)
        .where(
            plans.c.state.in_(words(RUNNING)),
            plans.c.publishes != bindparam("new_publishes"),
        )
        .values(publishes=bindparam("new_publishes"))
    )
)

INSERT_DEAD = Deferred(lambda: insert_into(dead_events))
#: Delete a dead event, which an earlier try of the same write may have inserted.
DELETE_DEAD = Deferred(
    lambda: sa.delete(dead_events).where(
        dead_events.c.subscription == bindparam("named"),
        dead_events.c.number == bindparam("dead_number", type_=Count),
    )
)
DELETE_ALL_DEAD = Deferred(
    lambda: sa.delete(dead_events).where(dead_events.c.subscription == bindparam("named"))
)
DEAD = Deferred(
    lambda: (
        sa.select(dead_events)
        .order_by(dead_events.c.at.desc(), dead_events.c.subscription, dead_events.c.number.desc())
        .limit(bindparam("most"))
    )
)
