# SPDX-License-Identifier: Apache-2.0
"""Reads a SQLite file in a folder that cannot be written to: a full disk, or missing permissions.

To read a file in WAL mode, SQLite creates files beside it, which readers and writers share. Where
it cannot create them, it reads the file only if the URL declares it immutable. That is safe for a
file without a write-ahead log: the last writer has closed it, and the next would create a log.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from applier.errors import StoreError
from applier.storage import lock_holders, schema_version
from applier.storage.connection import make_engine
from applier.storage.refusals import sentence
from applier.storage.transactions import Transaction, Transactions

_NO_WRITING = r"disk I/O error|disk is full|unable to open|readonly"


class Unwritable:
    """A reader of the SQLite file of a URL that could not be opened for writing.

    ``refused`` is the error of that.
    """

    def __init__(self, url: sa.URL, refused: BaseException) -> None:
        self._url, self._path = url, Path(url.database or "").absolute()
        self.refusal = StoreError(sentence(refused, url))
        options = {"uri": "true", "mode": "ro", "immutable": "1"}
        self.engine = make_engine(url.set(database=self._path.as_uri(), query=options))

    def require_version(self) -> None:
        """Raise StoreError unless the tables have the version of this release.

        It is the error of opening the file for writing.
        """
        self.require_no_log()
        with self.engine.begin() as database:
            if schema_version.version(database, self._url) != schema_version.REVISIONS[-1]:
                raise self.refusal
        self.engine.dispose()

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """Yield a transaction for reading; raises StoreError if there is a log with changes."""
        self.require_no_log()
        transactions = Transactions(self.engine)
        try:
            with transactions.begin("BEGIN") as transaction:
                yield transaction
        finally:
            # A connection to an immutable file does not notice later changes, so none is reused.
            transactions.close()
            self.engine.dispose()

    def require_no_log(self) -> None:
        """Raise StoreError if the log or the journal beside the file contains changes.

        SQLite cannot read these without writing.
        """
        for log in (Path(f"{self._path}-wal"), Path(f"{self._path}-journal")):
            if log.exists() and log.stat().st_size:
                raise StoreError(
                    f"{self.refusal} (the last changes are in {log.name}, which SQLite reads "
                    "only where it can write)"
                )


@contextmanager
def readable(url: sa.URL) -> Iterator[sa.Engine]:
    """Yield an engine on which a record can be read; nothing is created, changed or upgraded.

    Raises StoreError for a SQLite file that cannot be written and has a log with changes.
    """
    engine = make_engine(url, busy_timeout_s=lock_holders.SOON_S)
    try:
        if url.get_backend_name() == "sqlite":
            try:
                with engine.connect() as database:
                    database.exec_driver_sql("SELECT count(*) FROM sqlite_master")
            except SQLAlchemyError as refused:
                engine.dispose()
                if not is_only_unwritable(url, refused):
                    raise
                unwritable = Unwritable(url, refused)
                unwritable.require_no_log()
                engine = unwritable.engine
        yield engine
    finally:
        engine.dispose()


def is_only_unwritable(url: sa.URL, refused: BaseException) -> bool:
    """Return whether the file exists and could not be opened only because it cannot be written."""
    found = re.search(_NO_WRITING, sentence(refused, url))
    return found is not None and Path(url.database or "").is_file()
