# SPDX-License-Identifier: Apache-2.0
"""What is in the file of a record besides tables, who holds it open, and when it is replaced."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from sample_plans import new_plan

from applier.errors import StoreError
from applier.storage import schema_version
from applier.storage.check_and_backup import check
from applier.storage.connection import parse
from applier.storage.sql_store import SqlStore
from applier.storage.unwritable import Unwritable


def is_open(path):
    """Return whether this process has the file open, or another file of that record."""
    links = Path("/proc/self/fd").iterdir()
    return any(str(path) in str(link.readlink()) for link in links if link.is_symlink())


def test_the_file_says_whose_it_is_where_the_program_file_looks(path):
    SqlStore(f"sqlite:///{path}").close()
    assert path.read_bytes()[68:72] == b"APln"


def test_an_upgraded_file_is_closed_at_once(path):
    """Closing it later, whenever memory is freed, would drop the locks of a store on it."""
    schema_version.upgrade(f"sqlite:///{path}")
    schema_version.upgrade(f"sqlite:///{path}")
    assert not is_open(path)


def test_a_record_that_was_checked_is_closed(path):
    SqlStore(f"sqlite:///{path}").close()
    assert check(f"sqlite:///{path}").problems == []
    assert not is_open(path)


def test_a_file_that_cannot_be_written_is_open_only_while_it_is_read(path):
    """Its reader does not notice what others write later, so each time it is read anew."""
    schema_version.upgrade(f"sqlite:///{path}")
    unwritable = Unwritable(parse(f"sqlite:///{path}"), OSError("disk I/O error"))
    with unwritable.read():
        assert is_open(path)
    assert not is_open(path)


# A record whose file is removed, replaced or put back while a store uses it.

GONE = "removed or replaced"


def test_nothing_is_written_to_a_file_that_has_lost_its_name(tmp_path: Path) -> None:
    record, aside = tmp_path / "record", tmp_path / "aside"
    with closing(SqlStore(f"sqlite:///{record}")) as store:
        plan = new_plan()
        store.save_plan(plan)
        record.rename(aside)
        for call in (lambda: store.save_plan(new_plan()), lambda: store.load_plan(plan.uuid)):
            with pytest.raises(StoreError, match=GONE):
                call()
        assert not record.exists(), "a new file would be another record"
        aside.rename(record)
        assert store.load_plan(plan.uuid).uuid == plan.uuid, "it was put back"


def test_another_file_of_that_name_is_another_record(tmp_path: Path) -> None:
    record = tmp_path / "record"
    with closing(SqlStore(f"sqlite:///{record}")) as store:
        store.list_plans()
        for end in ("", "-wal", "-shm"):
            Path(f"{record}{end}").unlink(missing_ok=True)
        with closing(SqlStore(f"sqlite:///{record}")) as other:
            other.save_plan(new_plan())
            with pytest.raises(StoreError, match=GONE):
                store.list_plans()
