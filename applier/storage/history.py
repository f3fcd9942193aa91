# SPDX-License-Identifier: Apache-2.0
"""The history of plans: who made which change, when and why; and what changes were answered."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from applier.contracts import HistoryEntry, Once
from applier.storage import rows, statements
from applier.storage.database import Database, plan_row
from applier.storage.refusals import Duplicate
from applier.storage.state_changes import note
from applier.storage.transactions import Kind
from applier.store.entries import NO_PLAN, Answer
from planner.schemas import ranges

_EARLIEST = datetime(1000, 1, 1, tzinfo=UTC)
_ENTRIES = Kind("actionplan_history", rows.history_of, "entry {number} of the history")

_READ = 'SELECT * FROM actionplan_answer WHERE "key" = :of_key'
_KEEP = """
    UPDATE actionplan_answer SET answer = :text
    WHERE "key" = :of_key AND request_id = :by"""


class Histories:
    """The methods of the store for the history of plans, and for the answers to changes."""

    _database: Database

    def history(
        self,
        plan: str | None = None,
        *,
        after: int = 0,
        before: int = ranges.MOST,
        limit: int | None = None,
        since: datetime | None = None,
        who: str | None = None,
    ) -> list[HistoryEntry]:
        """List the entries of a plan, or of all plans, oldest first.

        Their numbers are above ``after`` and below ``before``. With ``since`` or ``who``, only
        those from that time, or by that user. With a ``limit``, only that many of the latest.
        """
        statement = statements.HISTORY if plan is None else statements.HISTORY_OF_PLAN
        asked: dict[str, Any] = {"plan_uuid": plan, "after": after, "before": before}
        if since is not None or who is not None:
            statement, asked["since"] = statements.CHOSEN_HISTORY, since or _EARLIEST
            asked["by"], asked["of"] = map(statements.exactly, (who, plan))
        asked["most"] = statements.ALL if limit is None else limit

        return self._database.listed(lambda found: found.of(_ENTRIES, statement, asked)[::-1])

    def plan_names(self, limit: int) -> dict[str, str]:
        """Return the names of plans by uuid, of at most so many that have one, the latest."""

        def read() -> dict[str, str]:
            with self._database.read() as transaction:
                found = transaction.read(statements.NAMES, {"most": limit})
            return {row["uuid"]: row["name"] for row in found}

        return self._database.tried(read)

    def add_history(self, plan: str, history: HistoryEntry) -> None:
        """Write an entry about a change of a plan that was made elsewhere than in the store.

        Raises PlanNotFound.
        """

        def add() -> None:
            with self._database.write() as transaction:
                plan_row(transaction, plan)
                note(transaction, plan, history, at=history.at)

        self._database.tried(add, lost_too=False)

    def answer(self, key: str) -> Answer | None:
        """Return the change with a key; None if there is none."""

        def read() -> Answer | None:
            with self._database.read() as transaction:
                found = transaction.read_typed("actionplan_answer", _READ, {"of_key": key})
            return _answer(**found[0]) if found else None

        return self._database.tried(read)

    def keep_answer(self, once: Once, request_id: str, text: str, *, now: datetime) -> bool:
        """Keep the answer of a request, also if it has changed nothing.

        Returns False if another request has the key; nothing is written then.
        """
        row = {"plan": NO_PLAN, "request_id": request_id, "at": now, "answer": text}

        def keep() -> bool:
            try:
                with self._database.write() as transaction:
                    kept = {"of_key": once.key, "by": request_id, "text": text}
                    if not transaction.write(_KEEP, kept):
                        transaction.write(statements.INSERT_ANSWER, {**once._asdict(), **row})
            except Duplicate:
                return False
            return True

        return self._database.tried(keep)


def _answer(*, answer: str | None, key: str, **values: object) -> Answer:  # noqa: ARG001
    return Answer(text=answer, **values)  # type: ignore[arg-type]
