"""Transactions on the database of a URL: opened, tried again, and known when their answer was lost.

A method that writes begins with a write, so that SQLite gives it the right to write at once and
never refuses it half-way, and takes hold of the plan's row first, so that two writers of one plan
wait for each other and do not deadlock. What the row must be is part of the UPDATE; if none fits,
all is undone, and what is there now is read to say why.
"""

from __future__ import annotations

import itertools
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import sqlalchemy as sa
from oslo_db.exception import DBDeadlock, DBError  # type: ignore[import-untyped]
from sqlalchemy.exc import SQLAlchemyError

from applier.errors import PlanNotFound, StoreError
from applier.storage import rows, schema
from applier.storage import statements as said
from applier.storage.connection import lost, make_engine, parse, translate_errors
from applier.storage.unwritable import Unwritable, fits

T = TypeVar("T")

#: A transaction that met a deadlock is written this often, whatever the patience.
DEADLOCK_TRIES = 8
#: Between two tries, at least and at most.
SHORTEST_WAIT_S, LONGEST_WAIT_S = 0.05, 1.0
#: A server that has not answered a statement after so long is taken for gone.
ANSWER_S = 30


class Database:
    """Begins the transactions of a store; may be used from several threads.

    The parameters are those of :class:`applier.storage.sql.SqlStore`.
    """

    def __init__(
        self,
        connection: str,
        *,
        synchronous: str,
        busy_timeout_s: float,
        patience_s: float,
        new_id: Callable[[], str],
    ) -> None:
        self._url = parse(connection)
        self._patience_s, self._new_id = patience_s, new_id
        self.engine = make_engine(
            self._url, synchronous=synchronous, busy_timeout_s=busy_timeout_s, answer_s=ANSWER_S
        )
        self.readers = self.engine
        self.writer: sa.Connection | None = None
        self._unwritable: Unwritable | None = None
        self._writing = threading.Lock()
        self._closed = threading.Event()
        #: By plan, the last write of which nobody knows whether it was made, and its name.
        self._unsure: dict[str, tuple[object, str]] = {}
        try:
            with translate_errors(self._url):
                self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        if self.engine.dialect.name == "sqlite":
            self._open_file()
            return
        if self.engine.dialect.name == "postgresql":
            # What is read by two statements is of one moment. (So it is elsewhere.)
            self.readers = self.engine.execution_options(isolation_level="REPEATABLE READ")
        with self.engine.begin() as database:
            schema.require(database, self._url)

    def _open_file(self) -> None:
        """Open a SQLite file; one of this release is read also where it cannot be written."""
        try:
            schema.prepare_file(self._url, self.engine)
            # One stays open: opening costs more than a commit, and SQLite empties its log
            # whenever the last connection closes.
            self.writer = self.engine.connect()
            self._unwritable = None
        except (DBError, SQLAlchemyError, sqlite3.Error) as refused:
            self.engine.dispose()
            if not fits(self._url, refused):
                raise
            self._unwritable = Unwritable(self._url, refused)
            with self._unwritable.read() as database:
                if schema.version(database, self._url) != schema.REVISIONS[-1]:
                    raise

    def _try_again(self) -> Unwritable | None:
        """Open a file anew that could not be written; gives it if it still cannot be."""
        if self._unwritable is None:
            return None
        with self._writing:
            if self._unwritable is not None:
                self._open_file()
            return self._unwritable

    def close(self) -> None:
        """Give back the connections, and end what waits for another try."""
        self._closed.set()
        if self.writer is not None:
            self.writer.close()
            self.writer = None
        self.engine.dispose()

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """Begin a transaction that writes: all of it or nothing."""
        if unwritable := self._try_again():
            raise unwritable.refusal
        if self.writer is None:
            with self.engine.begin() as database:
                yield database
        else:
            # SQLite has one writer at a time anyway.
            with self._writing, self.writer.begin():
                yield self.writer

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """Begin a transaction that reads: all of it as it is at one moment."""
        unwritable = self._try_again()
        with unwritable.read() if unwritable else self.readers.begin() as database:
            yield database

    def head(self, uuid: str) -> rows.Row:
        """Read the row of a plan; raises PlanNotFound."""
        with self.read() as database:
            return plan_row(database, uuid)

    def tried(self, what: Callable[[], T], *, lost_too: bool = True) -> T:
        """Do it; again after a deadlock, and (``lost_too``) after the connection was lost.

        Raises StoreError for whatever the database refuses in the end.
        """
        give_up = time.monotonic() + self._patience_s
        with translate_errors(self._url):
            for number in itertools.count(1):
                wait = min(SHORTEST_WAIT_S * 2 ** (number - 1), LONGEST_WAIT_S)
                try:
                    return what()
                except DBDeadlock:
                    if number == DEADLOCK_TRIES:
                        raise
                except (DBError, SQLAlchemyError) as error:
                    patient = time.monotonic() + wait < give_up and not self._closed.is_set()
                    if not (lost_too and patient and lost(error)):
                        raise
                self._closed.wait(wait)
        raise AssertionError  # the loop has no end

    @contextmanager
    def named(self, uuid: str, *call: object) -> Iterator[str]:
        """Give a write of a plan its name, which is kept in the plan's row with it.

        If it ends with a StoreError, nobody knows whether it was made. The same call made again has
        the same name, so that a write that is found under its name is not made a second time.
        """
        asked, name = self._unsure.pop(uuid, (None, ""))
        if asked != call:
            name = self._new_id()
        try:
            yield name
        except StoreError:
            self._unsure[uuid] = (call, name)
            raise


def plan_row(database: sa.Connection, uuid: str) -> rows.Row:
    """Read the row of a plan in a transaction; raises PlanNotFound."""
    head = database.execute(said.PLAN, {"plan_uuid": uuid}).mappings().one_or_none()
    if head is None:
        raise PlanNotFound(uuid)
    return head
