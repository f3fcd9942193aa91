# SPDX-License-Identifier: Apache-2.0
"""The approvals of plans in a database."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy import bindparam

from applier.contracts import Approval, HistoryEntry
from applier.storage import claims, event_writes, rows, statements
from applier.storage.compiled import Deferred, Row, insert_into
from applier.storage.database import Database, plan_row
from applier.storage.event_writes import NewEvent
from applier.storage.state_changes import note
from applier.storage.tables import approvals
from applier.storage.tables import history as entries
from applier.storage.transactions import Kind, Rows
from applier.store.approvals import GivenApprovals

_READ = Deferred(
    lambda: (
        sa.select(approvals)
        .where(approvals.c.plan == bindparam("plan_uuid"))
        .order_by(approvals.c.number)
    )
)
_IMPORTERS = Deferred(
    lambda: sa.select(entries.c.who, entries.c.number).where(
        entries.c.plan == bindparam("plan_uuid"), entries.c.verb == "import"
    )
)
#: Remove an earlier approval of the same content by the same person.
_FORGET = Deferred(
    lambda: sa.delete(approvals).where(
        approvals.c.plan == bindparam("plan_uuid"),
        approvals.c.who == bindparam("by"),
        approvals.c.content == bindparam("about"),
    )
)
_INSERT = Deferred(lambda: insert_into(approvals, without=("number",)))


class Approvals:
    """The methods of the store for approvals."""

    _database: Database

    def approve_plan(
        self, uuid: str, approval: Approval, *, history: HistoryEntry | None = None
    ) -> None:
        """See :meth:`applier.store.approvals.ApprovalStore.approve_plan`."""
        states = claims.UNCLAIMED_PLAN
        row = _row(uuid, approval)
        same = {"plan_uuid": uuid, "by": row["who"], "about": row["content"]}

        def told() -> Sequence[NewEvent]:
            return [event_writes.of_approval(approval)]

        def approve(name: str) -> None:
            hold = {"plan_uuid": uuid, "now": approval.at, "write": name}
            with self._database.write() as transaction:
                held = transaction.write(statements.HOLD_STATE[states], hold)
                if held:
                    transaction.write(_FORGET, same)
                    transaction.write(_INSERT, row)
                    note(transaction, uuid, history, told, at=approval.at)
            if not held:
                head = self._database.head(uuid)
                if head["last_write"] != name:
                    raise claims.not_waiting(uuid, head["state"], states)

        with self._database.named(uuid, "approve", approval.who, approval.content) as name:
            self._database.tried(lambda: approve(name))

    def approvals(self, uuid: str) -> GivenApprovals:
        """See :meth:`applier.store.approvals.ApprovalStore.approvals`."""

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


_APPROVALS = Kind(approvals, _approval, "approval {number}")
_IMPORTING_USERS = Kind(entries, _user, "entry {number} of the history")


def _row(plan: str, approval: Approval) -> rows.Changes:
    names = {name: rows.line(getattr(approval, name)) for name in ("who", "content", "project")}
    return {"plan": plan, **names, "why": rows.storable(approval.why), "at": approval.at}
