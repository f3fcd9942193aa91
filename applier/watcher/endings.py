# SPDX-License-Identifier: Apache-2.0
"""Ends runs of plans that cannot go on: refused ones, and those whose applier has died."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from watcher.db.sqlalchemy import models

from applier.contracts import Claimant, Report
from applier.watcher import claims, database, deadly
from applier.watcher.states import (
    CANCEL_STATES,
    DOUBT,
    cut,
    not_run,
    stopped_action,
    stopped_plan,
)
from applier.watcher.tables import attempts
from planner.states import ActionState, PlanState

PLANS, ACTIONS = claims.PLANS, models.Action.__table__
#: Watcher's states of actions that have not ended, and those of actions that are running.
OPEN, BEGUN = ("PENDING", "ONGOING", "CANCELLING"), ("ONGOING", "CANCELLING")
#: The states of actions of a cancelled plan, by the states that verification found.
_FOUND = {
    ActionState.SUCCEEDED: ActionState.SUCCEEDED,
    ActionState.PENDING: ActionState.CANCELLED,
}
#: The message of one that is not done. The report's own says that it runs again.
_NOT_DONE = "it was interrupted; verified: its work is not done"


@database.translated
def plan_state(uuid: str) -> str:
    """Return the state of a plan in Watcher's words; raises PlanNotFound."""
    with database.reading() as connection:
        return str(claims.plan_row(connection, uuid).state)


def is_open(uuid: str) -> bool:
    """Return whether an action of a plan has not ended."""
    return _any(uuid, OPEN)


def has_failed(uuid: str) -> bool:
    """Return whether an action of a plan is FAILED, so that Watcher's handler fails the plan."""
    return _any(uuid, ("FAILED",))


@database.translated
def _any(uuid: str, states: tuple[str, ...]) -> bool:
    with database.reading() as connection:
        mine = _mine(claims.plan_row(connection, uuid), states)
        found = connection.execute(sa.select(ACTIONS.c.id).where(*mine).limit(1)).first()
    return found is not None


@database.translated
def is_claimed_by(uuid: str, token: str | None) -> bool:
    """Return whether ``token`` is the current claim on a plan; False if it is None."""
    with database.reading() as connection:
        row = claims.run_row(connection, uuid)
    return token is not None and row is not None and row.claim == token


@database.translated
def refuse(uuid: str, reason: str, token: str | None) -> None:
    """Record why a plan cannot be run, or not to its end; Watcher's handler makes it FAILED.

    PENDING actions become CANCELLED. Running ones become FAILED with the message of an action in
    doubt. The claim ``token`` ends, if it is not None. If another process has claimed the plan,
    nothing is written.
    """
    now = datetime.now(UTC)
    with database.writing() as connection:
        row = claims.plan_row(connection, uuid)
        run = claims.run_row(connection, uuid)
        if run is not None and run.claim is not None:
            if token is None or run.claim != token:
                return
            claims.release(connection, uuid, token)
        _settle(connection, row, ("PENDING",), "CANCELLED", not_run(reason), now)
        _settle(connection, row, BEGUN, "FAILED", DOUBT, now)
        _end_attempts(connection, uuid, now)
        sentence = sa.update(PLANS).where(PLANS.c.id == row.id, PLANS.c.state.not_in(CANCEL_STATES))
        connection.execute(sentence.values(status_message=cut(reason)))


@database.translated
def take_over(
    uuid: str, seen: Claimant, *, resume: bool, found: Mapping[str, Report] | None = None
) -> None:
    """End the claim of a claimant that has died.

    If a user has cancelled the plan, the cancel is completed: what was running becomes SUCCEEDED if
    ``found``, the reports of :mod:`applier.watcher.interrupted`, say that its work is done,
    CANCELLED if it is not done, and FAILED, in doubt, if nobody knows. Otherwise, with ``resume``,
    running actions are left to the next run, which verifies them, except for those that
    :mod:`applier.watcher.deadly` fails. Without ``resume``, the plan and its open actions become
    CANCELLED, as Watcher does when an applier starts again. Raises PlanConflict if a heartbeat was
    written after ``seen`` was read, or the claim has ended.
    """
    now = datetime.now(UTC)
    with database.writing() as connection:
        claims.end(connection, uuid, seen)
        row = claims.plan_row(connection, uuid)
        if row.state in CANCEL_STATES:
            _settle(connection, row, ("PENDING",), "CANCELLED", None, now)
            for action, report in (found or {}).items():
                _settle_found(connection, row, action, report, now)
            _settle(connection, row, BEGUN, "FAILED", DOUBT, now)
            _end_attempts(connection, uuid, now)
            _set_plan(connection, row, PlanState.CANCELLED, row.status_message, now)
        elif resume:
            deadly.fail_repeatedly_interrupted(connection, ACTIONS, uuid, now)
        else:
            host = claims.run_row(connection, uuid).service_host
            _settle(connection, row, OPEN, "CANCELLED", stopped_action(host), now)
            message = cut(stopped_plan(host))
            _set_plan(connection, row, PlanState.CANCELLED, message, now)


def _set_plan(
    connection: sa.Connection, row: Any, state: PlanState, message: str | None, now: datetime
) -> None:
    values = {"state": str(state), "status_message": message, "updated_at": claims.naive(now)}
    connection.execute(sa.update(PLANS).where(PLANS.c.id == row.id).values(**values))


def _mine(row: Any, states: tuple[str, ...]) -> tuple[Any, ...]:
    return (
        ACTIONS.c.action_plan_id == row.id,
        ACTIONS.c.deleted_at.is_(None),
        ACTIONS.c.state.in_(states),
    )


def _settle(
    connection: sa.Connection,
    row: Any,
    states: tuple[str, ...],
    new: str,
    message: str | None,
    now: datetime,
) -> None:
    """Change all actions of a plan that are in one of ``states`` to the state ``new``."""
    values = {"state": new, "status_message": cut(message), "updated_at": claims.naive(now)}
    connection.execute(sa.update(ACTIONS).where(*_mine(row, states)).values(**values))


def _settle_found(
    connection: sa.Connection, row: Any, action: str, report: Report, now: datetime
) -> None:
    """End a running action as its report says, unless it is in doubt."""
    new = _FOUND.get(report.state)
    if new is None:
        return
    mine = sa.update(ACTIONS).where(*_mine(row, BEGUN), ACTIONS.c.uuid == action)
    message = report.message if new is ActionState.SUCCEEDED else _NOT_DONE
    told = {"status_message": cut(message), "updated_at": claims.naive(now)}
    if connection.execute(mine.values(state=str(new), **told)).rowcount:
        left = sa.update(attempts).where(
            attempts.c.action_uuid == action, attempts.c.ended_at.is_(None)
        )
        ended = {"state": str(new), "message": message, "ended_at": claims.naive(now)}
        connection.execute(left.values(outcome=report.outcome and str(report.outcome), **ended))


def _end_attempts(connection: sa.Connection, uuid: str, now: datetime) -> None:
    """End the open attempts of a plan as UNKNOWN."""
    left = sa.update(attempts).where(attempts.c.plan_uuid == uuid, attempts.c.ended_at.is_(None))
    doubt = {"state": str(ActionState.UNKNOWN), "message": DOUBT}
    connection.execute(left.values(ended_at=claims.naive(now), **doubt))
