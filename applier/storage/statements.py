# SPDX-License-Identifier: Apache-2.0
"""The statements of the database store that have a fixed number of parameters.

Each is made once at import, and compiled once (see :mod:`applier.storage.compiled`).
"""

from __future__ import annotations

import re
import sys
from typing import Any

import sqlalchemy as sa
from sqlalchemy import bindparam

from applier.storage.claims import UNCLAIMED_PLAN, WAITING_PLAN
from applier.storage.tables import (
    action_states,
    actions,
    attempts,
    history,
    plans,
    requests,
    reservations,
    services,
    subscriptions,
    turn,
)
from applier.store import Attempt
from planner.model import JOIN
from planner.states import ActionState, PlanState


def _word(value: str) -> sa.ColumnElement[str]:
    """Return a literal, which saves a bind parameter."""
    return sa.literal_column(f"'{value}'", sa.String)


_NOTHING, _ONE = sa.literal_column("''", sa.String), sa.literal_column("1", sa.Integer)

#: The row of one plan.
PLAN = sa.select(plans).where(plans.c.uuid == bindparam("plan_uuid"))
#: The uuids of all plans. SQLite reads them from an index, so that no page of rows is needed.
NUMBERS = sa.select(plans.c.uuid, plans.c.number).order_by(plans.c.uuid)
#: The actions of a plan as planned, in plan order.
ACTIONS = (
    sa.select(actions).where(actions.c.plan == bindparam("plan_uuid")).order_by(actions.c.position)
)
#: The same with the columns of their states, which are NULL for an action that has none.
MEMBERS = (
    ACTIONS.add_columns(*(c for c in action_states.c if c.key not in actions.c))
    .select_from(actions)
    .outerjoin(
        action_states,
        (action_states.c.plan == actions.c.plan) & (action_states.c.uuid == actions.c.uuid),
    )
)
#: The state rows of the actions of a plan.
STATES = sa.select(action_states).where(action_states.c.plan == bindparam("plan_uuid"))
#: State, start and number of attempts of one action.
ACTION = sa.select(
    action_states.c.state, action_states.c.started_at, action_states.c.attempts
).where(
    action_states.c.plan == bindparam("plan_uuid"), action_states.c.uuid == bindparam("action_uuid")
)
#: The ended attempts of an action, oldest first.
ATTEMPTS = (
    sa.select(*(attempts.c[name] for name in Attempt.__dataclass_fields__))
    .where(attempts.c.plan == bindparam("plan_uuid"), attempts.c.action == bindparam("action_uuid"))
    .order_by(attempts.c.number)
)
#: Start and end of the latest attempts that count in the durations of an action type.
DURATIONS = (
    sa.select(attempts.c.started_at, attempts.c.ended_at)
    .where(attempts.c.measures == bindparam("action_type"))
    .order_by(attempts.c.id.desc())
    .limit(bindparam("most"))
)
#: The requests of a plan with numbers greater than ``after``, oldest first.
REQUESTS = (
    sa.select(requests)
    .where(requests.c.plan == bindparam("plan_uuid"), requests.c.number > bindparam("after"))
    .order_by(requests.c.number)
)
#: The entries of the history with numbers greater than ``after``, latest first; at most ``most``.
HISTORY = (
    sa.select(history)
    .where(history.c.number > bindparam("after"))
    .order_by(history.c.number.desc())
    .limit(bindparam("most"))
)
#: The same of one plan.
HISTORY_OF_PLAN = HISTORY.where(history.c.plan == bindparam("plan_uuid"))
#: Finds a subscription that has not ended at a time ``now``.
SUBSCRIBED = (
    sa.select(subscriptions.c.name)
    .where(subscriptions.c.until.is_(None) | (subscriptions.c.until > bindparam("now")))
    .limit(1)
)
#: Check the claim of a plan and store the name of the write, which counts as a heartbeat. No row
#: matches if the claim has ended, if the write was already made, or if ``publishes`` (whether the
#: writer writes events; None for a write without any) is not as in the row. The row stays locked
#: until the transaction ends.
HOLD_CLAIM = (
    sa.update(plans)
    .where(
        plans.c.uuid == bindparam("plan_uuid"),
        plans.c.claim == bindparam("held"),
        plans.c.publishes
        == sa.func.coalesce(bindparam("publishes", type_=sa.Integer), plans.c.publishes),
        sa.func.coalesce(plans.c.last_write, _NOTHING) != bindparam("write"),
    )
    .values(
        updated_at=bindparam("now"), heartbeat_at=bindparam("now"), last_write=bindparam("write")
    )
)
#: By the accepted states of a plan: check its state and store the name of the write. No row matches
#: if the plan is in another state or the write was already made.
HOLD_STATE: dict[tuple[PlanState, ...], sa.Update] = {
    states: sa.update(plans)
    .where(
        plans.c.uuid == bindparam("plan_uuid"),
        plans.c.state.in_([_word(state) for state in states]),
        sa.func.coalesce(plans.c.last_write, _NOTHING) != bindparam("write"),
    )
    .values(updated_at=bindparam("now"), last_write=bindparam("write"))
    for states in (WAITING_PLAN, UNCLAIMED_PLAN)
}
#: Increment the number of requests of a plan that somebody runs.
COUNT_REQUEST = (
    sa.update(plans)
    .where(plans.c.uuid == bindparam("plan_uuid"), plans.c.claim.is_not(None))
    .values(requests=plans.c.requests + _ONE)
)
#: End the actions of a cancelled or paused plan that are in a given state.
CANCEL = (
    sa.update(action_states)
    .where(
        action_states.c.plan == bindparam("plan_uuid"),
        action_states.c.state == bindparam("old_state"),
    )
    .values(
        state=bindparam("new_state"),
        state_reason=sa.null(),
        status_message=bindparam("new_message"),
        ended_at=bindparam("now"),
    )
)
#: Replace the message of a SKIPPED action.
REWORD_SKIP = (
    sa.update(action_states)
    .where(
        action_states.c.plan == bindparam("plan_uuid"),
        action_states.c.uuid == bindparam("action_uuid"),
        action_states.c.state == _word(ActionState.SKIPPED),
    )
    .values(status_message=bindparam("new_message"))
)
#: Change the state of a plan, if state and claim have not changed since they were read.
MOVE = (
    sa.update(plans)
    .where(
        plans.c.uuid == bindparam("plan_uuid"),
        plans.c.state == bindparam("old_state"),
        sa.func.coalesce(plans.c.claim, _NOTHING) == bindparam("held"),
        plans.c.requests == sa.func.coalesce(bindparam("read", type_=sa.Integer), plans.c.requests),
    )
    .values(
        state=bindparam("new_state"),
        claim=bindparam("new_claim"),
        status_message=bindparam("new_message"),
        updated_at=bindparam("now"),
        last_write=bindparam("write"),
    )
)
#: Take the next number for the queues. Other transactions wait here until this one is committed.
TAKE_TURN = sa.update(turn).values(number=turn.c.number + _ONE)
TURN = sa.select(turn.c.number)
#: Put a plan at the end of the queue of plans that wait for an applier.
QUEUE = (
    sa.update(plans)
    .where(plans.c.uuid == bindparam("plan_uuid"))
    .values(queued=bindparam("new_number"))
)
#: Put a plan at the end of the queue of plans that reserve resources; NULL removes it.
QUEUE_RESERVED = (
    sa.update(plans)
    .where(plans.c.uuid == bindparam("plan_uuid"))
    .values(reserved=bindparam("new_number"))
)
#: Release the resources that a plan has reserved.
GIVE_BACK = sa.delete(reservations).where(reservations.c.plan == bindparam("plan_uuid"))
#: Store a heartbeat of the claimant.
BEAT = (
    sa.update(plans)
    .where(plans.c.uuid == bindparam("plan_uuid"), plans.c.claim == bindparam("held"))
    .values(heartbeat_at=bindparam("now"))
)
#: Claim a plan that waits for an applier.
CLAIM = (
    sa.update(plans)
    .where(plans.c.uuid == bindparam("plan_uuid"), plans.c.state == _word(PlanState.PENDING))
    .values(
        state=_word(PlanState.ONGOING),
        claim=bindparam("new_claim"),
        claimant_host=bindparam("host"),
        claimant_pid=bindparam("pid"),
        claimant_user=bindparam("user"),
        updated_at=bindparam("now"),
        heartbeat_at=bindparam("now"),
        heartbeat_interval_s=bindparam("interval_s"),
        requests_before=plans.c.requests,
        publishes=sa.case((SUBSCRIBED.exists(), _ONE), else_=sa.literal_column("0", sa.Integer)),
        claimed_at=bindparam("now"),
        last_write=bindparam("new_claim"),
    )
)
#: The uuid of the plan that was saved last.
LAST = (
    sa.select(plans.c.uuid)
    .where(plans.c.state != _word(PlanState.DELETED))
    .order_by(plans.c.number.desc())
    .limit(1)
)
#: The plans that wait for an applier, longest wait first.
PENDING_PLANS = (
    sa.select(plans.c.uuid)
    .where(plans.c.state == _word(PlanState.PENDING))
    .order_by(sa.func.coalesce(plans.c.queued, sa.literal_column("0")), plans.c.number)
)
_own, _mine, _theirs = reservations.alias(), plans.alias(), plans.alias()
#: The plans that reserved a plan's resources before it did, in the order of their reservations.
HELD = (
    sa.select(
        reservations.c.resource,
        _theirs.c.uuid.label("plan"),
        _theirs.c.name,
        _theirs.c.claimant_user.label("user"),
    )
    .select_from(_own)
    .join(_mine, _mine.c.uuid == _own.c.plan)
    .join(reservations, reservations.c.resource == _own.c.resource)
    .join(_theirs, _theirs.c.uuid == reservations.c.plan)
    .where(_own.c.plan == bindparam("plan_uuid"), _theirs.c.reserved < _mine.c.reserved)
    .order_by(_theirs.c.reserved)
)
#: Services, as they last reported themselves.
FORGET_SERVICE = sa.delete(services).where(services.c.uuid == bindparam("service_uuid"))
SERVICES = sa.select(services).order_by(services.c.heartbeat_at.desc(), services.c.uuid)


