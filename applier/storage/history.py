# SPDX-License-Identifier: Apache-2.0
"""The history of plans in a database: who made which change, when and why."""

from __future__ import annotations

from applier.contracts import HistoryEntry
from applier.storage import rows, statements
from applier.storage.database import Database, plan_row
from applier.storage.state_changes import note
from applier.storage.tables import history as entries
from applier.storage.transactions import Kind

_ENTRIES = Kind(entries, rows.history_of, "entry {number} of the history")


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

        return self._database.listed(lambda found: found.of(_ENTRIES, statement, asked)[::-1])

    def add_history(self, plan: str, history: HistoryEntry) -> None:
        """See :meth:`applier.store.operators.HistoryStore.add_history`."""

        def add() -> None:
            with self._database.write() as transaction:
                plan_row(transaction, plan)
                note(transaction, plan, history, at=history.at)

        self._database.tried(add, lost_too=False)
