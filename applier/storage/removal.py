# SPDX-License-Identifier: Apache-2.0
"""Deletes a damaged plan with all of its rows, which need not be readable for that."""

from __future__ import annotations

import sqlalchemy as sa

from applier.contracts import HistoryEntry
from applier.errors import PlanConflict
from applier.storage import damaged_plans, tables
from applier.storage.changes import note
from applier.storage.database import Database
from planner.errors import short

#: Rows that refer to others come first.
_OF_PLANS = (
    tables.reservations,
    tables.history,
    tables.requests,
    tables.attempts,
    tables.action_states,
    tables.actions,
)
_STATEMENTS = (
    *(sa.delete(t).where(t.c.plan == sa.bindparam("plan_uuid")) for t in _OF_PLANS),
    sa.delete(tables.plans).where(tables.plans.c.uuid == sa.bindparam("plan_uuid")),
)


def remove_damaged(database: Database, uuid: str, history: HistoryEntry | None) -> None:
    """Delete all rows of a damaged plan, and write that into the history.

    Raises PlanNotFound, PlanConflict for a sound plan.
    """
    if not damaged_plans.problems(database.read, uuid):
        raise PlanConflict(uuid, "sound", f"plan {short(uuid)} is not damaged")
    with database.write() as transaction:
        for statement in _STATEMENTS:
            transaction.write(statement, {"plan_uuid": uuid})
        if history is not None:
            note(transaction, uuid, history, at=history.at)
