# SPDX-License-Identifier: Apache-2.0
"""Runs transactions by the cursors of a driver, on the connections of an engine.

SQLAlchemy makes the connections and compiles the statements. Each statement and each commit is
passed to the driver directly, which is faster: a run has one commit for every few actions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from threading import Lock
from types import TracebackType
from typing import Any, Generic, NamedTuple, TypeVar

import sqlalchemy as sa

from applier.errors import DamagedRow
from applier.storage.compiled import Compiled, Row, Runnable
from applier.storage.idle import Connection, IdleConnections

T = TypeVar("T")
_NONE: Mapping[str, Any] = {}
#: The number of PostgreSQL's type of times.
_TIMESTAMP = 1114


class Unexpected(Exception):
    """A statement changed fewer or more rows than required; the transaction is rolled back."""


class Write(NamedTuple):
    """A statement with its parameters; ``changes`` is how many rows it must change, None any."""

    statement: Runnable
    parameters: Mapping[str, Any]
    changes: int | None


class Transaction:
    """A transaction, as a context manager. ``statement`` begins it, such as ``BEGIN``.

    It is committed at the end of the block, and rolled back if the block raises an exception.
    ``lock``, if there is one, is acquired before it begins, and released at its end.
    """

    _connection: Connection

    def __init__(
        self,
        connections: IdleConnections,
        compiled: Mapping[Runnable, Compiled],
        statement: str,
        lock: Lock | None = None,
    ) -> None:
        self._connections, self._compiled = connections, compiled
        self._statement, self._lock = statement, lock

    def __enter__(self) -> Transaction:
        if self._lock is not None:
            self._lock.acquire()
        try:
            self._connection = self._connections.begin(self._statement)
        except BaseException:
            self._unlock()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                self._connections.commit(self._connection)
            else:
                self._connections.roll_back(self._connection, error)
        finally:
            self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.release()

    def write(self, statement: Runnable, *rows: Mapping[str, Any]) -> int:
        """Run a statement once for each row of parameters; return how many rows it changed."""
        compiled, cursor = self._compiled[statement], self._connection.cursor
        if len(rows) == 1:
            cursor.execute(compiled.text, compiled.parameters(rows[0]))
        else:
            cursor.executemany(compiled.text, [compiled.parameters(row) for row in rows])
        number: int = cursor.rowcount
        return number

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
        compiled, cursor = self._compiled[writes[0].statement], self._connection.driver.cursor()
        cursor.executemany(compiled.text, [compiled.parameters(w.parameters) for w in writes])
        return cursor

    def read(self, statement: Runnable, parameters: Mapping[str, Any] = _NONE) -> list[Row]:
        """Run a SELECT; return its rows as mappings, with converted values.

        Raises UnreadableValue if a value cannot be converted.
        """
        compiled, cursor = self._compiled[statement], self._connection.cursor
        cursor.execute(compiled.text, compiled.parameters(parameters))
        return compiled.rows(cursor.fetchall())

    def read_typed(self, statement: Runnable, parameters: Mapping[str, Any] = _NONE) -> list[Row]:
        """Run a SELECT as :meth:`read`; raise UnreadableValue also for a value of another type."""
        compiled, cursor = self._compiled[statement], self._connection.cursor
        cursor.execute(compiled.text, compiled.parameters(parameters))
        return compiled.typed(cursor.fetchall())

    def typed(self, statement: Runnable, row: Row) -> Row:
        """Convert a row of :meth:`read_unconverted` to one of :meth:`read_typed`."""
        [converted] = self._compiled[statement].typed([tuple(row.values())])
        return converted

    def read_unconverted(
        self, statement: Runnable, parameters: Mapping[str, Any] = _NONE
    ) -> list[Row]:
        """Run a SELECT; return its rows with values as they are stored, even if they are damaged.

        In texts of SQLite that are not UTF-8, the wrong bytes become lone surrogates. Times of
        PostgreSQL that Python does not have become texts.
        """
        compiled, driver = self._compiled[statement], self._connection.driver
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
            return compiled.unconverted(cursor.fetchall())
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

    table: sa.Table
    convert: Callable[[Row], T]
    name: str


class Rows:
    """Reads and converts the rows of a list in a transaction; raises an error if one is damaged."""

    def __init__(self, transaction: Transaction) -> None:
        self.transaction = transaction
        #: The rows that were left out. There are some only in the subclass that leaves out rows.
        self.damaged: list[DamagedRow] = []

    def of(self, kind: Kind[T], statement: Runnable, asked: Mapping[str, Any]) -> list[T]:
        """Return the converted rows of a SELECT."""
        return [kind.convert(row) for row in self.transaction.read_typed(statement, asked)]


class _Statements(dict[Runnable, Compiled]):
    """The compiled statements of a dialect; each is compiled when it is first looked up."""

    def __init__(self, dialect: sa.Dialect) -> None:
        self._dialect = dialect

    def __missing__(self, statement: Runnable) -> Compiled:
        compiled = self[statement] = Compiled(statement, self._dialect)
        return compiled


#: Compiled statements by SQLite driver, so that a process compiles each once for all its files.
_OF_FILES: dict[str, _Statements] = {}


def _statements(dialect: sa.Dialect) -> _Statements:
    """Return the compiled statements of a dialect.

    All engines for SQLite share theirs. Those of a server depend on its version, too.
    """
    if dialect.name != "sqlite":
        return _Statements(dialect)
    return _OF_FILES.setdefault(dialect.driver, _Statements(dialect))


class Transactions:
    """Makes transactions on an engine of :func:`applier.storage.connection.make_engine`.

    May be used from several threads. Errors of the driver are raised as
    :class:`applier.storage.refusals.Refused`.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self._connections = IdleConnections(engine)
        self._compiled = _statements(engine.dialect)

    def begin(self, statement: str, lock: Lock | None = None) -> Transaction:
        """Return a transaction; ``statement`` is run, and ``lock`` taken, on entering its block."""
        return Transaction(self._connections, self._compiled, statement, lock)

    def close(self) -> None:
        """Close the idle connections now, and the others when their transactions end."""
        self._connections.close()
