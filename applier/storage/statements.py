# SPDX-License-Identifier: Apache-2.0
"""The statements of the database store that have a fixed number of parameters.

Each is made when it is first needed, and compiled once (see :mod:`applier.storage.compiled`).
"""

from __future__ import annotations

import re
import sys
from functools import partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy import bindparam

from applier.storage.claims import UNCLAIMED_PLAN, WAITING_PLAN
from applier.storage.compiled import Deferred, insert_into, word, words
from applier.storage.tables import (
    action_states,
    actions,
    answers,
    attempts,
    history,
    plans,
    requests,
    reservations,
    services,
    subscriptions,
    worker_jobs,
)
from applier.store import Attempt
from planner.states import ActionState, PlanState

_NOTHING, _ONE = sa.literal_column("''", sa.String), sa.literal_column("1", sa.Integer)


def _hold_state(states: tuple[PlanState, ...]) -> sa.Update:
    return (
        sa.update(plans)
        .where(
            plans.c.uuid == bindparam("plan_uuid"),
            plans.c.state.in_(words(states)),
            sa.func.coalesce(plans.c.last_write, _NOTHING) != bindparam("write"),
        )
        .values(updated_at=bindparam("now"), last_write=bindparam("write"))
    )


def _held(own: sa.FromClause, mine: sa.FromClause, theirs: sa.FromClause) -> sa.Select[Any]:
    return (
        sa.select(
            reservations.c.resource,
            theirs.c.uuid.label("plan"),
            theirs.c.name,
            theirs.c.claimant_user.label("user"),
        )
        .select_from(own)
        .join(mine, mine.c.uuid == own.c.plan)
        .join(reservations, reservations.c.resource == own.c.resource)
        .join(theirs, theirs.c.uuid == reservations.c.plan)
        .where(own.c.plan == bindparam("plan_uuid"), theirs.c.reserved < mine.c.reserved)
        .order_by(theirs.c.reserved)
    )


