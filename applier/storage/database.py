# SPDX-License-Identifier: Apache-2.0
"""Opens the database of a record, and repeats transactions after deadlocks and lost connections.

A method that writes updates the plan's row first. So two writers of one plan wait for each other
and do not deadlock. The WHERE clause of that UPDATE states what the row must be. If no row matches,
the transaction changes nothing, and the row is read to find the reason for the refusal.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TypeVar
from uuid import uuid4

from applier.backoff import delays_s
from applier.errors import DamagedRecord, DamagedRow, DamagedRows, PlanNotFound, StoreError
from applier.storage import damage, database_errors, schema_version, statements
from applier.storage.connection import Connector, SameFile, parse, shown
from applier.storage.damaged_rows import SoundRows
from applier.storage.database_errors import (
    ConnectionLost,
    DatabaseLocked,
    Deadlock,
    Refused,
    sentence,
    translate_errors,
)
from applier.storage.schema import is_process_id
from applier.storage.statements import AT_ONCE, Row, UnreadableValue
from applier.storage.transactions import Rows, Transaction, Transactions
from applier.storage.unwritable import Unwritable, is_only_unwritable
from planner.errors import short
from planner.schemas import ranges

T = TypeVar("T")

#: How often a transaction that ends in deadlocks is tried in all, whatever the patience.
DEADLOCK_TRIES = 8
#: The shortest and the longest pause between two tries, in seconds.
SHORTEST_WAIT_S, LONGEST_WAIT_S = 0.05, 1.0
#: Seconds after which a server that has not answered a statement counts as unreachable.
ANSWER_S = 30


class Database:
    """Begins the transactions of a store; may be used from several threads.

    The parameters are those of :class:`applier.storage.sql_store.SqlStore`.
    """

    #: Returns a new name of a write.
    new_id: Callable[[], str] = staticmethod(lambda: str(uuid4()))

    def __init__(
        self,
        connection: str,
        *,
        busy_timeout_s: float,
        patience_s: float,
    ) -> None:
        self._url = parse(connection)
        self._patience_s = patience_s
        connector = Connector(
            self._url,
            busy_timeout_s=min(busy_timeout_s, database_errors.SOON_S),
            answer_s=ANSWER_S,
        )
        self._busy_timeout_s = busy_timeout_s
        self._transactions = Transactions(connector)
        #: How many actions one statement changes at most.
        self.at_once = AT_ONCE[self._url.kind]
        self._is_file = self._url.kind == "sqlite"
        self._unwritable: Unwritable | None = None
        self._file: SameFile | None = None
        self._opening = threading.Lock()
        #: The transaction of a snapshot in which a thread reads.
        self._here = threading.local()
        #: A file has one writer at a time. The threads of this process wait for it by this lock.
        self._one_writer = threading.Lock() if self._is_file else None
        self._closed = threading.Event()
        #: By plan: the last call whose result is unknown, and the name of its write.
        self._unsure: dict[str, tuple[object, str]] = {}
        try:
            with translate_errors(self._url):
                self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        if self._is_file:
            self._open_file()
            return
        with self._transactions.read() as transaction:
            schema_version.require_whole(schema_version.look(transaction, self._url), self._url)

    def _open_file(self) -> None:
        """Open a SQLite file; read-only if it cannot be written and has this release's version."""
        try:
            schema_version.prepare_file(self._transactions)
            self._unwritable, self._file = None, SameFile(self._url)
        except Refused as refused:
            if not is_only_unwritable(self._url, refused):
                raise
            self._unwritable = found = Unwritable(self._url, refused)
            with found.read() as transaction:
                version = schema_version.look(transaction, self._url).version
            if version != schema_version.REVISIONS[-1]:
                raise found.refusal from refused

    def _try_again(self) -> Unwritable | None:
        """Open the file again if it could not be written; return its reader if it still cannot be.

        Returns None if the file can be written, and for servers.
        """
        if self._unwritable is None:
            return None
        with self._opening:
            if self._unwritable is not None:
                self._open_file()
            return self._unwritable

    def close(self) -> None:
        """Close the connections; calls that wait for another try raise their last error."""
        self._closed.set()
        self._transactions.close()

    def write(self) -> AbstractContextManager[Transaction]:
        """Return a transaction for writing, which is committed as a whole or not at all.

        Raises StoreError for a SQLite file that cannot be written, was removed or was replaced.
        """
        if self._unwritable is not None and (unwritable := self._try_again()):
            raise unwritable.refusal
        if self._file:
            self._file.require()
        return self._transactions.write(self._one_writer)

    def read(self) -> AbstractContextManager[Transaction]:
        """Return a transaction for reading; all its statements read the same snapshot.

        Raises StoreError for a SQLite file that was removed or replaced.
        """
        if (transaction := getattr(self._here, "transaction", None)) is not None:
            return nullcontext(transaction)
        if self._unwritable is not None and (unwritable := self._try_again()):
            return unwritable.read()
        if self._file:
            self._file.require()
        return self._transactions.read()

    def of_one_moment(self, what: Callable[[], T]) -> T:
        """Return the result of a call in which everything that this thread reads is one snapshot.

        It is repeated as a whole, like a transaction. If something is damaged, it is repeated
        without a snapshot, in which some databases read no more after an error.
        """

        def read() -> T:
            with self.read() as self._here.transaction:
                try:
                    return what()
                finally:
                    self._here.transaction = None

        try:
            return self.tried(read)
        except DamagedRecord:
            return what()

    def head(self, uuid: str) -> Row:
        """Read the row of a plan; raises PlanNotFound."""
        with self.read() as transaction:
            return plan_row(transaction, uuid)

    def tried(self, what: Callable[[], T], *, lost_too: bool = True) -> T:
        """Return the result of a call, which is repeated after deadlocks and lost connections.

        After a lost connection, it is repeated only if ``lost_too``. A call that finds a SQLite
        file locked by another process is repeated until ``busy_timeout_s``, unless that process is
        stopped. Raises StoreError with the last error, and DamagedRecord if rows cannot be
        converted or pages cannot be read.
        """
        try:
            try:
                return what()
            except Exception as error:
                if getattr(self._here, "transaction", None) is not None:
                    raise
                with translate_errors(self._url):
                    if not isinstance(error, Deadlock | ConnectionLost | DatabaseLocked):
                        raise
                    return self._repeated(what, error, lost_too=lost_too)
        except UnreadableValue as error:
            raise DamagedRecord(shown(self._url), [str(error)]) from error

    def reading(self, work: Callable[[Transaction], T], *, lost_too: bool = True) -> T:
        """Return what ``work`` reads in a transaction, which is repeated by :meth:`tried`."""

        def read() -> T:
            with self.read() as transaction:
                return work(transaction)

        return self.tried(read, lost_too=lost_too)

    def reading_plan(self, uuid: str, work: Callable[[Transaction], T]) -> T:
        """Return what ``work`` reads of a plan; an error has all damage of it."""
        try:
            return self.reading(work)
        except DamagedRecord as damaged:
            found = self.tried(lambda: damage.problems(self.read, uuid))
            if found:
                raise DamagedRecord(f"plan {short(uuid)}", found) from damaged
            raise

    def writing(self, work: Callable[[Transaction], T], *, lost_too: bool = True) -> T:
        """Return what ``work`` returns in a transaction for writing, repeated by :meth:`tried`."""

        def write() -> T:
            with self.write() as transaction:
                return work(transaction)

        return self.tried(write, lost_too=lost_too)

    def listed(self, read: Callable[[Rows], T]) -> T:
        """Return what ``read`` makes of rows that it reads.

        Raises DamagedRows if some of the rows are damaged; it has what ``read`` makes of the
        others.
        """
        try:
            return self.reading(lambda transaction: read(Rows(transaction)))
        except DamagedRecord as damaged:

            def look(transaction: Transaction) -> tuple[T, list[DamagedRow]]:
                rows = SoundRows(transaction)
                return read(rows), rows.damaged

            sound, rows = self.reading(look)
            if rows:
                raise DamagedRows(rows, sound) from damaged
            raise

    def _repeated(self, what: Callable[[], T], refused: Refused, *, lost_too: bool) -> T:
        """Repeat a refused call until it succeeds, or until the tries or the time are used up."""
        began, told = time.monotonic(), False
        give_up = began + self._patience_s
        for tries, wait_s in enumerate(delays_s(SHORTEST_WAIT_S, LONGEST_WAIT_S), start=1):
            patient = time.monotonic() + wait_s < give_up and not self._closed.is_set()
            if isinstance(refused, Deadlock):
                if tries == DEADLOCK_TRIES:
                    raise refused
            elif isinstance(refused, DatabaseLocked):
                if self._is_stuck(time.monotonic() - began):
                    raise refused
                if not told:
                    database_errors.tell_wait(sentence(refused, self._url), self._busy_timeout_s)
                    told = True
            elif not (lost_too and patient):
                raise refused
            self._closed.wait(wait_s)
            try:
                return what()
            except (Deadlock, ConnectionLost, DatabaseLocked) as error:
                refused = error
        raise AssertionError  # the loop has no end

    def _is_stuck(self, waited_s: float) -> bool:
        """Return whether a call has to stop waiting for a file that another process has locked.

        That is so at the end of the busy timeout, after :meth:`close`, and if that process is
        stopped.
        """
        if waited_s + database_errors.SOON_S >= self._busy_timeout_s or self._closed.is_set():
            return True
        holder = database_errors.lock_holder(self._url)
        return holder is not None and holder.stopped

    @contextmanager
    def named(self, uuid: str, *call: object) -> Iterator[str]:
        """Yield a unique name for a write, which the write has to store in the plan's row.

        ``call`` is the method and its arguments. If the block raises StoreError, it is unknown
        whether the write was made. If the next call for the plan is the same, it gets the same
        name. So it can find that name in the row, and is not written twice.
        """
        asked, name = self._unsure.pop(uuid, (None, ""))
        if asked != call:
            name = self.new_id()
        try:
            yield name
        except StoreError:
            self._unsure[uuid] = (call, name)
            raise


