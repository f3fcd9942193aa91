# SPDX-License-Identifier: Apache-2.0
"""Keeps connections open between transactions, and begins and ends transactions on them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, NamedTuple

from applier.storage.connection import Connector
from applier.storage.refusals import ConnectionLost, refusal

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


class IdleConnections:
    """Keeps idle connections to a database; may be used from several threads."""

    def __init__(self, connector: Connector) -> None:
        self._connector, self._process = connector, os.getpid()
        driver = connector.driver
        #: The errors that drivers raise when they refuse a statement or one of its values.
        self._errors: tuple[type[BaseException], ...] = (
            driver.Error,
            UnicodeEncodeError,
            OverflowError,
        )
        self._has_pipeline = hasattr(driver, "Pipeline") and driver.Pipeline.is_supported()
        self._idle: list[Connection] = []
        #: Connections of a parent process. They are never closed: the parent may be using them.
        self._inherited: list[Connection] = []
        self._closed = False

    def begin(self, statement: str) -> Connection:
        """Begin a transaction by running a statement; return its connection.

        If the connection is lost, it is tried once more on a new one. Raises Refused.
        """
        if self._process != os.getpid():
            self._leave_to_parent()
        try:
            return self._begun(self._taken() or self._opened(), statement)
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
        self._keep(connection)

    def roll_back(self, connection: Connection, error: BaseException) -> None:
        """Roll back the transaction of a connection after an error in it or in its commit.

        Raises Refused for an error of the driver; after any other error it returns.
        """
        if isinstance(error, self._errors):
            refused = refusal(error, self._connector.driver, connection.driver)
            self._end(connection, broken=isinstance(refused, ConnectionLost))
            raise refused from error
        # An interrupt may have come in the middle of a statement: the connection is unusable then.
        self._end(connection, broken=not isinstance(error, Exception))

    def close(self) -> None:
        """Close the idle connections now, and the others when their transactions end."""
        self._closed = True
        self._close_idle()

    def _taken(self) -> Connection | None:
        """Return an idle connection that is not too old, or None; close those that are too old."""
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return None
            if time.monotonic() - connection.opened < LONGEST_S:
                return connection
            self._close(connection)

    def _opened(self) -> Connection:
        try:
            driver = self._connector.open()
        except self._errors as error:
            raise refusal(error, self._connector.driver) from error
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
        if broken:
            self._close(connection)
        else:
            self._keep(connection)

    def _keep(self, connection: Connection) -> None:
        self._idle.append(connection)
        if self._closed:
            self._close_idle()

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
