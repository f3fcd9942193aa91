# SPDX-License-Identifier: Apache-2.0
"""A new, empty store for each test, in a file that is removed when the store is closed."""

from __future__ import annotations

import os
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from applier.storage.sql_store import SqlStore

#: A folder in memory, so that commits do not wait for a disk; None is the default of tempfile.
FOLDER = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - names are random


class TemporaryStore(SqlStore):
    """A store whose record is a copy of an empty SQLite file, ``path``.

    The empty file is made once per process. Closing a store removes its file. Use it with
    :func:`contextlib.closing`; in a property test, a new one for each example.
    """

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="actionplan-", dir=FOLDER)
        self.path = Path(self._folder.name, "plans.db")
        self.path.write_bytes(empty_record())
        super().__init__(f"sqlite:///{self.path}")

    def close(self) -> None:
        super().close()
        self._folder.cleanup()


@cache
def empty_record() -> bytes:
    """Return the content of a SQLite file that has the tables and no rows."""
    with TemporaryDirectory(prefix="actionplan-", dir=FOLDER) as folder:
        path = Path(folder, "plans.db")
        with closing(SqlStore(f"sqlite:///{path}")):
            pass
        return path.read_bytes()
