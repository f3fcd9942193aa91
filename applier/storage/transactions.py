# SPDX-License-Identifier: Apache-2.0
"""Transactions on the connections of an engine, by the cursors of its driver.

SQLAlchemy makes the connections, keeps them, and compiles the statements. What is done for each
statement and for each commit is the driver's alone, because a run has one commit for every few
actions.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import PoolProxiedConnection

from applier.storage.compiled import Compiled, Row
from applier.storage.refusals import ConnectionLost, Refused, refusal

_NONE: Mapping[str, Any] = {}


class Unexpected(Exception):
    """A statement found a row in another state than it requires; it is all rolled back."""


class Write(NamedTuple):
    """A statement, to be run once for each row of parameters.

    If it is ``checked``, it must change one row each time.
    """

    statement: sa.ClauseElement
    rows: Sequence[Mapping[str, Any]]
    checked: bool = True


class Transaction:
    """A transaction that has begun; ``pipeline`` is that of the driver's connection, if it has one.

    A pipeline sends statements without waiting for the answer to each.
    """

    def __init__(
        self,
        cursor: Any,
        compiled: Mapping[sa.ClauseElement, Compiled],
        pipeline: Callable[[], AbstractContextManager[object]] | None,
    ) -> None:
        self._cursor, self._compiled, self._pipeline = cursor, compiled, pipeline

    def write(self, statement: sa.ClauseElement, *rows: Mapping[str, Any]) -> int:
        """Run a statement once for each row of parameters; return how many rows it changed."""
        return self._written(self._cursor, statement, rows)

    def write_all(self, writes: Sequence[Write]) -> None:
        """Run statements in their order; raise Unexpected if one that is checked does not fit."""
        if self._pipeline is None:
            for write in writes:
                number = self._written(self._cursor, write.statement, write.rows)
                _require(write, number)
            return
        with self._pipeline():
            cursors = [self._cursor.connection.cursor() for _ in writes]
            for write, cursor in zip(writes, cursors, strict=True):
                self._written(cursor, write.statement, write.rows)
        for write, cursor in zip(writes, cursors, strict=True):
            _require(write, cursor.rowcount)

    def _written(
        self, cursor: Any, statement: sa.ClauseElement, rows: Sequence[Mapping[str, Any]]
    ) -> int:
        compiled = self._compiled[statement]
        if len(rows) == 1:
            cursor.execute(compiled.text, compiled.parameters(rows[0]))
        else:
            cursor.executemany(compiled.text, [compiled.parameters(row) for row in rows])
        number: int = cursor.rowcount
        return number

    def read(self, statement: sa.ClauseElement, parameters: Mapping[str, Any] = _NONE) -> list[Row]:
        """Return the rows that a statement finds."""
        compiled = self._compiled[statement]
        self._cursor.execute(compiled.text, compiled.parameters(parameters))
        return compiled.rows(self._cursor.fetchall())


def _require(write: Write, number: int) -> None:
    if write.checked and number != len(write.rows):
        raise Unexpected


class _Statements(dict[sa.ClauseElement, Compiled]):
    """Compiles a statement when it is asked for the first time."""

    def __init__(self, dialect: sa.Dialect) -> None:
        self._dialect = dialect

    def __missing__(self, statement: sa.ClauseElement) -> Compiled:
        compiled = self[statement] = Compiled(statement, self._dialect)
        return compiled


class Transactions:
    """Begins transactions on an engine of :func:`applier.storage.connection.make_engine`.

    May be used from several threads. Raises :class:`applier.storage.refusals.Refused` for whatever
    the database, or the way to it, refuses.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self._engine, self._dialect, self._process = engine, engine.dialect, os.getpid()
        self._compiled = _Statements(engine.dialect)
        driver: Any = engine.dialect.loaded_dbapi
        #: How drivers refuse statements, and what stands in them.
        self._errors = (driver.Error, SQLAlchemyError, UnicodeEncodeError, OverflowError)
        self._has_pipeline = hasattr(driver, "Pipeline") and driver.Pipeline.is_supported()

    @contextmanager
    def begin(self, statement: str) -> Iterator[Transaction]:
        """Run a block in a transaction that the statement begins, such as ``BEGIN``.

        It is committed at the end of the block, and rolled back by an exception.
        """
        connection, cursor = self._begun(statement)
        try:
            pipeline = cursor.connection.pipeline if self._has_pipeline else None
            yield Transaction(cursor, self._compiled, pipeline)
            connection.commit()
        except self._errors as error:
            raise self._refusal(connection, error) from error
        except Exception:
            self._roll_back(connection)
            raise
        except BaseException:
            # In the middle of a statement, perhaps: nothing more can be said on this connection.
            connection.invalidate()
            raise
        connection.close()

    def _begun(self, statement: str) -> tuple[PoolProxiedConnection, Any]:
        if self._process != os.getpid():
            # The connections belong to the process that opened them, a parent of this one.
            self._engine.dispose(close=False)
            self._process = os.getpid()
        connection = self._connected()
        try:
            return connection, self._begun_on(connection, statement)
        except ConnectionLost:
            # They broke while nobody used them, as when the server was started again.
            self._engine.dispose()
        connection = self._connected()
        return connection, self._begun_on(connection, statement)

    def _connected(self) -> PoolProxiedConnection:
        try:
            return self._engine.raw_connection()
        except self._errors as error:
            raise refusal(error, self._dialect) from error

    def _begun_on(self, connection: PoolProxiedConnection, statement: str) -> Any:
        try:
            cursor = connection.cursor()
            cursor.execute(statement)
        except self._errors as error:
            raise self._refusal(connection, error) from error
        except BaseException:
            connection.invalidate()
            raise
        return cursor

    def _refusal(self, connection: PoolProxiedConnection, error: BaseException) -> Refused:
        """End a transaction that was refused, and say what kind of refusal it was."""
        refused = refusal(error, self._dialect, connection.dbapi_connection)
        if isinstance(refused, ConnectionLost):
            connection.invalidate()
        else:
            self._roll_back(connection)
        return refused

    def _roll_back(self, connection: PoolProxiedConnection) -> None:
        try:
            connection.rollback()
        except self._errors:
            connection.invalidate()
        else:
            connection.close()