#: All plans that a reference may match, and perhaps more: SQLite's LIKE ignores
#: case, and MySQL's = ignores trailing spaces.
FIND = sa.select(plans.c.uuid, plans.c.name).where(
    (
        (
            plans.c.uuid.like(bindparam("beginning"), escape="/")
            | (plans.c.name == bindparam("reference"))
        )
        & (plans.c.state != _word(PlanState.DELETED))
    )
    | (plans.c.uuid == bindparam("reference"))
)


def beginning(reference: str) -> str:
    """Return the LIKE pattern for texts that begin with a text, for :data:`FIND`.

    >>> beginning("6a1f_")
    '6a1f/_%'
    """
    return re.sub("([/%_])", r"/\1", reference) + "%"


def _newest(wanted: sa.ColumnElement[bool], *columns: Any) -> sa.Select[Any]:
    """Select the plans that match a condition, newest first; at most ``most``."""
    return (
        sa.select(*columns).where(wanted).order_by(plans.c.number.desc()).limit(bindparam("most"))
    )


def _counts(wanted: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """Select how many actions of these plans are in each state, except actions of the type join."""
    # IN instead of JOIN: SQLite then reads the rows of these plans only. MySQL accepts a LIMIT in
    # an IN only inside a derived table.
    newest = _newest(wanted, plans.c.uuid).subquery()
    return (
        sa.select(action_states.c.plan, action_states.c.state, sa.func.count().label("number"))
        .where(
            action_states.c.plan.in_(sa.select(newest.c.uuid)),
            action_states.c.action_type != _word(JOIN),
        )
        .group_by(action_states.c.plan, action_states.c.state)
    )


#: How many actions of one plan are in each state, except those of the type join.
COUNTS = _counts(plans.c.uuid == bindparam("plan_uuid"))
_THERE = plans.c.state != _word(PlanState.DELETED)
_IN_STATE = plans.c.state == bindparam("state")
#: The lengths are compared because MySQL's = ignores trailing spaces.
_NAMED = (plans.c.name == bindparam("name")) & (
    sa.func.length(plans.c.name) == sa.func.length(bindparam("name"))
)
#: The newest plans, and the counts of their actions by state: by whether they are in one state, or
#: in any but DELETED, and by whether they have one name.
LISTS = {
    (in_state, named): (_newest(wanted, plans), _counts(wanted))
    for in_state, by_state in ((False, _THERE), (True, _IN_STATE))
    for named, wanted in ((False, by_state), (True, by_state & _NAMED))
}
#: The number of plans in one state, and in any but DELETED.
COUNT_STATE, COUNT = (
    sa.select(sa.func.count().label("number")).select_from(plans).where(wanted)
    for wanted in (_IN_STATE, _THERE)
)
#: The limit of a list that has none.
ALL = sys.maxsize

#: Columns that a new plan leaves out: ``number`` is set by the database, the others by runs.
OF_RUNS = frozenset(
    {
        "number",
        "claim",
        "claimant_host",
        "claimant_pid",
        "claimant_user",
        "heartbeat_at",
        "heartbeat_interval_s",
        "requests_before",
        "claimed_at",
        "last_write",
        "queued",
        "reserved",
        "publishes",
    }
)
#: Insert an entry of the history; the database sets its number.
INSERT_HISTORY = (
    sa.insert(history)
    .inline()
    .values({c: bindparam(c.key) for c in history.c if c is not history.c.number})
)
#: Insert one row into a table.
INSERT_PLAN, INSERT_ACTION, INSERT_STATE, INSERT_REQUEST, INSERT_SERVICE, INSERT_RESERVATION = (
    sa.insert(table)
    .inline()
    .values({c: bindparam(c.key) for c in table.c if c.key not in OF_RUNS or table is not plans})
    for table in (plans, actions, action_states, requests, services, reservations)
)
