# SPDX-License-Identifier: Apache-2.0
"""The history of plans in a database: who made which change, when and why."""

from __future__ import annotations

from applier.contracts import HistoryEntry
from applier.storage import rows, statements
from applier.storage.changes import note
from applier.storage.database import Database, plan_row


class Histories:
    """The methods of the store for the history of plans."""

    _database: Database

    def history(
        self, plan: str | None = None, *, after: int = 0, limit: int | None = None
    ) -> list[HistoryEntry]:
        """See :meth:`applier.store.operators.HistoryStore.history`."""
        statement = statements.HISTORY if plan is None else statements.HISTORY_OF_PLAN
        asked = {"plan_uuid": plan, "after": after}
        asked["most"] = statements.ALL if limit is None else limit

        def read() -> list[HistoryEntry]:
            with self._database.read() as transaction:
                found = transaction.read(statement, asked)
            return [rows.history_of(row) for row in reversed(found)]

        return self._database.tried(read)

    def add_history(self, plan: str, history: HistoryEntry) -> None:
        """See :meth:`applier.store.operators.HistoryStore.add_history`."""

        def add() -> None:
            with self._database.write() as transaction:
                plan_row(transaction, plan)
                note(transaction, plan, history, at=history.at)

        self._database.tried(add, lost_too=False)
