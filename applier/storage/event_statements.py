# SPDX-License-Identifier: Apache-2.0
"""The statements on events and subscriptions, except those that write events."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import bindparam

from applier.storage.tables import (
    Count,
    Moment,
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
NUMBERS = sa.select(turn.c.events, turn.c.events_deleted)
_joined = events.outerjoin(
    actions, (actions.c.plan == events.c.plan) & (actions.c.uuid == events.c.action)
).outerjoin(
    action_states,
    (action_states.c.plan == events.c.plan) & (action_states.c.uuid == events.c.action),
)
_no_join = sa.func.coalesce(action_states.c.action_type, sa.literal_column("''", sa.String)) != (
    sa.literal_column(f"'{JOIN}'", sa.String)
)
#: The events with numbers above ``after``, with what the plan says of their actions.
EVENTS = (
    sa.select(*events.c, actions.c.name, action_states.c.action_type)
    .select_from(_joined)
    .where(events.c.number > bindparam("after", type_=Count), _no_join)
    .order_by(events.c.number)
    .limit(bindparam("most"))
)
#: The same of one plan.
EVENTS_OF_PLAN = EVENTS.where(events.c.plan == bindparam("plan_uuid"))
#: The latest events, latest first.
LATEST = (
    sa.select(*events.c, actions.c.name, action_states.c.action_type)
    .select_from(_joined)
    .where(_no_join)
    .order_by(events.c.number.desc())
    .limit(bindparam("most"))
)
#: The same of one plan.
LATEST_OF_PLAN = LATEST.where(events.c.plan == bindparam("plan_uuid"))
#: Delete the events up to a number.
DELETE_EVENTS = sa.delete(events).where(events.c.number <= bindparam("last", type_=Count))
#: The first event that is not from before a time. Clocks may differ: this is no exact limit.
FIRST_SINCE = (
    sa.select(events.c.number)
    .where(events.c.at >= bindparam("before"))
    .order_by(events.c.number)
    .limit(1)
)
#: Note that all events up to a number were deleted.
NOTE_DELETED = sa.update(turn).values(events_deleted=bindparam("last", type_=Count))
#: Lock the counters until the end of the transaction.
LOCK_NUMBERS = sa.update(turn).values(events=turn.c.events)

SUBSCRIPTIONS = sa.select(subscriptions).order_by(subscriptions.c.name)
SUBSCRIPTION = sa.select(subscriptions).where(subscriptions.c.name == bindparam("named"))
INSERT_SUBSCRIPTION = (
    sa.insert(subscriptions).inline().values({c: bindparam(c.key) for c in subscriptions.c})
)
#: Prolong the subscription of readers; it is never shortened.
PROLONG = (
    sa.update(subscriptions)
    .where(
        subscriptions.c.name == bindparam("named"),
        subscriptions.c.until < bindparam("new_until", type_=Moment),
    )
    .values(until=bindparam("new_until", type_=Moment))
)
UNSUBSCRIBE = sa.delete(subscriptions).where(subscriptions.c.name == bindparam("named"))
#: Become the process that delivers, or write its heartbeat. No row matches if another process is
#: the holder and has written a heartbeat after number ``seen``.
HOLD = (
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
#: Write what was delivered, as the process that delivers.
DELIVERED = (
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
#: Let running plans write events, or no longer.
PUBLISH = (
    sa.update(plans)
    .where(
        plans.c.state.in_([sa.literal_column(f"'{state}'", sa.String) for state in RUNNING]),
        plans.c.publishes != bindparam("new_publishes"),
    )
    .values(publishes=bindparam("new_publishes"))
)

INSERT_DEAD = sa.insert(dead_events).inline().values({c: bindparam(c.key) for c in dead_events.c})
#: Delete the copy of an event that was written before the answer was lost.
DELETE_DEAD = sa.delete(dead_events).where(
    dead_events.c.subscription == bindparam("named"),
    dead_events.c.number == bindparam("dead_number", type_=Count),
)
DELETE_ALL_DEAD = sa.delete(dead_events).where(dead_events.c.subscription == bindparam("named"))
DEAD = (
    sa.select(dead_events)
    .order_by(dead_events.c.at.desc(), dead_events.c.subscription, dead_events.c.number.desc())
    .limit(bindparam("most"))
)
