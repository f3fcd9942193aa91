# SPDX-License-Identifier: Apache-2.0
"""A record that a test damages again and again, on any database: emptied, and filled as before."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from scratch_database import run
from temporary_store import empty_record

from applier.storage import schema_version
from applier.storage.connection import parse
from applier.storage.schema import TABLES
from applier.storage.sql_store import SqlStore


def empty(url: str) -> None:
    """Remove all rows; what was damaged is sound again."""
    known = parse(url)
    if known.kind == "sqlite":
        Path(known.database).write_bytes(empty_record())
        return
    schema_version.upgrade(url)
    turn = "INSERT INTO actionplan_turn (number) VALUES (0)"
    run(url, *(f"DELETE FROM {name}" for name in TABLES), turn)


def refill(url: str, fill: Callable[[SqlStore], None]) -> None:
    """Leave what ``fill`` writes, and nothing else; a file is copied the second time."""
    file = Path(parse(url).database)
    filled = file.with_suffix(".filled")
    if filled.exists():
        shutil.copy(filled, file)
        return
    empty(url)
    with closing(SqlStore(url)) as store:
        fill(store)
    if parse(url).kind == "sqlite":
        shutil.copy(file, filled)
