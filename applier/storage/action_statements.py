# SPDX-License-Identifier: Apache-2.0
"""Statements on several actions of one plan; each is built once for each number of actions.

Adjacent reports that are equal except for the action become one statement, except in PostgreSQL. So
a commit usually has four statements, however many actions end and start in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy import bindparam

from applier.storage.compiled import word, words
from applier.storage.tables import action_states, attempts, plans
from applier.storage.transactions import Write
from applier.storage.transitions import UNDOABLE
from planner.states import ActionState, Outcome

#: The parameters for the uuids of actions; one statement has at most this many actions.
UUIDS = tuple(f"uuid_{i}" for i in range(50))
#: How many actions are in one statement, by kind of database. PostgreSQL gets one statement for
#: each action: without statistics of the table, it would read all rows of a plan to find several
#: of them. In its pipeline, single statements are cheap.
AT_ONCE = {"sqlite": len(UUIDS), "mysql": len(UUIDS), "postgresql": 1}

Condition = sa.ColumnElement[bool]
#: A function that returns the statement for a number of actions.
Statements = Callable[[int], sa.ClauseElement]


def writes(
    statements: Statements,
    uuids: Sequence[str],
    values: Mapping[str, Any],
    *,
    at_once: int,
    checked: bool = True,
) -> Iterator[Write]:
    """Yield the writes for these actions; each statement has up to ``at_once`` of them.

    ``values`` are the other parameters. If ``checked``, each write must change as many rows as it
    has actions.
    """
    for first in range(0, len(uuids), at_once):
        some = uuids[first : first + at_once]
        parameters = {**values, **dict(zip(UUIDS, some, strict=False))}
        yield Write(statements(len(some)), parameters, len(some) if checked else None)


def _about(make: Callable[[Condition], sa.ClauseElement]) -> Statements:
    """Return a function that builds and caches the statement for a number of actions.

    ``make`` builds it from the condition that a row is that of one of these actions.
    """

    @cache
    def about(number: int) -> sa.ClauseElement:
        uuids: list[sa.BindParameter[str]] = [bindparam(name) for name in UUIDS[:number]]
        return make(
            (action_states.c.plan == bindparam("plan_uuid")) & action_states.c.uuid.in_(uuids)
        )

    return about


#: Start actions that are PENDING.
START = _about(
    lambda these: (
        sa.update(action_states)
        .where(these, action_states.c.state == word(ActionState.PENDING))
        .values(
            state=word(ActionState.ONGOING),
            outcome=sa.null(),
            state_reason=sa.null(),
            status_message=bindparam("new_message"),
            started_at=bindparam("now"),
            ended_at=sa.null(),
            attempts=action_states.c.attempts + sa.literal_column("1", sa.Integer),
        )
    )
)
#: Continue the last attempt of actions that are UNKNOWN, whose commands were found.
REOPEN = _about(
    lambda these: (
        sa.update(action_states)
        .where(these, action_states.c.state == word(ActionState.UNKNOWN))
        .values(
            state=word(ActionState.ONGOING),
            outcome=sa.null(),
            state_reason=sa.null(),
            status_message=bindparam("new_message"),
            ended_at=sa.null(),
        )
    )
)
#: Delete the record of these attempts, which have not ended after all.
DROP_ATTEMPT = _about(
    lambda these: sa.delete(attempts).where(
        attempts.c.plan == bindparam("plan_uuid"),
        sa.exists(
            sa.select(action_states.c.uuid).where(
                these,
                action_states.c.plan == attempts.c.plan,
                action_states.c.uuid == attempts.c.action,
                action_states.c.attempts == attempts.c.number,
            )
        ),
    )
)
#: End actions that are in the old state of their reports.
END = _about(
    lambda these: (
        sa.update(action_states)
        .where(these, action_states.c.state == bindparam("old_state"))
        .values(
            state=bindparam("new_state"),
            outcome=bindparam("new_outcome"),
            state_reason=bindparam("new_reason"),
            status_message=bindparam("new_message"),
            ended_at=bindparam("now"),
        )
    )
)
#: Make actions PENDING again.
AGAIN = _about(
    lambda these: (
        sa.update(action_states)
        .where(these)
        .values(
            state=word(ActionState.PENDING),
            outcome=sa.null(),
            state_reason=sa.null(),
            status_message=bindparam("new_message"),
            started_at=sa.null(),
            ended_at=sa.null(),
        )
    )
)
#: Write the new state of reverted actions of another plan, if their old state allows that.
UNDONE = _about(
    lambda these: (
        sa.update(action_states)
        .where(these, action_states.c.state.in_(words(sorted(UNDOABLE))))
        .values(
            state=bindparam("new_state"),
            state_reason=sa.null(),
            status_message=bindparam("new_message"),
        )
    )
)


def _worked() -> Condition:
    """Return the condition that the duration of an action's last attempt can be used.

    It SUCCEEDED, changed or created something, and started under the current claim.
    """
    of_plan = plans.c.uuid == bindparam("plan_uuid")
    claimed_at = sa.select(plans.c.claimed_at).where(of_plan).scalar_subquery()
    return (
        (action_states.c.state == word(ActionState.SUCCEEDED))
        & action_states.c.outcome.in_(words([Outcome.CHANGED, Outcome.CREATED]))
        & (action_states.c.started_at >= claimed_at)
    )


def _left_in() -> sa.ColumnElement[str]:
    """Return the process in which an attempt may still be at work; by default the claimant."""
    of_plan = plans.c.uuid == bindparam("plan_uuid")
    colon = sa.literal_column("':'", sa.String)
    process = plans.c.claimant_host + colon + sa.cast(plans.c.claimant_pid, sa.String(20))
    named = bindparam("new_left_in", type_=sa.String)
    claimant = sa.select(process).where(of_plan).scalar_subquery()
    is_left = bindparam("given_up", type_=sa.Integer) == sa.literal_column("1", sa.Integer)
    return sa.case((is_left, sa.func.coalesce(named, claimant)))


#: Insert the attempts that just ended, copied from the rows of their actions.
KEEP_ATTEMPT = _about(
    lambda these: sa.insert(attempts).from_select(
        [c.key for c in attempts.c if c.key not in ("id", "worker")],
        sa.select(
            action_states.c.plan,
            action_states.c.uuid,
            action_states.c.attempts,
            sa.func.coalesce(action_states.c.started_at, action_states.c.ended_at),
            action_states.c.ended_at,
            action_states.c.state,
            action_states.c.outcome,
            sa.case((_worked(), action_states.c.action_type)),
            action_states.c.status_message,
            bindparam("new_output", type_=sa.String),
            _left_in(),
            # A pipeline sends this before the result of END is known.
        ).where(these, action_states.c.ended_at.is_not(None)),
        include_defaults=False,
    )
)
