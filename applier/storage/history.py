# SPDX-License-Identifier: Apache-2.0
"""The history of plans: who made which change, when and why; answers, and approvals."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from applier.contracts import Approval, HistoryEntry, Once
from applier.storage import rows, state_refusals, statements
from applier.storage.database import PartOfStore, plan_row
from applier.storage.database_errors import Duplicate
from applier.storage.state_changes import change_waiting, insert_answer, note
from applier.storage.statements import Row
from applier.storage.transactions import Kind, Rows, Transaction
from applier.store.entries import NO_PLAN, Answer, GivenApprovals
from planner.schemas import ranges

_EARLIEST = datetime(1000, 1, 1, tzinfo=UTC)
_ENTRY = "entry {number} of the history"
_ENTRIES = Kind("actionplan_history", rows.reading(lambda row: HistoryEntry(**row)), _ENTRY)


class Histories(PartOfStore):
    """The methods of the store for the history of plans, answers to changes, and approvals."""

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

        def read(transaction: Transaction) -> dict[str, str]:
            found = transaction.read(statements.NAMES, {"most": limit})
            return {row["uuid"]: row["name"] for row in found}

        return self._database.reading(read)

    def add_history(self, plan: str, history: HistoryEntry) -> None:
        """Write an entry about a change of a plan that was made elsewhere than in the store.

        Raises PlanNotFound.
        """

        def add(transaction: Transaction) -> None:
            plan_row(transaction, plan)
            note(transaction, plan, history, at=history.at)

        self._database.writing(add, lost_too=False)

    def answer(self, key: str) -> Answer | None:
        """Return the change with a key; None if there is none."""

        def read(transaction: Transaction) -> Answer | None:
            found = transaction.read(statements.ANSWER, {"of_key": key}, table="actionplan_answer")
            for row in found:
                same = {name: row[name] for name in ("digest", "plan", "request_id", "at")}
                return Answer(**same, text=row["answer"])
            return None

        return self._database.reading(read)

    def keep_answer(self, once: Once, request_id: str, text: str, *, now: datetime) -> bool:
        """Keep the answer of a request, also if it has changed nothing.

        Returns False if another request has the key; nothing is written then.
        """
        row = {"plan": NO_PLAN, "request_id": request_id, "at": now, "answer": text}

        def keep() -> bool:
            try:
                with self._database.write() as transaction:
                    kept = {"of_key": once.key, "by": request_id, "text": text}
                    if not transaction.write(statements.KEEP_ANSWER, kept):
                        insert_answer(transaction, {**once._asdict(), **row})
            except Duplicate:
                return False
            return True

        return self._database.tried(keep)

    def approve_plan(
        self, uuid: str, approval: Approval, *, history: HistoryEntry | None = None
    ) -> None:
        """Save an approval of a plan that nobody runs, and write its event.

        A second approval of the same content by the same person replaces the first. Raises
        PlanConflict for a plan that is claimed, superseded or removed; PlanNotFound.
        """
        row = _approval_row(uuid, approval)
        same = {"plan_uuid": uuid, "by": row["who"], "about": row["content"]}

        def approve(transaction: Transaction) -> None:
            transaction.write(statements.FORGET_APPROVAL, same)
            transaction.insert("actionplan_approval", row)
            note(transaction, uuid, history, approval, at=approval.at)

        key = ("approve", approval.who, approval.content)
        states = state_refusals.UNCLAIMED_PLAN
        change_waiting(self._database, uuid, approve, *key, states=states, now=approval.at)

    def approvals(self, uuid: str) -> GivenApprovals:
        """Return the approvals of a plan, including void ones; raises PlanNotFound.

        An approval is void if the content of the plan has changed since.
        """
        where = {"plan_uuid": uuid}

        def read(found: Rows) -> GivenApprovals:
            creator = plan_row(found.transaction, uuid)["creator"]
            given = found.of(_APPROVALS, statements.APPROVALS, where)
            importers = frozenset(found.of(_IMPORTING_USERS, statements.IMPORTERS, where))
            return GivenApprovals(creator, given, importers)

        return self._database.listed(read)


def _approval(row: Row) -> Approval:
    return Approval(**{name: row[name] for name in Approval._fields})


_APPROVALS = Kind("actionplan_approval", _approval, "approval {number}")
_IMPORTING_USERS = Kind("actionplan_history", lambda row: str(row["who"]), _ENTRY)


def _approval_row(plan: str, approval: Approval) -> rows.Changes:
    names = {name: rows.line(getattr(approval, name)) for name in ("who", "content", "project")}
    return {"plan": plan, **names, "why": rows.storable(approval.why), "at": approval.at}
