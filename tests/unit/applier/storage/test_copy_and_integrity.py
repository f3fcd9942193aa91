# SPDX-License-Identifier: Apache-2.0
"""A copy that does not fit on the disk is no copy; what SQLite finds wrong is told by the check."""

from __future__ import annotations

import errno
import os
import resource
import sqlite3
import stat
from contextlib import closing

import pytest

from applier.errors import DamagedRecord, StoreError
from applier.storage import backup as module
from applier.storage.backup import backup
from applier.storage.record_check import check
from applier.storage.sql import SqlStore
from applier.testing.sample_plans import new_plan


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "plans.db"
    with closing(SqlStore(f"sqlite:///{path}")) as store:
        store.save_plan(new_plan("a"))
    return path


def test_a_copy_that_does_not_fit_on_the_disk_is_refused_and_leaves_nothing(path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, limits[1]))
    try:
        with pytest.raises(StoreError, match=r"no copy was made: .*; free some space"):
            backup(f"sqlite:///{path}", str(path.with_name("copy.db")))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert all(file.name.startswith(path.name) for file in path.parent.iterdir())


def test_a_copy_needs_no_links_which_a_usb_stick_does_not_have(path, monkeypatch):
    def refused(*_):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    copy = path.with_name("copy.db")
    backup(f"sqlite:///{path}", str(copy))
    assert check(f"sqlite:///{copy}").problems == []
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600


def test_a_file_that_is_made_while_the_record_is_copied_stays(path, monkeypatch):
    copy, require_sound = path.with_name("copy.db"), module._require_sound

    def checked(*given):
        require_sound(*given)
        copy.write_text("of another")

    monkeypatch.setattr(module, "_require_sound", checked)
    with pytest.raises(StoreError, match=r"copy\.db.*File exists"):
        backup(f"sqlite:///{path}", str(copy))
    assert copy.read_text() == "of another"
    assert {file.name[:7] for file in path.parent.iterdir()} == {"copy.db", "plans.d"}


def test_pages_that_belong_to_nothing_are_told(path):
    assert check(f"sqlite:///{path}").problems == []
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA writable_schema = ON")
        database.execute("DELETE FROM sqlite_master WHERE name = 'ix_actionplan_plan_state'")
        database.commit()
    found = [it for it in check(f"sqlite:///{path}").problems if it.startswith("integrity: ")]
    assert len(found) == 1
    assert "never used" in found[0]


def spoil(path, page):
    """Overwrite a page of the file, whose log is empty."""
    with path.open("r+b") as file:
        file.seek(page * 2048)
        file.write(b"\x5a" * 2048)


def test_of_a_file_with_a_bad_page_no_copy_is_made(path):
    spoil(path, 3)
    with pytest.raises(DamagedRecord, match="no copy was made"):
        backup(f"sqlite:///{path}", str(path.with_name("copy.db")))
    assert all(file.name.startswith(path.name) for file in path.parent.iterdir())


@pytest.mark.parametrize("use", [check, lambda url: backup(url, f"{url[10:]}.copy")])
def test_an_empty_file_is_no_record(path, use):
    path.write_bytes(b"")
    with pytest.raises(StoreError, match="empty"):
        use(f"sqlite:///{path}")
    assert path.read_bytes() == b""


def changed(path, *statements):
    """Run statements, and return the problems that the check finds."""
    with closing(sqlite3.connect(path)) as database, database:
        for statement in statements:
            database.execute(statement)
    return check(f"sqlite:///{path}").problems


def test_an_index_that_is_missing_is_named(path):
    name = "ix_actionplan_plan_state"
    told = f"the index {name} of actionplan_plan is missing"
    assert changed(path, f"DROP INDEX {name}") == [told]


@pytest.mark.parametrize(
    ("value", "said"), [("'0001'", "0001 and 00"), ("x'00'", r"00\w+ and b'\\x00'")]
)
def test_two_versions_are_refused_by_all(path, value, said):
    table = "actionplan_alembic_version"
    with pytest.raises(DamagedRecord, match=f"its tables have 2 versions, {said}") as caught:
        changed(path, f"INSERT INTO {table} VALUES ({value})")
    with pytest.raises(DamagedRecord) as opened:
        SqlStore(f"sqlite:///{path}")
    assert str(opened.value) == str(caught.value)
