# SPDX-License-Identifier: Apache-2.0
"""Saves plans of other records, with their attempts, history and requests."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from applier.contracts import HistoryEntry
from applier.errors import PlanConflict
from applier.storage import rows, statements
from applier.storage.plans import AT_ONCE, Plans, require_distinct
from applier.storage.refusals import Duplicate
from applier.storage.schema import insert_into
from applier.storage.state_changes import note, write_history
from applier.store.entries import PlanArchive

INSERT_ATTEMPT = insert_into("actionplan_attempt", without=("id",))


class Archives(Plans):
    """The methods of the store for plans of other records."""

    def import_plan(self, archive: PlanArchive, *, history: HistoryEntry) -> None:
        """Save a plan of another record with its attempts, history and requests, all or nothing.

        ``history`` is the entry of the import, which follows those of the archive. ``durations``
        never returns the durations of imported attempts. Raises PlanConflict if a plan of this uuid
        is saved already, InvalidPlan if two of its actions have the same uuid.
        """
        plan = archive.plan
        require_distinct(plan)
        creator = next((one.who for one in archive.history), history.who)
        overview, waves = self.overview_of_new(plan)
        head = rows.plan_row(plan, creator=creator)
        head |= {"overview": overview, "requests": len(archive.requests)}
        asked = [
            rows.request_row(plan.uuid, number, request, request.created_at or history.at)
            for number, request in enumerate(archive.requests, 1)
        ]

        def save() -> None:
            members, tried = rows.action_rows(plan, waves), _attempt_rows(archive)
            try:
                with self._database.write() as transaction:
                    transaction.write(statements.INSERT_PLAN, head)
                    while some := tuple(islice(members, AT_ONCE)):
                        transaction.write(statements.INSERT_ACTION, *some)
                        transaction.write(statements.INSERT_STATE, *some)
                    while some := tuple(islice(tried, AT_ONCE)):
                        transaction.write(INSERT_ATTEMPT, *some)
                    for row in asked:
                        transaction.write(statements.INSERT_REQUEST, row)
                    for entry in archive.history:
                        write_history(transaction, plan.uuid, entry)
                    note(transaction, plan.uuid, history, at=history.at)
            except Duplicate:
                state = self._database.head(plan.uuid)["state"]
                text = f"plan {plan.uuid} is already in the record, {state}"
                raise PlanConflict(plan.uuid, state, text) from None

        self._database.tried(save, lost_too=False)


def _attempt_rows(archive: PlanArchive) -> Iterator[dict[str, Any]]:
    """Yield the rows of all attempts, in the order in which they ended."""
    known = [(uuid, one) for uuid, tried in archive.attempts.items() for one in tried]
    for uuid, one in sorted(known, key=lambda pair: pair[1].ended_at or pair[1].started_at):
        yield {
            **one._asdict(),
            "plan": archive.plan.uuid,
            "action": uuid,
            "ended_at": one.ended_at or one.started_at,
            "state": str(one.state),
            "outcome": None if one.outcome is None else str(one.outcome),
            "message": rows.storable(one.message),
            "output": rows.storable(one.output),
            "measures": None,
        }
