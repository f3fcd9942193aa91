"""The store in a database, by oslo.db: SQLite for one machine, PostgreSQL or MySQL for many.

A method that writes begins with a write, so that SQLite gives it the right to write at once and
never refuses it half-way, and takes hold of the plan's row first, so that two writers of one plan
wait for each other and do not deadlock. What the row must be is part of the UPDATE; if none fits,
all is undone, and what is there now is read to say why.

A deadlock is tried again. A lost connection is tried again where a second try can tell that the
first was in fact written (:meth:`SqlStore.commit`, the claims and moves) or where nothing is
written; the others say that the connection was lost, and the operator looks.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TypeVar
from uuid import uuid4

import sqlalchemy as sa
from oslo_db.api import wrap_db_retry  # type: ignore[import-untyped]
from oslo_db.exception import DBDuplicateEntry  # type: ignore[import-untyped]

from applier.contracts import Claimant, PlanSummary, Report, Wish
from applier.errors import ActionNotFound, PlanConflict, PlanNotFound
from applier.storage import rows, rules, schema
from applier.storage import statements as said
from applier.storage.connection import lost, make_engine, parse, told
from applier.storage.tables import actions, plans, wishes
from planner.model import ActionPlan
from planner.states import ActionState, PlanState, Who, check

T = TypeVar("T")


class SqlStore:
    """Keeps plans in the database of a URL; may be used from several threads.

    A SQLite file is created, or upgraded, when it is opened; a server must have been upgraded by
    ``actionplan db upgrade``. ``synchronous`` (FULL or NORMAL: whether a loss of power may take
    the last commits with it) and ``busy_timeout_s`` (how long to wait while another process
    writes) are for SQLite. Raises StoreError when the record cannot be used.
    """

    def __init__(
        self,
        connection: str,
        *,
        synchronous: str = "FULL",
        busy_timeout_s: float = 30.0,
        new_id: Callable[[], str] = lambda: str(uuid4()),
    ) -> None:
        self._url = parse(connection)
        self._new_id = new_id
        engine = make_engine(self._url, synchronous=synchronous, busy_timeout_s=busy_timeout_s)
        self._engine = self._readers = engine
        self._writer: sa.Connection | None = None
        self._writing = threading.Lock()
        try:
            with told(self._url):
                self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        if self._engine.dialect.name == "sqlite":
            schema.prepare_file(self._url, self._engine)
            # One stays open: opening costs more than a commit, and SQLite empties its log
            # whenever the last connection closes.
            self._writer = self._engine.connect()
            return
        if self._engine.dialect.name == "postgresql":
            # What is read by two statements is of one moment. (So it is elsewhere.)
            self._readers = self._engine.execution_options(isolation_level="REPEATABLE READ")
        with self._engine.begin() as database:
            schema.require(database, self._url)

    def close(self) -> None:
        """Give back the connections; the store must not be used afterwards."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self._engine.dispose()

    @contextmanager
    def _write(self) -> Iterator[sa.Connection]:
        if self._writer is None:
            with self._engine.begin() as database:
                yield database
        else:
            # SQLite has one writer at a time anyway.
            with self._writing, self._writer.begin():
                yield self._writer

    def _attempt(self, what: Callable[[bool], T], *, lost_too: bool = True) -> T:
        """Do it; again after a deadlock, and (``lost_too``) after the connection was lost.

        ``what`` is told whether this is another try.
        """
        tries = itertools.count()
        retry = wrap_db_retry(
            retry_interval=0.1,
            max_retries=8,
            max_retry_interval=5,
            retry_on_deadlock=True,
            exception_checker=lambda error: lost_too and lost(error),
        )
        with told(self._url):
            result: T = retry(lambda: what(next(tries) > 0))()
        return result

    def _head(self, uuid: str) -> rows.Row:
        with self._readers.begin() as database:
            return _one(database, uuid)

    def save_plan(self, plan: ActionPlan) -> None:
        """See :meth:`applier.contracts.Store.save_plan`."""
        rules.require_distinct(plan)
        head, members = rows.plan_row(plan), list(rows.action_rows(plan))

        def save(_again: bool) -> None:
            try:
                with self._write() as database:
                    database.execute(sa.insert(plans), head)
                    if members:
                        database.execute(sa.insert(actions), members)
            except DBDuplicateEntry:
                raise rules.already_saved(plan.uuid, self._head(plan.uuid)["state"]) from None

        self._attempt(save, lost_too=False)

    def load_plan(self, uuid: str) -> ActionPlan:
        """See :meth:`applier.contracts.Store.load_plan`."""

        def load(_again: bool) -> ActionPlan:
            with self._readers.begin() as database:
                head = _one(database, uuid)
                members = database.execute(said.ACTIONS, {"plan_uuid": uuid}).mappings().all()
            return rows.plan_of(head, members)

        return self._attempt(load)

    def find_plan(self, reference: str) -> str:
        """See :meth:`applier.contracts.Store.find_plan`."""

        def find(_again: bool) -> str:
            with self._readers.begin() as database:
                if reference != rules.LAST:
                    known = database.execute(said.fitting(reference)).all()
                    return rules.choose(reference, [(uuid, name) for uuid, name in known])
                last: str | None = database.execute(said.LAST).scalar()
            if last is None:
                raise PlanNotFound(reference)
            return last

        return self._attempt(find)

    def list_plans(
        self, *, state: PlanState | None = None, limit: int | None = None
    ) -> list[PlanSummary]:
        """See :meth:`applier.contracts.Store.list_plans`."""

        def listed(_again: bool) -> list[PlanSummary]:
            with self._readers.begin() as database:
                heads = database.execute(said.listed(state, limit)).mappings().all()
                first = heads[-1]["number"] if heads else 0
                counts = rows.counts_of(database.execute(said.counted(state, first)).all())
            return [rows.summary(head, counts.get(head["uuid"], {})) for head in heads]

        return self._attempt(listed)

    def move_plan(
        self, uuid: str, new: PlanState, *, now: datetime, message: str | None = None
    ) -> None:
        """See :meth:`applier.contracts.Store.move_plan`."""
        self._move(uuid, new, Who.OPERATOR, claim=None, now=now, message=message)

    def move_claimed(
        self, uuid: str, claim: str, new: PlanState, *, now: datetime, message: str | None = None
    ) -> None:
        """See :meth:`applier.contracts.Store.move_claimed`."""
        self._move(uuid, new, Who.ENGINE, claim=claim, now=now, message=message)

    def _move(
        self,
        uuid: str,
        new: PlanState,
        who: Who,
        *,
        claim: str | None,
        now: datetime,
        message: str | None,
    ) -> None:
        def move(again: bool) -> None:
            head = self._head(uuid)
            if again and head["state"] == new and head["updated_at"] == now:
                return  # the first try was written, only its answer was lost
            if claim is not None and head["claim"] != claim:
                raise rules.lost_claim(uuid, head["state"])
            check("plan", uuid, PlanState(head["state"]), new, who)
            change = {"plan_uuid": uuid, "old_state": head["state"], "held": head["claim"] or ""}
            change |= {"new_state": str(new), "new_message": rules.kept(message), "now": now}
            change |= {"new_claim": None if rules.gives_up(new) else head["claim"]}
            with self._write() as database:
                moved = database.execute(said.MOVE, change).rowcount
                if moved and who is Who.OPERATOR and new is PlanState.CANCELLED:
                    database.execute(said.CANCEL, change)
            if not moved:
                raise rules.changed_meanwhile(uuid, head["state"], self._head(uuid)["state"])

        self._attempt(move)

    def skip_action(self, plan: str, action: str, *, now: datetime, message: str) -> None:
        """See :meth:`applier.contracts.Store.skip_action`."""
        pending, skipped = ActionState.PENDING, ActionState.SKIPPED
        report = Report(uuid=action, old=pending, state=skipped, message=message)

        def skip(_again: bool) -> None:
            held = {"plan_uuid": plan, "now": now}
            if self._written(said.HOLD_WAITING, held, [rows.report_row(plan, report, now)]):
                return
            with self._readers.begin() as database:
                head = _one(database, plan)
                if head["state"] not in rules.WAITING_PLAN:
                    raise rules.not_waiting(plan, head["state"])
                found = ActionState(_action(database, plan, action)["state"])
            check("action", action, found, skipped, Who.OPERATOR)
            raise rules.row_changed(plan, head["state"], action, pending, found)

        self._attempt(skip, lost_too=False)

    def claim_plan(self, uuid: str, claimant: Claimant, *, now: datetime) -> str:
        """See :meth:`applier.contracts.Store.claim_plan`."""
        token = self._new_id()
        change = {"plan_uuid": uuid, "new_claim": token, "now": now}
        change |= {"host": claimant.host, "pid": claimant.pid, "user": claimant.user}

        def claim(_again: bool) -> None:
            if not self._written(said.CLAIM, change, []):
                head = self._head(uuid)
                # It is ours if a try was written whose answer was lost.
                if head["claim"] != token:
                    raise rules.cannot_claim(uuid, head["state"])

        self._attempt(claim)
        return token

    def claimant(self, uuid: str) -> Claimant | None:
        """See :meth:`applier.contracts.Store.claimant`."""
        return self._attempt(lambda _again: rows.claimant_of(self._head(uuid)))

    def commit(self, uuid: str, claim: str, reports: Sequence[Report], *, now: datetime) -> None:
        """See :meth:`applier.contracts.Store.commit`.

        If the connection is lost while it is written, it is tried again; when that finds every
        row as this very batch leaves it, at this very time, the first try was written.
        """
        for report in reports:
            check("action", report.uuid, report.old, report.state, Who.ENGINE)
        changes = [rows.report_row(uuid, report, now) for report in reports]
        held = {"plan_uuid": uuid, "held": claim, "now": now}

        def write(again: bool) -> None:
            if self._written(said.HOLD_CLAIM, held, changes):
                return
            with self._readers.begin() as database:
                head = _one(database, uuid)
                found = {report.uuid: _action(database, uuid, report.uuid) for report in reports}
            if not (again and rows.as_reported(reports, found, now)):
                raise _refusal(head, claim, reports, found)

        self._attempt(write)

    def _written(
        self, hold: sa.Update, held: rows.Changes, changes: Sequence[rows.Changes]
    ) -> bool:
        """Write all if the plan can be held and each row is as expected; else nothing."""
        try:
            with self._write() as database:
                if not database.execute(hold, held).rowcount:
                    raise _Unexpected
                if changes and database.execute(said.REPORT, changes).rowcount != len(changes):
                    raise _Unexpected
        except _Unexpected:
            return False
        return True

    def add_wish(self, plan: str, wish: Wish, *, now: datetime) -> None:
        """See :meth:`applier.contracts.Store.add_wish`."""

        def add(_again: bool) -> None:
            with self._write() as database:
                if database.execute(said.COUNT_WISH, {"plan_uuid": plan}).rowcount:
                    number = _one(database, plan)["wishes"]
                    database.execute(sa.insert(wishes), rows.wish_row(plan, number, wish, now))
                    return
            raise rules.not_claimed(plan, self._head(plan)["state"])

        self._attempt(add, lost_too=False)

    def wishes(self, plan: str, after: int = 0) -> list[Wish]:
        """See :meth:`applier.contracts.Store.wishes`."""

        def read(_again: bool) -> list[Wish]:
            with self._readers.begin() as database:
                found = database.execute(said.WISHES, {"plan_uuid": plan, "after": after})
                return [rows.wish_of(row) for row in found.mappings()]

        return self._attempt(read)

    def output(self, plan: str, action: str) -> str | None:
        """See :meth:`applier.contracts.Store.output`."""

        def read(_again: bool) -> str | None:
            with self._readers.begin() as database:
                text: str | None = _action(database, plan, action)["output"]
            return text

        return self._attempt(read)


class _Unexpected(Exception):
    """Undoes a transaction whose rows were not as expected."""


def _one(database: sa.Connection, uuid: str) -> rows.Row:
    head = database.execute(said.PLAN, {"plan_uuid": uuid}).mappings().one_or_none()
    if head is None:
        raise PlanNotFound(uuid)
    return head


def _action(database: sa.Connection, plan: str, action: str) -> rows.Row:
    where = {"plan_uuid": plan, "action_uuid": action}
    row = database.execute(said.ACTION, where).mappings().one_or_none()
    if row is None:
        _one(database, plan)
        raise ActionNotFound(plan, action)
    return row


def _refusal(
    head: rows.Row, claim: str, reports: Sequence[Report], found: Mapping[str, rows.Row]
) -> PlanConflict:
    uuid, state = head["uuid"], head["state"]
    if head["claim"] != claim:
        return rules.lost_claim(uuid, state)
    for report in reports:
        row = found[report.uuid]["state"]
        if row != report.old:
            return rules.row_changed(uuid, state, report.uuid, report.old, row)
    return PlanConflict(uuid, state, f"plan {uuid}: two reports of one batch start from one state")
