# SPDX-License-Identifier: Apache-2.0
"""Copies a record in a SQLite file while other processes write to it."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from uuid import uuid4

from applier.errors import DamagedRecord, StoreError
from applier.storage.connection import Connector, Url, parse, shown
from applier.storage.record_check import require_file
from applier.storage.refusals import hinted, translate_errors
from applier.storage.unwritable import readable
from applier.whole_files import sync_folder

#: How a record on a server is copied, by kind of database.
_PROGRAMS = {
    "postgresql": "pg_dump --format=custom --file=FILE",
    "mysql": "mariadb-dump --single-transaction --result-file=FILE",
}


def backup(connection: str, target: str) -> None:
    """Write a copy of the record to a new file that only its owner may read.

    The copy is a snapshot: it has all changes up to one time. Writers do not wait for it. Raises
    StoreError, also if the file exists, and DamagedRecord if SQLite finds damage in the copy; then
    no new file is left behind.
    """
    url, path = parse(connection), Path(target)
    if program := _PROGRAMS.get(url.kind):
        raise StoreError(
            f"{shown(url)}: a record on a server is copied by a program of the server: "
            f"{program} {url.database}"
        )
    require_file(url)
    if os.path.lexists(path):
        raise StoreError(f"{target} exists already: name a new file")
    fresh = path.with_name(f".new-{uuid4().hex}")
    try:
        fresh.touch(mode=0o600, exist_ok=False)
        with translate_errors(url):
            _copy(readable(url), fresh, target)
            _require_sound(fresh, url)
        _rename(fresh, path)
    except OSError as reason:
        raise _not_copied(target, reason.strerror or str(reason)) from reason
    finally:
        for name in (fresh, f"{fresh}-journal"):
            with suppress(OSError):
                os.unlink(name)


def _rename(fresh: Path, path: Path) -> None:
    """Give a file its name on the disk; raises OSError, also if there is a file of that name."""
    # A rename replaces a file that has been made meanwhile: so the name is taken first. A link
    # would do, but file systems of USB sticks have none.
    path.touch(mode=0o600, exist_ok=False)
    try:
        os.replace(fresh, path)
    except OSError:
        os.unlink(path)
        raise
    sync_folder(path.parent)


def _copy(connector: Connector, fresh: Path, target: str) -> None:
    with closing(connector.open()) as source, closing(sqlite3.connect(fresh)) as copy:
        try:
            source.backup(copy)
            # Without a write-ahead log, the copy is one file.
            copy.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.OperationalError as reason:
            raise _not_copied(target, str(reason)) from reason
    handle = os.open(fresh, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _require_sound(copied: Path, url: Url) -> None:
    """Raise DamagedRecord if SQLite finds damage in a copy, which has the pages of the record."""
    with closing(sqlite3.connect(copied)) as copy:
        try:
            [(found,)] = copy.execute("PRAGMA integrity_check(1)")
        except sqlite3.DatabaseError as reason:
            found = str(reason)
    if found != "ok":
        text = f"{' '.join(found.split())}; no copy was made; actionplan db check says where"
        raise DamagedRecord(shown(url), [text])


def _not_copied(target: str, why: str) -> StoreError:
    return StoreError(f"{target} cannot be written, no copy was made: {hinted(why)}")
