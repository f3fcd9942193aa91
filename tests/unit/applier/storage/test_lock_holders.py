# SPDX-License-Identifier: Apache-2.0
"""Who keeps a record locked: found in the kernel's table, and told to those that wait.

The test's own locks are looked at as another process would: with the number of another process.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from sample_plans import new_plan

from applier.cli import program
from applier.errors import StoreError
from applier.storage import database_errors, schema_version
from applier.storage.connection import parse
from applier.storage.database_errors import Holder, folder_holder, lock_holder
from applier.storage.sql_store import SqlStore

ME = os.getpid()

pytestmark = pytest.mark.skipif(
    not Path("/proc/locks").exists(), reason="only Linux has a table of locks"
)


@pytest.fixture
def as_another(monkeypatch):
    """Return a function that calls another as a process of another number would."""

    def call(what, *given):
        with monkeypatch.context() as patched:
            patched.setattr(os, "getpid", lambda: ME + 1)
            return what(*given)

    return call


@pytest.fixture
def locked(tmp_path):
    """A folder that this process has locked."""
    handle = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    yield tmp_path
    os.close(handle)


def test_the_holder_of_a_folder_is_named_with_its_command(locked, as_another):
    holder = as_another(folder_holder, locked)
    assert (holder.pid, holder.stopped) == (ME, False)
    first = Path(f"/proc/{ME}/cmdline").read_text(encoding="utf-8").partition("\0")[0]
    # The command may be in quotes, and is shortened.
    assert first[:20] in holder.command


def test_nobody_holds_a_folder_that_is_not_locked_or_not_there(locked, as_another):
    (locked / "other").mkdir()
    assert as_another(folder_holder, locked / "other") is None
    assert as_another(folder_holder, locked / "missing") is None


def test_a_process_does_not_wait_for_itself(locked):
    assert folder_holder(locked) is None


def test_only_who_writes_to_a_record_keeps_others_from_it(tmp_path, as_another):
    url = parse(f"sqlite:///{tmp_path}/plans.db")
    with closing(sqlite3.connect(tmp_path / "plans.db", isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE t (n)")
        database.execute("BEGIN")
        database.execute("SELECT * FROM t")
        assert as_another(lock_holder, url) is None, "it only reads"
        database.execute("COMMIT")
        database.execute("BEGIN IMMEDIATE")
        assert as_another(lock_holder, url).pid == ME


def test_a_record_that_is_locked_as_a_whole_has_a_holder_as_well(tmp_path, as_another):
    path = tmp_path / "plans.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("BEGIN EXCLUSIVE")
        assert as_another(lock_holder, parse(f"sqlite:///{path}")).pid == ME


@pytest.mark.parametrize("pid", [0, -1])
def test_a_process_outside_of_the_container_is_not_known(tmp_path, monkeypatch, pid):
    """The kernel gives such a process no number here."""
    monkeypatch.setattr(database_errors, "_write_locks", lambda _inode: [(pid, 0, float("inf"))])
    assert folder_holder(tmp_path) is None


def test_only_a_stopped_process_has_to_be_continued():
    assert str(Holder(7, "sleep 9", False)) == "process 7 (sleep 9) holds the lock"
    assert "kill -CONT 7" in str(Holder(7, "sleep 9", True))


class TestWhoWaits:
    """A living process is waited for: after a few seconds that is said."""

    @pytest.fixture(autouse=True)
    def soon(self, monkeypatch):
        monkeypatch.setattr(database_errors, "SOON_S", 0.02)
        monkeypatch.setattr(schema_version, "LONGEST_S", 0.2)

    def test_for_the_folder_of_the_record(self, tmp_path, monkeypatch, caplog):
        clock = SimpleNamespace(monotonic=map((0.01).__mul__, itertools.count()).__next__)
        monkeypatch.setattr(schema_version, "time", clock)
        url = f"sqlite:///{tmp_path}/plans.db"
        with schema_version.alone(parse(url)), pytest.raises(StoreError, match="is locked; "):
            SqlStore(url)
        [told] = caplog.messages
        assert told.startswith(f"{url}: the folder {tmp_path} is locked; ")

    def test_for_a_writer(self, tmp_path, caplog):
        url, plan = f"sqlite:///{tmp_path}/plans.db", new_plan("a")
        path = tmp_path / "plans.db"
        with closing(SqlStore(url, busy_timeout_s=0.3)) as other:
            with closing(sqlite3.connect(path, isolation_level=None)) as one:
                one.execute("BEGIN IMMEDIATE")
                with pytest.raises(StoreError, match="database is locked"):
                    other.save_plan(plan)
                assert other.list_plans() == []
            [told] = caplog.messages
            assert told.startswith(f"{url}: database is locked; another process")
            other.save_plan(plan)

    def test_the_command_line_shows_the_log_of_waits(self):
        assert database_errors.LOG.name == program.WAITS
