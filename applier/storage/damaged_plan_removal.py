# SPDX-License-Identifier: Apache-2.0
"""Deletes a damaged plan with all its rows, without reading their values."""

from __future__ import annotations

from applier.contracts import HistoryEntry
from applier.errors import PlanConflict
from applier.storage import damaged_plans
from applier.storage.database import Database
from applier.storage.state_changes import note
from planner.errors import short

#: Delete all rows of a plan but those of its events, which are deleted when they are old. Rows that
#: refer to others come first.
ALL_OF_A_PLAN = (
    "DELETE FROM actionplan_worker_job WHERE plan = :plan_uuid",
    "DELETE FROM actionplan_reservation WHERE plan = :plan_uuid",
    "DELETE FROM actionplan_approval WHERE plan = :plan_uuid",
    "DELETE FROM actionplan_history WHERE plan = :plan_uuid",
    "DELETE FROM actionplan_answer WHERE plan = :plan_uuid",
    "DELETE FROM actionplan_request WHERE plan = :plan_uuid",
    "DELETE FROM actionplan_attempt WHERE plan = :plan_uuid",
    "DELETE FROM actionplan_action_state WHERE plan = :plan_uuid",
    "DELETE FROM actionplan_action WHERE plan = :plan_uuid",
    "DELETE FROM actionplan_plan WHERE uuid = :plan_uuid",
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
