# SPDX-License-Identifier: Apache-2.0
"""Deletes a damaged plan with all its rows, without reading their values."""

from __future__ import annotations

from functools import partial

import sqlalchemy as sa

from applier.contracts import HistoryEntry
from applier.errors import PlanConflict
from applier.storage import damaged_plans, tables
from applier.storage.compiled import Deferred
from applier.storage.database import Database
from applier.storage.state_changes import note
from planner.errors import short


def _delete(column: sa.Column[str]) -> sa.Delete:
    return sa.delete(column.table).where(column == sa.bindparam("plan_uuid"))


#: The tables with rows of plans; rows that refer to others come first.
_OF_PLANS = (
    tables.worker_jobs,
    tables.reservations,
    tables.approvals,
    tables.history,
    tables.answers,
    tables.requests,
    tables.attempts,
    tables.action_states,
    tables.actions,
)
#: Delete all rows of a plan but those of its events, which are deleted when they are old.
ALL_OF_A_PLAN = (
    *(Deferred(partial(_delete, table.c.plan)) for table in _OF_PLANS),
    Deferred(partial(_delete, tables.plans.c.uuid)),
)


def remove_damaged(database: Database, uuid: str, history: HistoryEntry | None) -> None:
    """Delete all rows of a damaged plan except events, and write the history entry of that.

    Raises PlanNotFound, PlanConflict for a sound plan.
    """
    if not damaged_plans.problems(database.read, uuid):
        raise PlanConflict(uuid, "sound", f"plan {short(uuid)} is not damaged")
    with database.write() as transaction:
        for statement in ALL_OF_A_PLAN:
            transaction.write(statement, {"plan_uuid": uuid})
        if history is not None:
            note(transaction, uuid, history, at=history.at)