#: The row of one plan.
PLAN = Deferred(lambda: sa.select(plans).where(plans.c.uuid == bindparam("plan_uuid")))
#: The uuids of all plans. SQLite reads them from an index, so that no page of rows is needed.
NUMBERS = Deferred(lambda: sa.select(plans.c.uuid, plans.c.number).order_by(plans.c.uuid))
#: The actions of a plan as planned, in plan order.
ACTIONS = Deferred(
    lambda: (
        sa.select(actions)
        .where(actions.c.plan == bindparam("plan_uuid"))
        .order_by(actions.c.position)
    )
)
#: The same with the columns of their states, which are NULL for an action that has none.
MEMBERS = Deferred(
    lambda: (
        ACTIONS()
        .add_columns(*(c for c in action_states.c if c.key not in actions.c))
        .select_from(actions)
        .outerjoin(
            action_states,
            (action_states.c.plan == actions.c.plan) & (action_states.c.uuid == actions.c.uuid),
        )
    )
)
#: The state rows of the actions of a plan.
STATES = Deferred(
    lambda: sa.select(action_states).where(action_states.c.plan == bindparam("plan_uuid"))
)
#: State, start and number of attempts of one action.
ACTION = Deferred(
    lambda: sa.select(
        action_states.c.state, action_states.c.started_at, action_states.c.attempts
    ).where(
        action_states.c.plan == bindparam("plan_uuid"),
        action_states.c.uuid == bindparam("action_uuid"),
    )
)
#: The ended attempts of an action, oldest first.
ATTEMPTS = Deferred(
    lambda: (
        sa.select(attempts.c.action, *(attempts.c[name] for name in Attempt._fields))
        .where(
            attempts.c.plan == bindparam("plan_uuid"), attempts.c.action == bindparam("action_uuid")
        )
        .order_by(attempts.c.number)
    )
)
#: The ended attempts of all actions of a plan, with the end of each output.
ALL_ATTEMPTS = (
    sa.select(
        attempts.c.action,
        *(attempts.c[name] for name in Attempt._fields if name != "output"),
        sa.case(
            (
                sa.func.length(attempts.c.output) > bindparam("most"),
                sa.func.substr(
                    attempts.c.output, sa.func.length(attempts.c.output) - bindparam("most") + 1
                ),
            ),
            else_=attempts.c.output,
        ).label("output"),
    )
    .where(attempts.c.plan == bindparam("plan_uuid"))
    .order_by(attempts.c.action, attempts.c.number)
)
#: The latest attempts whose durations are used for a type, with tokens and parameters of their
#: actions.
DURATIONS = Deferred(
    lambda: (
        sa.select(
            attempts.c.started_at, attempts.c.ended_at, actions.c.tokens, actions.c.input_parameters
        )
        .join_from(
            attempts,
            actions,
            (actions.c.plan == attempts.c.plan) & (actions.c.uuid == attempts.c.action),
            isouter=True,
        )
        .where(attempts.c.measures == bindparam("action_type"))
        .where(attempts.c.ended_at < bindparam("before"))
        .order_by(attempts.c.id.desc())
        .limit(bindparam("most"))
    )
)
#: The requests of a plan with numbers greater than ``after``, oldest first.
REQUESTS = Deferred(
    lambda: (
        sa.select(requests)
        .where(requests.c.plan == bindparam("plan_uuid"), requests.c.number > bindparam("after"))
        .order_by(requests.c.number)
    )
)
#: The entries of the history with numbers greater than ``after``, latest first; at most ``most``.
HISTORY = Deferred(
    lambda: (
        sa.select(history)
        .where(history.c.number > bindparam("after"))
        .order_by(history.c.number.desc())
        .limit(bindparam("most"))
    )
)
#: The same of one plan.
HISTORY_OF_PLAN = Deferred(lambda: HISTORY().where(history.c.plan == bindparam("plan_uuid")))
#: One subscription that has not ended at the time ``now``, if there is any.
SUBSCRIBED = Deferred(
    lambda: (
        sa.select(subscriptions.c.name)
        .where(subscriptions.c.until.is_(None) | (subscriptions.c.until > bindparam("now")))
        .limit(1)
    )
)
#: Check the claim of a plan and store the name of the write, which counts as a heartbeat. No row
#: matches if the claim has ended, if the write was already made, or if ``publishes`` (whether the
#: writer writes events; None for a write without any) is not as in the row. The row stays locked
#: until the transaction ends.
HOLD_CLAIM = Deferred(
    lambda: (
        sa.update(plans)
        .where(
            plans.c.uuid == bindparam("plan_uuid"),
            plans.c.claim == bindparam("held"),
            plans.c.publishes
            == sa.func.coalesce(bindparam("publishes", type_=sa.Integer), plans.c.publishes),
            sa.func.coalesce(plans.c.last_write, _NOTHING) != bindparam("write"),
        )
        .values(
            updated_at=bindparam("now"),
            heartbeat_at=bindparam("now"),
            last_write=bindparam("write"),
        )
    )
)
#: By the accepted states of a plan: check its state and store the name of the write. No row matches
#: if the plan is in another state or the write was already made.
HOLD_STATE: dict[tuple[PlanState, ...], Deferred[sa.Update]] = {
    states: Deferred(partial(_hold_state, states)) for states in (WAITING_PLAN, UNCLAIMED_PLAN)
}
#: Increment the number of requests of a plan that somebody runs.
COUNT_REQUEST = Deferred(
    lambda: (
        sa.update(plans)
        .where(plans.c.uuid == bindparam("plan_uuid"), plans.c.claim.is_not(None))
        .values(requests=plans.c.requests + _ONE)
    )
)
#: Cancel the PENDING actions of a plan.
CANCEL = Deferred(
    lambda: (
        sa.update(action_states)
        .where(
            action_states.c.plan == bindparam("plan_uuid"),
            action_states.c.state == word(ActionState.PENDING),
        )
        .values(
            state=word(ActionState.CANCELLED),
            state_reason=sa.null(),
            status_message=bindparam("new_message"),
            ended_at=bindparam("now"),
        )
    )
)
#: Replace the message of a SKIPPED action.
REWORD_SKIP = Deferred(
    lambda: (
        sa.update(action_states)
        .where(
            action_states.c.plan == bindparam("plan_uuid"),
            action_states.c.uuid == bindparam("action_uuid"),
            action_states.c.state == word(ActionState.SKIPPED),
        )
        .values(status_message=bindparam("new_message"))
    )
)
#: Change the state of a plan, if state and claim have not changed since they were read.
MOVE = Deferred(
    lambda: (
        sa.update(plans)
        .where(
            plans.c.uuid == bindparam("plan_uuid"),
            plans.c.state == bindparam("old_state"),
            sa.func.coalesce(plans.c.claim, _NOTHING) == bindparam("held"),
            plans.c.requests
            == sa.func.coalesce(bindparam("read", type_=sa.Integer), plans.c.requests),
        )
        .values(
            state=bindparam("new_state"),
            deleted_from=bindparam("deleted_from"),
            claim=bindparam("new_claim"),
            status_message=bindparam("new_message"),
            updated_at=bindparam("now"),
            start_at=bindparam("start_at"),
            last_write=bindparam("write"),
        )
    )
)
#: Put a plan at the end of the queue of plans that reserve resources; NULL removes it.
QUEUE_RESERVED = Deferred(
    lambda: (
        sa.update(plans)
        .where(plans.c.uuid == bindparam("plan_uuid"))
        .values(reserved=bindparam("new_number"))
    )
)
#: Release the resources that a plan has reserved.
GIVE_BACK = Deferred(
    lambda: sa.delete(reservations).where(reservations.c.plan == bindparam("plan_uuid"))
)
#: Remove all jobs at workers of a plan that has ended.
REMOVE_JOBS = Deferred(
    lambda: sa.delete(worker_jobs).where(worker_jobs.c.plan == bindparam("plan_uuid"))
)
#: Store a heartbeat of the claimant.
BEAT = Deferred(
    lambda: (
        sa.update(plans)
        .where(plans.c.uuid == bindparam("plan_uuid"), plans.c.claim == bindparam("held"))
        .values(heartbeat_at=bindparam("now"))
    )
)
#: The uuid of the plan that was saved last, except removed ones.
LAST = Deferred(
    lambda: (
        sa.select(plans.c.uuid)
        .where(plans.c.state != word(PlanState.DELETED))
        .order_by(plans.c.number.desc())
        .limit(1)
    )
)
#: The plans that reserved a plan's resources before it did, in the order of their reservations.
HELD = Deferred(lambda: _held(reservations.alias(), plans.alias(), plans.alias()))
#: Delete a service, before its next report is inserted or when it has ended.
FORGET_SERVICE = Deferred(
    lambda: sa.delete(services).where(services.c.uuid == bindparam("service_uuid"))
)
SERVICES = Deferred(
    lambda: sa.select(services).order_by(services.c.heartbeat_at.desc(), services.c.uuid)
)


