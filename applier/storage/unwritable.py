# SPDX-License-Identifier: Apache-2.0
"""A SQLite file where nothing can be written, on a full disk or in a closed folder: read as it is.

To read a file that has a write-ahead log, SQLite writes beside it what readers and writers share.
Where it cannot, it reads only what it is told that nobody changes. That is true of a file without
a log: whoever wrote last has closed it, and who writes next begins one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa

from applier.errors import StoreError
from applier.storage import schema_version
from applier.storage.connection import make_engine
from applier.storage.refusals import sentence
from applier.storage.transactions import Transaction, Transactions

_NO_WRITING = r"disk I/O error|disk is full|unable to open|readonly"


class Unwritable:
    """Reads the file of a URL; ``refused`` is what opening it for writing ended with."""

    def __init__(self, url: sa.URL, refused: BaseException) -> None:
        self._url, self._path = url, Path(url.database or "").absolute()
        self.refusal = StoreError(sentence(refused, url))
        options = {"uri": "true", "mode": "ro", "immutable": "1"}
        self._engine = make_engine(url.set(database=self._path.as_uri(), query=options))

    def require_version(self) -> None:
        """Raise the refusal if the tables are not of this release: they cannot be upgraded."""
        self._require_no_log()
        with self._engine.begin() as database:
            if schema_version.version(database, self._url) != schema_version.REVISIONS[-1]:
                raise self.refusal
        self._engine.dispose()

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """Begin a transaction; raises StoreError if the file has a log."""
        self._require_no_log()
        transactions = Transactions(self._engine)
        try:
            with transactions.begin("BEGIN") as transaction:
                yield transaction
        finally:
            # A connection that is kept would never look at the file again.
            transactions.close()
            self._engine.dispose()

    def _require_no_log(self) -> None:
        for log in (Path(f"{self._path}-wal"), Path(f"{self._path}-journal")):
            if log.exists() and log.stat().st_size:
                raise StoreError(
                    f"{self.refusal} (what was written last is in {log.name}, which SQLite reads "
                    "only where it can write)"
                )


def fits(url: sa.URL, refused: BaseException) -> bool:
    """Say whether a file is there, and was refused only because opening it writes beside it."""
    told = re.search(_NO_WRITING, sentence(refused, url))
    return told is not None and Path(url.database or "").is_file()