class PartOfStore:
    """Methods of :class:`applier.storage.sql_store.SqlStore`, which is in a database."""

    _database: Database


def plan_row(transaction: Transaction, uuid: str) -> Row:
    """Read the row of a plan in a transaction; raises PlanNotFound."""
    found = transaction.read(statements.PLAN, {"plan_uuid": uuid}, table="actionplan_plan")
    if not found:
        raise PlanNotFound(uuid)
    require_claim(found[0])
    return found[0]


def require_listed(transaction: Transaction, uuid: str) -> None:
    """Raise PlanNotFound for a plan that is not in the record; a damaged or removed one is."""
    if not transaction.read_unconverted(statements.PLAN_KEYS, {"plan_uuid": uuid}):
        raise PlanNotFound(uuid)


def require_claim(plan: Row) -> None:
    """Raise UnreadableValue if the claim in the row of a plan is none that an applier writes."""
    if plan["claim"] is None:
        return
    if not is_process_id(plan["claimant_pid"]) or None in (
        plan["claimant_host"],
        plan["claimant_user"],
    ):
        raise UnreadableValue("its claim does not say which process has made it")
    if not ranges.is_duration(plan["heartbeat_interval_s"]):
        raise UnreadableValue("its claim does not say how often its process writes a heartbeat")