#: All plans that a reference may match, and perhaps more: SQLite's LIKE ignores
#: case, and MySQL's = ignores trailing spaces.
FIND = Deferred(
    lambda: sa.select(plans.c.uuid, plans.c.name).where(
        (
            (
                plans.c.uuid.like(bindparam("beginning"), escape="/")
                | (plans.c.name == bindparam("reference"))
            )
            & (plans.c.state != word(PlanState.DELETED))
        )
        | (plans.c.uuid == bindparam("reference"))
    )
)


def beginning(reference: str) -> str:
    """Return the LIKE pattern, for :data:`FIND`, of all texts that begin with ``reference``.

    >>> beginning("6a1f_")
    '6a1f/_%'
    """
    # No uuid begins with a longer text, and SQLite refuses long patterns.
    return re.sub("([/%_])", r"/\1", reference[:40]) + "%"


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
        "claimant_jobs",
        "heartbeat_at",
        "heartbeat_interval_s",
        "requests_before",
        "claimed_at",
        "last_write",
        "queued",
        "reserved",
        "publishes",
        "deleted_from",
    }
)
#: Insert an entry of the history; the database sets its number.
INSERT_HISTORY = Deferred(lambda: insert_into(history, without=("number",)))
#: Insert the row of a change that is to happen once; it fails if there is one with this key.
INSERT_ANSWER = Deferred(lambda: insert_into(answers))
#: Insert one row into a table.
INSERT_PLAN = Deferred(lambda: insert_into(plans, without=OF_RUNS))
INSERT_ACTION = Deferred(lambda: insert_into(actions))
INSERT_STATE = Deferred(lambda: insert_into(action_states))
INSERT_REQUEST = Deferred(lambda: insert_into(requests))
INSERT_SERVICE = Deferred(lambda: insert_into(services))
INSERT_RESERVATION = Deferred(lambda: insert_into(reservations))
