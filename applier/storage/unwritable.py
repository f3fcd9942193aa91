# SPDX-License-Identifier: Apache-2.0
"""Reads a SQLite file in a folder that cannot be written to: a full disk, or missing permissions.

To read a file in WAL mode, SQLite creates files beside it, which readers and writers share. Where
it cannot create them, it reads the file only if the URL declares it immutable. That is safe for a
file without a write-ahead log: the last writer has closed it, and the next would create a log.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from applier.errors import StoreError
from applier.storage import database_errors
from applier.storage.connection import Connector, Url
from applier.storage.database_errors import Refused, sentence
from applier.storage.transactions import Transaction, Transactions

_NO_WRITING = r"disk I/O error|disk is full|unable to open|readonly"


class Unwritable:
    """A reader of the SQLite file of a URL that could not be opened for writing.

    ``refused`` is the error of that.
    """

    def __init__(self, url: Url, refused: BaseException) -> None:
        self._url, self._path = url, Path(url.database).absolute()
        self.refusal = StoreError(sentence(refused, url))
        options = {"mode": "ro", "immutable": "1"}
        self.connector = Connector(url._replace(database=str(self._path), options=options))

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """Yield a transaction for reading; raises StoreError if there is a log with changes."""
        self.require_no_log()
        # A connection to an immutable file does not notice later changes, so none is reused.
        with closing(Transactions(self.connector)) as transactions, transactions.read() as reading:
            yield reading

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


def readable(url: Url) -> Connector:
    """Return what opens a record for reading; nothing is created, changed or upgraded.

    Raises StoreError for a SQLite file that cannot be written and has a log with changes, and
    Refused for one that cannot be read.
    """
    connector = Connector(url, busy_timeout_s=database_errors.SOON_S)
    if url.kind != "sqlite":
        return connector
    try:
        with closing(Transactions(connector)) as transactions, transactions.read() as transaction:
            transaction.read("SELECT count(*) AS number FROM sqlite_master")
    except Refused as refused:
        if not is_only_unwritable(url, refused):
            raise
        unwritable = Unwritable(url, refused)
        unwritable.require_no_log()
        return unwritable.connector
    return connector


def is_only_unwritable(url: Url, refused: BaseException) -> bool:
    """Return whether the file exists and could not be opened only because it cannot be written."""
    found = re.search(_NO_WRITING, sentence(refused, url))
    return found is not None and Path(url.database).is_file()
