# SPDX-License-Identifier: Apache-2.0
"""Fails actions that may have killed their applier several times, so that they do not run again."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from applier.run.resume import DEATHS
from applier.watcher import claims
from applier.watcher.tables import attempts
from planner.states import Outcome

MESSAGE = f"it was interrupted {DEATHS} times in a row, and may be what kills the applier"


def fail_repeatedly_interrupted(
    connection: sa.Connection, actions: sa.Table, plan: str, now: datetime
) -> None:
    """Make each running action FAILED whose last DEATHS attempts were all interrupted.

    Its open attempt ends as FAILED, too. The next run verifies the other running actions, and may
    run them again. It would do the same with an action in doubt.
    """
    found = sa.select(attempts).where(attempts.c.plan_uuid == plan).order_by(attempts.c.number)
    by_action: dict[str, list[Any]] = defaultdict(list)
    for row in connection.execute(found):
        by_action[row.action_uuid].append(row)
    deadly = [uuid for uuid, rows in by_action.items() if _is_deadly(rows)]
    if not deadly:
        return
    moment = claims.naive(now)
    failed = {"state": "FAILED", "status_message": MESSAGE, "updated_at": moment}
    connection.execute(sa.update(actions).where(actions.c.uuid.in_(deadly)).values(**failed))
    left = sa.update(attempts).where(
        attempts.c.action_uuid.in_(deadly), attempts.c.ended_at.is_(None)
    )
    ended = {"state": "FAILED", "outcome": str(Outcome.FAILED), "message": MESSAGE}
    connection.execute(left.values(ended_at=moment, **ended))


def _is_deadly(rows: list[Any]) -> bool:
    """Return whether the last of these attempts runs, and the last DEATHS were interrupted."""
    last = rows[-DEATHS:]
    cut_off = all(row.outcome in (None, Outcome.ERROR) for row in last)
    return len(last) == DEATHS and cut_off and last[-1].ended_at is None
