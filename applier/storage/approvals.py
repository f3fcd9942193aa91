# SPDX-License-Identifier: Apache-2.0
"""The approvals of plans in a database."""

from __future__ import annotations

from applier.contracts import Approval, HistoryEntry
from applier.storage import claims, rows, statements
from applier.storage.database import Database, plan_row
from applier.storage.dialects import Row
from applier.storage.schema import insert_into
from applier.storage.state_changes import note
from applier.storage.transactions import Kind, Rows
from applier.store.entries import GivenApprovals

_READ = "SELECT * FROM actionplan_approval WHERE plan = :plan_uuid ORDER BY number"
_IMPORTERS = """
    SELECT who, number FROM actionplan_history WHERE plan = :plan_uuid AND verb = 'import'"""
#: Remove an earlier approval of the same content by the same person.
_FORGET = """
    DELETE FROM actionplan_approval WHERE plan = :plan_uuid AND who = :by AND content = :about"""
_INSERT = insert_into("actionplan_approval", without=("number",))


class Approvals:
    """The methods of the store for approvals."""

    _database: Database

    def approve_plan(
        self, uuid: str, approval: Approval, *, history: HistoryEntry | None = None
    ) -> None:
        """Save an approval of a plan that nobody runs, and write its event.

        A second approval of the same content by the same person replaces the first. Raises
        PlanConflict for a plan that is claimed, superseded or removed; PlanNotFound.
        """
        states = claims.UNCLAIMED_PLAN
        row = _row(uuid, approval)
        same = {"plan_uuid": uuid, "by": row["who"], "about": row["content"]}

        def approve(name: str) -> None:
            hold = {"plan_uuid": uuid, "now": approval.at, "write": name}
            with self._database.write() as transaction:
                held = transaction.write(statements.HOLD_STATE[states], hold)
                if held:
                    transaction.write(_FORGET, same)
                    transaction.write(_INSERT, row)
                    note(transaction, uuid, history, approval, at=approval.at)
            if not held:
                head = self._database.head(uuid)
                if head["last_write"] != name:
                    raise claims.not_waiting(uuid, head["state"], states)

        with self._database.named(uuid, "approve", approval.who, approval.content) as name:
            self._database.tried(lambda: approve(name))

    def approvals(self, uuid: str) -> GivenApprovals:
        """Return the approvals of a plan, including void ones; raises PlanNotFound.

        An approval is void if the content of the plan has changed since.
        """

        where = {"plan_uuid": uuid}

        def read(found: Rows) -> GivenApprovals:
            creator = plan_row(found.transaction, uuid)["creator"]
            given = found.of(_APPROVALS, _READ, where)
            importers = frozenset(found.of(_IMPORTING_USERS, _IMPORTERS, where))
            return GivenApprovals(creator, given, importers)

        return self._database.listed(read)


def _approval(row: Row) -> Approval:
    return Approval(**{name: row[name] for name in Approval._fields})


def _user(row: Row) -> str:
    return str(row["who"])


_APPROVALS = Kind("actionplan_approval", _approval, "approval {number}")
_IMPORTING_USERS = Kind("actionplan_history", _user, "entry {number} of the history")


def _row(plan: str, approval: Approval) -> rows.Changes:
    names = {name: rows.line(getattr(approval, name)) for name in ("who", "content", "project")}
    return {"plan": plan, **names, "why": rows.storable(approval.why), "at": approval.at}
