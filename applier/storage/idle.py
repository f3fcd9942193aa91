# SPDX-License-Identifier: Apache-2.0
"""Connections that are kept open between transactions, which begin and end on them.

SQLAlchemy's pool would do the same with four times the work for each transaction.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import PoolProxiedConnection

from applier.storage.refusals import ConnectionLost, refusal

#: A connection is not used for longer: what stands between it and the server may forget it.
LONGEST_S = 3600.0


class Connection(NamedTuple):
    """An open connection.

    ``pooled`` is SQLAlchemy's, ``driver`` is the driver's own in it, with one cursor. In a
    ``pipeline`` statements are sent without waiting for the answer to each, if the driver can do
    that. ``opened`` is by the clock ``time.monotonic``.
    """

    pooled: PoolProxiedConnection
    driver: Any
    cursor: Any
    pipeline: Callable[[], AbstractContextManager[object]]
    opened: float


class IdleConnections:
    """Keeps the connections of an engine that no transaction uses; any thread may call it."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine, self._dialect, self._process = engine, engine.dialect, os.getpid()
        driver: Any = engine.dialect.loaded_dbapi
        #: How drivers refuse statements, and what stands in them.
        self._errors = (driver.Error, SQLAlchemyError, UnicodeEncodeError, OverflowError)
        self._has_pipeline = hasattr(driver, "Pipeline") and driver.Pipeline.is_supported()
        self._idle: list[Connection] = []
        #: Connections of a parent process: they must not even be closed.
        self._inherited: list[Connection] = []
        self._closed = False

    def begin(self, statement: str) -> Connection:
        """Begin a transaction by a statement; return the connection that it is on."""
        if self._process != os.getpid():
            self._leave_to_parent()
        try:
            return self._begun(self._taken() or self._opened(), statement)
        except ConnectionLost:
            # They broke while nobody used them, as when the server was started again.
            self._close_idle()
            self._engine.dispose()
        return self._begun(self._opened(), statement)

    def commit(self, connection: Connection) -> None:
        """Commit the transaction of a connection, and keep the connection."""
        try:
            connection.driver.commit()
        except BaseException as error:
            self.roll_back(connection, error)
            raise
        self._keep(connection)

    def roll_back(self, connection: Connection, error: BaseException) -> None:
        """Roll back the transaction of a connection after an error, raised inside or by its commit.

        Raises Refused for an error of the driver, and returns after any other.
        """
        if isinstance(error, self._errors):
            refused = refusal(error, self._dialect, connection.driver)
            self._end(connection, broken=isinstance(refused, ConnectionLost))
            raise refused from error
        # Anything else may have come in the middle of a statement: nothing more can be said then.
        self._end(connection, broken=not isinstance(error, Exception))

    def close(self) -> None:
        """Close the connections that are kept, and each other when its transaction ends."""
        self._closed = True
        self._close_idle()

    def _taken(self) -> Connection | None:
        """Take a connection that is kept and not too old; close those that are."""
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return None
            if time.monotonic() - connection.opened < LONGEST_S:
                return connection
            connection.pooled.invalidate()

    def _opened(self) -> Connection:
        try:
            pooled = self._engine.raw_connection()
        except self._errors as error:
            raise refusal(error, self._dialect) from error
        driver: Any = pooled.dbapi_connection
        pipeline = driver.pipeline if self._has_pipeline else nullcontext
        return Connection(pooled, driver, driver.cursor(), pipeline, time.monotonic())

    def _begun(self, connection: Connection, statement: str) -> Connection:
        try:
            connection.cursor.execute(statement)
        except BaseException as error:
            self.roll_back(connection, error)
            raise
        return connection

    def _end(self, connection: Connection, *, broken: bool) -> None:
        """Roll back and keep a connection, or give it up if it is broken."""
        if not broken:
            try:
                connection.driver.rollback()
            except self._errors:
                broken = True
        if broken:
            connection.pooled.invalidate()
        else:
            self._keep(connection)

    def _keep(self, connection: Connection) -> None:
        self._idle.append(connection)
        if self._closed:
            self._close_idle()

    def _close_idle(self) -> None:
        while self._idle:
            try:
                self._idle.pop().pooled.invalidate()
            except IndexError:
                return  # another thread closed the last one

    def _leave_to_parent(self) -> None:
        self._inherited += self._idle
        self._idle = []
        self._engine.dispose(close=False)
        self._process = os.getpid()
