# SPDX-License-Identifier: Apache-2.0
"""Decides whether a plan can be resumed that has no claim.

Watcher makes a plan ONGOING before it calls the engine, which claims it. If the applier is killed
between the two, no action of the plan has begun. Watcher's own engine makes no claims, and Watcher
writes the same message to the actions that it cancels whether they had begun or not. Where the
database does not show whether actions had begun, an operator has to state that none had.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from oslo_config import cfg
from oslo_utils import timeutils
from watcher.db.sqlalchemy import models

from applier.watcher.states import says_not_run
from applier.watcher.tables import attempts

ACTIONS, SERVICES = models.Action.__table__, models.Service.__table__
_RUNNING = ("ONGOING", "CANCELLING")
_SAY_SO = "if nobody runs it, and nothing of it had begun, say so: --not-begun"


def refusal(connection: sa.Connection, row: Any, run: Any, *, not_begun: bool) -> str | None:
    """Return why a plan without a claimant cannot be resumed; None if it can.

    ``row`` is the row of the plan. ``run`` is the row of its last run by this engine, or None.
    ``not_begun`` is true if an operator states that no action had begun. The plan is refused all
    the same if the database shows that one had.
    """
    if run is not None and row.state not in _RUNNING:
        return None
    begun = _begun_by_others(connection, row, first=run is None)
    if begun:
        return f"Watcher's own engine has begun actions of it: {begun}; a new audit plans the rest"
    if not_begun:
        return None
    if row.state in _RUNNING:
        return _alive(connection, row.hostname)
    if _unclear(connection, row):
        return f"this engine never ran it, so nobody knows what of it had begun; {_SAY_SO}"
    return None


def _begun_by_others(connection: sa.Connection, row: Any, *, first: bool) -> int:
    """Return how many actions have begun without an attempt of this engine.

    ``first`` is true if this engine never ran the plan: then actions that have ended count as well.
    """
    ours = sa.select(attempts.c.action_uuid).where(attempts.c.plan_uuid == row.uuid)
    states = (*_RUNNING, "SUCCEEDED", "FAILED") if first else _RUNNING
    query = sa.select(sa.func.count()).select_from(ACTIONS)
    query = query.where(ACTIONS.c.action_plan_id == row.id, ACTIONS.c.deleted_at.is_(None))
    found = query.where(ACTIONS.c.state.in_(states), ACTIONS.c.uuid.not_in(ours))
    return int(connection.execute(found).scalar_one())


def _unclear(connection: sa.Connection, row: Any) -> bool:
    """Return whether a plan has CANCELLED actions that may have begun before."""
    mine = (ACTIONS.c.action_plan_id == row.id, ACTIONS.c.deleted_at.is_(None))
    found = sa.select(ACTIONS.c.status_message).where(*mine, ACTIONS.c.state == "CANCELLED")
    return not all(map(says_not_run, connection.execute(found.distinct()).scalars()))


def _alive(connection: sa.Connection, host: str | None) -> str | None:
    """Return a refusal if the applier of a plan may be alive; None if Watcher counts it as down."""
    if not host:
        return f"Watcher does not say which applier has it; {_SAY_SO}"
    mine = (SERVICES.c.name == "watcher-applier", SERVICES.c.host == host)
    kept = sa.select(SERVICES).where(*mine, SERVICES.c.deleted_at.is_(None))
    oldest = timeutils.utcnow() - timedelta(seconds=cfg.CONF.service_down_time)
    for service in connection.execute(kept):
        heard = service.last_seen_up or service.updated_at or service.created_at
        if heard >= oldest:
            return f"applier {host} has it, and was heard of at {heard:%H:%M:%S} UTC; {_SAY_SO}"
    return None
