# SPDX-License-Identifier: Apache-2.0
"""Sets the state of an action to what an operator has found out about its work."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from watcher.db.sqlalchemy import models

from applier.errors import ActionNotFound, PlanConflict
from applier.storage.transitions import SETTLED, require_settling
from applier.watcher import claims, database
from applier.watcher.states import cut, state_of
from applier.watcher.tables import attempts
from planner.states import ActionState

ACTIONS = models.Action.__table__


@database.translated
def settle(plan: str, action: str, new: ActionState, *, now: datetime, message: str) -> None:
    """Set the state of an action in doubt to SUCCEEDED or FAILED, or of a FAILED one to SUCCEEDED.

    Its last attempt gets the same state and message; its duration does not count from then on.
    Raises PlanConflict if an applier has the plan, if this engine never ran it, or if the action is
    in another state. Raises InvalidTransition for another new state, PlanNotFound, ActionNotFound.
    """
    require_settling(action, new)
    database.prepare()
    with database.writing() as connection:
        _require_idle(connection, claims.plan_row(connection, plan, lock=True))
        row = _action(connection, plan, action)
        mine = sa.select(attempts).where(
            attempts.c.plan_uuid == plan, attempts.c.action_uuid == action
        )
        last = connection.execute(mine.order_by(attempts.c.number.desc()).limit(1)).first()
        state = state_of(
            row.state, row.status_message, ActionState(last.state) if last and last.state else None
        )
        if state not in _accepted(new):
            text = f"action {action} is {state}: only {' and '.join(_accepted(new))} can be set to"
            raise PlanConflict(plan, str(state), f"{text} {new}")
        told = {"state": str(new), "status_message": cut(message), "updated_at": claims.naive(now)}
        connection.execute(sa.update(ACTIONS).where(ACTIONS.c.uuid == action).values(**told))
        if last is not None:
            known = {"state": str(new), "outcome": str(SETTLED[new]), "message": message}
            ended = sa.update(attempts).where(attempts.c.id == last.id)
            connection.execute(ended.values(ended_under=None, **known))


def _accepted(new: ActionState) -> Sequence[ActionState]:
    """Return the states from which an operator may set an action to ``new``."""
    failed = (ActionState.FAILED,) if new is ActionState.SUCCEEDED else ()
    return (ActionState.UNKNOWN, *failed)


def _require_idle(connection: sa.Connection, row: Any) -> None:
    """Raise PlanConflict if an applier has the plan of a row, or if this engine never ran it."""
    run, why = claims.run_row(connection, row.uuid), None
    if run is None:
        why = "the engine actionplan never ran it"
    elif run.claim is not None:
        why = f"process {run.pid} on {run.host} runs it, or has died: resume it then"
    elif row.state in ("ONGOING", "CANCELLING"):
        why = "an applier has it"
    if why:
        raise PlanConflict(row.uuid, row.state, f"plan {row.uuid} is {row.state}: {why}")


def _action(connection: sa.Connection, plan: str, action: str) -> Any:
    """Return the row of an action of a plan; raises ActionNotFound."""
    number = sa.select(claims.PLANS.c.id).where(claims.PLANS.c.uuid == plan).scalar_subquery()
    mine = (ACTIONS.c.uuid == action, ACTIONS.c.action_plan_id == number)
    row = connection.execute(sa.select(ACTIONS).where(*mine)).first()
    if row is None:
        raise ActionNotFound(plan, action)
    return row
