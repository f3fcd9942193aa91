# SPDX-License-Identifier: Apache-2.0
"""Runs transactions by the cursors of a driver, on connections that are kept between them.

:mod:`applier.storage.database` repeats transactions; here, an idle connection is replaced once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache, partial
from itertools import groupby
from threading import Lock
from typing import Any, Generic, NamedTuple, TypeVar

from applier.errors import DamagedRow
from applier.storage.connection import Connector
from applier.storage.database_errors import ConnectionLost, refusal
from applier.storage.schema import insert_into
from applier.storage.statements import Compiled, Row, Write

T = TypeVar("T")
#: The age in seconds from which an idle connection is closed instead of used again: firewalls drop
#: old connections without notice.
LONGEST_S = 3600.0


class Connection(NamedTuple):
    """An open connection.

    ``driver`` is the driver's connection, ``cursor`` is a cursor of it. ``pipeline`` returns a
    context manager, in which statements are sent without waiting for the answer to each, if the
    driver supports that. ``opened`` is a time of ``time.monotonic``.
    """

    driver: Any
    cursor: Any
    pipeline: Callable[[], AbstractContextManager[object]]
    opened: float


class Transactions:
    """Makes transactions in a database, on connections that it keeps between them.

    It may be used from several threads. Errors of the driver are raised as
    :class:`applier.storage.database_errors.Refused`.
    """

    def __init__(self, connector: Connector) -> None:
        self.connector, self._process = connector, os.getpid()
        driver = connector.driver
        #: The errors that drivers raise when they refuse a statement or one of its values.
        self._errors: tuple[type[BaseException], ...] = (
            driver.Error,
            UnicodeEncodeError,
            OverflowError,
        )
        self._has_pipeline = hasattr(driver, "Pipeline") and driver.Pipeline.is_supported()
        #: Compiles each statement once.
        self._compiled = cache(partial(Compiled, dialect=connector.dialect))
        self._idle: list[Connection] = []
        #: Connections of a parent process. They are never closed: the parent may be using them.
        self._inherited: list[Connection] = []
        self._closed = False

    def write(self, lock: Lock | None = None) -> AbstractContextManager[Transaction]:
        """Return a transaction for writing, in whose block ``lock``, if given, is held."""
        return self._made(self.connector.dialect.begin_write, lock)

    def read(self) -> AbstractContextManager[Transaction]:
        """Return a transaction for reading; all its statements read the same snapshot."""
        return self._made(self.connector.dialect.begin_read)

    @contextmanager
    def _made(self, statement: str, lock: Lock | None = None) -> Iterator[Transaction]:
        """Begin a transaction by a statement, commit it at the end of the block.

        It is rolled back if the block raises an exception.
        """
        with lock or nullcontext():
            connection = self.begin(statement)
            try:
                yield Transaction(connection, self._compiled)
            except BaseException as error:
                self.roll_back(connection, error)
                raise
            self.commit(connection)

    def begin(self, statement: str) -> Connection:
        """Begin a transaction by running a statement; return its connection.

        If the connection is lost, it is tried once more on a new one. Raises Refused.
        """
        if self._process != os.getpid():
            self._leave_to_parent()
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:
                break  # another thread took the last one
            if time.monotonic() - connection.opened > LONGEST_S:
                self._close(connection)
                continue
            try:
                return self._begun(connection, statement)
            except ConnectionLost:
                # The idle connections broke, for example because the server was restarted.
                self._close_idle()
        return self._begun(self._opened(), statement)

    def commit(self, connection: Connection) -> None:
        """Commit the transaction of a connection, and keep the connection for the next.

        If that fails, the transaction is rolled back as by :meth:`roll_back`.
        """
        try:
            connection.driver.commit()
        except BaseException as error:
            self.roll_back(connection, error)
            raise
        self._idle.append(connection)
        if self._closed:
            self._close_idle()

    def roll_back(self, connection: Connection, error: BaseException) -> None:
        """Roll back the transaction of a connection after an error in it or in its commit.

        Raises Refused for an error of the driver; after any other error it returns.
        """
        if isinstance(error, self._errors):
            refused = refusal(error, self.connector.driver, connection.driver)
            self._end(connection, broken=isinstance(refused, ConnectionLost))
            raise refused from error
        # An interrupt may have come in the middle of a statement: the connection is unusable then.
        self._end(connection, broken=not isinstance(error, Exception))

    def close(self) -> None:
        """Close the idle connections now, and the others when their transactions end."""
        self._closed = True
        self._close_idle()

    def _opened(self) -> Connection:
        try:
            driver = self.connector.open()
        except self._errors as error:
            raise refusal(error, self.connector.driver) from error
        pipeline = driver.pipeline if self._has_pipeline else nullcontext
        return Connection(driver, driver.cursor(), pipeline, time.monotonic())

    def _begun(self, connection: Connection, statement: str) -> Connection:
        try:
            connection.cursor.execute(statement)
        except BaseException as error:
            self.roll_back(connection, error)
            raise
        return connection

    def _end(self, connection: Connection, *, broken: bool) -> None:
        """Roll back and keep a connection, or close it if it is broken."""
        if not broken:
            try:
                connection.driver.rollback()
            except self._errors:
                broken = True
        if broken or self._closed:
            self._close(connection)
        else:
            self._idle.append(connection)

    def _close_idle(self) -> None:
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:
                return  # another thread closed the last one
            self._close(connection)

    def _close(self, connection: Connection) -> None:
        # That of MySQL raises an error if the connection is lost.
        with suppress(*self._errors):
            connection.driver.close()

    def _leave_to_parent(self) -> None:
        self._inherited += self._idle
        self._idle = []
        self._process = os.getpid()


_NONE: Mapping[str, Any] = {}
#: The number of PostgreSQL's type of times.
_TIMESTAMP = 1114


class Unexpected(Exception):
    """A statement changed fewer or more rows than required; the transaction is rolled back."""


class Transaction:
    """Runs statements on the connection of a transaction that has begun."""

    def __init__(self, connection: Connection, compiled: Callable[[str], Compiled]) -> None:
        self._connection, self._compiled = connection, compiled

    def write(self, statement: str, *rows: Mapping[str, Any]) -> int:
        """Run a statement once for each row of parameters; return how many rows it changed."""
        compiled, cursor = self._compiled(statement), self._connection.cursor
        if len(rows) == 1:
            cursor.execute(compiled.text, compiled.parameters(rows[0]))
        else:
            cursor.executemany(compiled.text, [compiled.parameters(row) for row in rows])
        number: int = cursor.rowcount
        return number

    def insert(self, table: str, *rows: Mapping[str, Any]) -> None:
        """Insert rows with the same names; values that are no columns of the table are ignored."""
        self.write(insert_into(table, tuple(rows[0])), *rows)

    def write_all(self, writes: Iterable[Write]) -> None:
        """Run statements in order; raise Unexpected if they change another number of rows.

        Adjacent writes with the same statement are run together, and their changes are compared as
        a sum.
        """
        # A pipeline sends statements without waiting for the answer to each.
        with self._connection.pipeline():
            sent = [
                (same, self._sent(same))
                for same in (list(group) for _, group in groupby(writes, lambda w: id(w.statement)))
            ]
        for same, cursor in sent:
            expected = [write.changes for write in same if write.changes is not None]
            if expected and cursor.rowcount != sum(expected):
                raise Unexpected

    def _sent(self, writes: Sequence[Write]) -> Any:
        """Send one statement with the parameters of each write; return its cursor."""
        compiled, cursor = self._compiled(writes[0].statement), self._connection.driver.cursor()
        cursor.executemany(compiled.text, [compiled.parameters(w.parameters) for w in writes])
        return cursor

    def read(
        self, statement: str, parameters: Mapping[str, Any] = _NONE, *, table: str | None = None
    ) -> list[Row]:
        """Run a SELECT; return its rows as mappings, with converted values.

        Raises UnreadableValue if a value cannot be converted; and, if they are rows of ``table``,
        for a value of another type than its column.
        """
        compiled, cursor = self._compiled(statement), self._connection.cursor
        cursor.execute(compiled.text, compiled.parameters(parameters))
        return compiled.rows(cursor.description, cursor.fetchall(), table)

    def converted(self, statement: str, row: Row, table: str) -> Row:
        """Convert a row of :meth:`read_unconverted` to one of :meth:`read`."""
        described = [(name,) for name in row]
        [converted] = self._compiled(statement).rows(described, [tuple(row.values())], table)
        return converted

    def read_unconverted(self, statement: str, parameters: Mapping[str, Any] = _NONE) -> list[Row]:
        """Run a SELECT; return its rows with values as they are stored, even if they are damaged.

        In texts of SQLite that are not UTF-8, the wrong bytes become lone surrogates. Times of
        PostgreSQL that Python does not have become texts.
        """
        compiled, driver = self._compiled(statement), self._connection.driver
        strict = getattr(driver, "text_factory", None)
        if strict is not None:
            driver.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")
        try:
            cursor = driver.cursor()
            if hasattr(cursor, "adapters"):
                usual = cursor.adapters.get_loader(_TIMESTAMP, 0)
                loader = _any_timestamp(usual, driver.DataError)
                cursor.adapters.register_loader(_TIMESTAMP, loader)
            cursor.execute(compiled.text, compiled.parameters(parameters))
            columns = [name for name, *_ in cursor.description]
            return [dict(zip(columns, values, strict=True)) for values in cursor.fetchall()]
        finally:
            if strict is not None:
                driver.text_factory = strict


def _any_timestamp(usual: Any, error: type[Exception]) -> type:
    """Return a loader of psycopg that reads times, and those that Python does not have as texts.

    ``usual`` is the loader that raises ``error`` for these.
    """

    class AnyTimestamp:
        #: Values arrive as texts.
        format = 0

        def __init__(self, oid: int, context: Any = None) -> None:
            self._usual = usual(oid, context)

        def load(self, data: Any) -> Any:
            try:
                return self._usual.load(data)
            except error:
                return bytes(data).decode()

    return AnyTimestamp


class Kind(NamedTuple, Generic[T]):
    """A kind of rows: its table, the conversion of a row, and the name of a row as a template."""

    table: str
    convert: Callable[[Row], T]
    name: str


class Rows:
    """Reads and converts the rows of a list in a transaction; raises an error if one is damaged."""

    def __init__(self, transaction: Transaction) -> None:
        self.transaction = transaction
        #: The rows that were left out. There are some only in the subclass that leaves out rows.
        self.damaged: list[DamagedRow] = []

    def of(self, kind: Kind[T], statement: str, asked: Mapping[str, Any]) -> list[T]:
        """Return the converted rows of a SELECT."""
        found = self.transaction.read(statement, asked, table=kind.table)
        return [kind.convert(row) for row in found]
