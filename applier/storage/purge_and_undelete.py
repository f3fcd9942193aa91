# SPDX-License-Identifier: Apache-2.0
"""Brings removed plans back, and deletes plans for good."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from applier.contracts import HistoryEntry
from applier.errors import PlanConflict
from applier.notifications.schema import ACTION_STATE
from applier.storage import rows, statements
from applier.storage.damaged_rows import SoundRows
from applier.storage.database import PartOfStore
from applier.storage.kept_events import EVENTS
from applier.storage.state_changes import Move, write_history
from applier.storage.statements import Row
from applier.storage.transactions import Transaction
from applier.store.entries import NO_PLAN, EndedPlan
from planner.errors import short
from planner.plan.states import PlanState, Who, check
from planner.safe_text import compact_json


class Retention(PartOfStore):
    """The methods of the store that bring plans back and delete them for good."""

    def undelete_plan(
        self, uuid: str, *, now: datetime, history: HistoryEntry | None = None
    ) -> PlanState:
        """Set a removed plan back to the state that it had before; return that state.

        Raises PlanNotFound. Raises PlanConflict for a plan that is not DELETED.
        """
        return Move(uuid, now, _state_before, history=history).make(self._database, "undelete")

    def ended_plans(
        self, before: datetime, *, after: int = 0, limit: int | None = None
    ) -> list[EndedPlan]:
        """List the unclaimed plans that ended, or were removed, before a time, first saved first.

        Only those with a number above ``after``, at most ``limit``.
        """
        asked = {"before": before, "after": after}
        asked["most"] = statements.ALL if limit is None else limit

        return self._database.reading(
            lambda transaction: [
                EndedPlan(**row) for row in transaction.read(statements.ENDED_PLANS, asked)
            ]
        )

    def purge_plans(
        self, uuids: Sequence[str], before: datetime, *, history: HistoryEntry | None = None
    ) -> list[str]:
        """Delete plans for good, with all their rows except events; return the deleted uuids.

        A plan that has not ended, or was changed after ``before``, is left as it is. If two callers
        purge a plan at once, only one of them gets its uuid. The history entry has the plan
        :data:`NO_PLAN`; it is written only if a plan was deleted.
        """

        # The uuids of deleted plans. If the answer to the commit was lost, the next try does not
        # find these plans, and returns them all the same.
        mine: set[str] = set()

        def purge() -> list[str]:
            gone, held = [], []
            with self._database.write() as transaction:
                for uuid in uuids:
                    where = {"plan_uuid": uuid, "before": before, "write": NO_PLAN}
                    if transaction.write(statements.HOLD_ENDED, where):
                        complete_events(transaction, uuid)
                        held.append({"plan_uuid": uuid})
                        gone.append(uuid)
                        mine.add(uuid)
                    elif uuid in mine and not transaction.read(
                        statements.PLAN, {"plan_uuid": uuid}
                    ):
                        gone.append(uuid)
                if held:
                    for statement in statements.ALL_OF_A_PLAN:
                        transaction.write(statement, *held)
                    if history is not None:
                        write_history(transaction, NO_PLAN, history)
            return gone

        return self._database.tried(purge)


@rows.reading
def _state_before(head: Row) -> PlanState:
    """Return the state of a plan before it was removed; raises PlanConflict."""
    uuid, state = head["uuid"], PlanState(head["state"])
    if state is not PlanState.DELETED:
        raise PlanConflict(uuid, state, f"plan {short(uuid)} is {state}: it is not deleted")
    before = PlanState(head["deleted_from"])
    check("plan", uuid, state, before, Who.OPERATOR)
    return before


def complete_events(transaction: Transaction, plan: str) -> None:
    """Write names and types of actions into the events of a plan that is about to be deleted.

    The events of its joins, which are never delivered, are deleted. Damaged ones are left as they
    are.
    """
    asked = {"after": 0, "most": statements.ALL, "plan_uuid": plan}
    rows = SoundRows(transaction)
    found = rows.of(EVENTS, statements.EVENTS_OF_PLAN, asked)
    if not (found or rows.damaged):
        return
    told = [
        {"of_number": event["number"], "new_data": compact_json(event["data"])}
        for event in found
        if event["type"] == ACTION_STATE
    ]
    if told:
        transaction.write(statements.SET_EVENT_DATA, *told)
    transaction.write(statements.DELETE_EVENTS_OF_JOINS, {"plan_uuid": plan})
