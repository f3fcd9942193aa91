# SPDX-License-Identifier: Apache-2.0
"""The history of plans in a database: who made which change, when and why."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from applier.contracts import Claimant
from applier.storage import rows, statements
from applier.storage.database import Database, plan_row
from applier.storage.transactions import Transaction
from applier.store import HistoryEntry

#: How many letters a column of a name holds.
_LINE = 255


class Histories:
    """The methods of the store for the history of plans."""

    _database: Database

    def history(
        self, plan: str | None = None, *, after: int = 0, limit: int | None = None
    ) -> list[HistoryEntry]:
        """See :meth:`applier.store.HistoryStore.history`."""
        statement = statements.HISTORY if plan is None else statements.HISTORY_OF_PLAN
        asked = {"plan_uuid": plan, "after": after}
        asked["most"] = statements.ALL if limit is None else limit

        def read() -> list[HistoryEntry]:
            with self._database.read() as transaction:
                found = transaction.read(statement, asked)
            return [rows.history_of(row) for row in reversed(found)]

        return self._database.tried(read)

    def add_history(self, plan: str, history: HistoryEntry) -> None:
        """See :meth:`applier.store.HistoryStore.add_history`."""

        def add() -> None:
            with self._database.write() as transaction:
                plan_row(transaction, plan)
                note(transaction, plan, history)

        self._database.tried(add, lost_too=False)


def note(transaction: Transaction, plan: str, history: HistoryEntry | None) -> None:
    """Write an entry in the transaction of the change that it tells of; None writes nothing."""
    if history is None:
        return
    row: dict[str, Any] = {"plan": plan, "action": history.action, "at": history.at}
    for name in ("verb", "who", "project", "address", "request_id"):
        text = rows.storable(getattr(history, name))
        row[name] = None if text is None else text[:_LINE]
    row["why"] = rows.storable(history.why)
    transaction.write(statements.INSERT_HISTORY, row)


def run_by(claimant: Claimant, at: datetime) -> HistoryEntry:
    """Return the entry of a claim: a person or a service begins to run the plan."""
    why = f"process {claimant.pid} on {claimant.host} runs it"
    return HistoryEntry(verb="apply", who=claimant.user, why=why, at=at)
