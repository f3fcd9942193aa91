# SPDX-License-Identifier: Apache-2.0
"""Undoes Watcher's cancel of a plan whose applier it takes for dead, while that applier runs it.

Watcher cancels the plan and its actions, row by row, when an applier has not reported for some
time, and when an applier with the same host name starts. An applier that still holds the claim on
the plan is alive.
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from watcher.db.sqlalchemy import models

from applier.watcher import claims, database
from applier.watcher.states import stopped_action, stopped_plan, word
from applier.watcher.tables import attempts
from planner.states import ActionState

LOG = logging.getLogger(__name__)
PLANS, ACTIONS = claims.PLANS, models.Action.__table__


def is_one(row: Any, host: str) -> bool:
    """Return whether Watcher has cancelled a plan because it takes the applier ``host`` for dead.

    ``row`` is the row of the plan. If that applier itself calls this, the cancel is a false alarm.
    """
    return bool(row.state == "CANCELLED" and row.status_message == stopped_plan(host))


@database.translated
def undo(uuid: str, token: str, host: str, now: datetime) -> None:
    """Make a plan ONGOING again that Watcher has cancelled because of a false alarm.

    Its cancelled actions are not changed: the run overwrites their states when it starts or ends
    them. Does nothing if there was no false alarm. Raises PlanConflict if the claim ``token`` has
    ended.
    """
    with database.writing() as connection:
        claims.hold(connection, uuid, token, now)
        row = claims.plan_row(connection, uuid, lock=True)
        if not is_one(row, host):
            return
        ongoing = {"state": "ONGOING", "status_message": None, "updated_at": claims.naive(now)}
        connection.execute(sa.update(PLANS).where(PLANS.c.id == row.id).values(**ongoing))
    LOG.warning("Plan %s: Watcher takes applier %s for dead, which runs it: it goes on", uuid, host)


def restore_ended(connection: sa.Connection, row: Any, host: str, now: datetime) -> None:
    """Restore the states of actions that had ended when Watcher cancelled them by a false alarm.

    The states are those of their last attempts. ``row`` is the row of the plan.
    """
    cancelled = sa.select(ACTIONS.c.uuid).where(
        ACTIONS.c.action_plan_id == row.id,
        ACTIONS.c.state == "CANCELLED",
        ACTIONS.c.status_message == stopped_action(host),
    )
    uuids = list(connection.execute(cancelled).scalars())
    if not uuids:
        return
    ended = sa.select(attempts).where(
        attempts.c.plan_uuid == row.uuid,
        attempts.c.action_uuid.in_(uuids),
        attempts.c.ended_at.is_not(None),
    )
    for attempt in connection.execute(ended.order_by(attempts.c.number)):
        values = {"state": word(ActionState(attempt.state)), "status_message": attempt.message}
        mine = sa.update(ACTIONS).where(ACTIONS.c.uuid == attempt.action_uuid)
        connection.execute(mine.values(**values, updated_at=claims.naive(now)))
