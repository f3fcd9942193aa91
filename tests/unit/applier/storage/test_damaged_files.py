# SPDX-License-Identifier: Apache-2.0
"""SQLite files with damaged pages and values; copies of files, also in use, are whole or none."""

from __future__ import annotations

import errno
import os
import resource
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from datetime import timedelta

import pytest
from sample_plans import MADE, new_plan
from store_checks.running_plans import NOW

from applier.contracts import HistoryEntry
from applier.errors import ApplierError, DamagedRecord, StoreError
from applier.storage import check_and_backup, schema_version
from applier.storage.check_and_backup import backup, check
from applier.storage.sql_store import SqlStore
from applier.store.runs import Sample
from planner.plan.states import PlanState

PAGE = 4096


def change(path, column, value):
    """Change a column of the second plan."""
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"UPDATE actionplan_plan SET {column} = {value} WHERE number = 2")
        database.commit()


DEEP = '{"a": ' + "[" * 1200 + "]" * 1200 + "}"


def test_durations_that_are_damaged_hinder_no_other_plan(path, url):
    with closing(SqlStore(url)) as store:
        plan = new_plan("a", "b")
        store.save_plan(plan)
        entry = HistoryEntry(at=MADE, who="ann", verb="import")
        store.import_durations({"nop": [Sample(1.0), Sample(2.0), Sample(3.0)]}, history=entry)
        with closing(sqlite3.connect(path)) as database:
            for value in ("'x'", "-1"):
                database.execute(
                    f"UPDATE actionplan_duration SET seconds = {value} WHERE number = "
                    "(SELECT max(number) FROM actionplan_duration WHERE seconds BETWEEN 0 AND 9)"
                )
            for number, ended in enumerate(["2026-01-01 00:00:09.000000", "x", b"\xff"]):
                database.execute(
                    "INSERT INTO actionplan_attempt (plan, action, number, started_at, ended_at,"
                    " state, measures, message, output) VALUES (?, ?, ?,"
                    " '2026-01-01 00:00:00.000000', ?, 'SUCCEEDED', 'nop', x'ff', x'ff')",
                    [plan.uuid, plan.actions[0].uuid, number, ended],
                )
            database.execute("UPDATE actionplan_action SET input_parameters = ?", [DEEP])
            database.commit()
        assert [sample.seconds for sample in store.durations(["nop"])["nop"]] == [9.0, 1.0]
        said = " ".join(check(url).problems)
        for wrong in ("seconds 'x'", "seconds -1.0", "ended_at 'x'", "message b", "output b"):
            assert wrong in said
        with pytest.raises(DamagedRecord):
            store.all_attempts(plan.uuid, most=9)


def test_without_its_row_the_table_of_turns_is_damaged(path, url):
    plan = new_plan("a")
    with closing(SqlStore(url)) as store:
        store.save_plan(plan)
        with closing(sqlite3.connect(path)) as database:
            database.execute("DELETE FROM actionplan_turn")
            database.commit()
        with pytest.raises(DamagedRecord, match="actionplan_turn has no row"):
            store.move_plan(plan.uuid, PlanState.PENDING, now=NOW)


def test_beside_a_damaged_plan_those_of_a_time_are_in_the_order_in_which_they_were_made(path, url):
    late = new_plan("a", created_at=MADE + timedelta(days=2))
    damaged, early, later = (new_plan("b", created_at=MADE + k * timedelta(1)) for k in (1, 0, 1))
    with closing(SqlStore(url)) as store:
        for plan in (late, damaged, early, later):
            store.save_plan(plan)
        change(path, "created_at", "'x'")
        listed = [p.uuid for p in store.list_plans(since=MADE)]
        assert listed == [late.uuid, later.uuid, early.uuid]
        assert [p.uuid for p in store.list_plans(since=MADE, limit=2)] == listed[:2]
        assert [p.uuid for p in store.list_plans(since=MADE, after=late.uuid)] == listed[1:]
        rest = [p.uuid for p in store.list_plans(after=later.uuid)]
        assert rest == [early.uuid, damaged.uuid, late.uuid]


def refusal(call, url):
    """Return the sentence with which a call ends, or an empty text."""
    try:
        call(url)
    except ApplierError as reason:
        return str(reason)
    return ""


@pytest.mark.slow
def test_every_damaged_page_is_found_and_ends_in_a_sentence(path, url):
    with closing(SqlStore(url)) as store:
        for _ in range(3):
            store.save_plan(new_plan(*map(str, range(40))))
    some_are_listed, whole = [], path.read_bytes()

    def read(url):
        with closing(SqlStore(url)) as store:
            listed = store.list_plans()
            some_are_listed.append({plan.damage is None for plan in listed} == {True, False})
            for plan in listed:
                store.load_plan(plan.uuid)

    def must_be_sound(url):
        found = check(url)
        if found.problems:
            raise DamagedRecord("it", found.problems)

    for first in range(PAGE, len(whole), PAGE):
        path.write_bytes(whole[:first] + b"\x5a" * PAGE + whole[first + PAGE :])
        assert refusal(must_be_sound, url)
        said = refusal(read, url)
        assert not said or "malformed" in said or "damaged" in said
    assert any(some_are_listed)


WRITER = """
import sys
from applier.storage.sql_store import SqlStore
from planner.plan.model import Action, ActionPlan
store, number = SqlStore(sys.argv[1]), 0
while True:
    actions = [Action(uuid=f"{number}-{i}", action_type="nop") for i in range(50)]
    store.save_plan(ActionPlan(uuid=str(number), planner="weight", actions=tuple(actions)))
    print("saved", flush=True)
    number += 1
"""


class TestBackup:
    @pytest.mark.slow
    @pytest.mark.long
    def test_copies_made_while_another_process_writes_are_whole(self, tmp_path, url):
        SqlStore(url).close()
        sizes = []
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, url], stdout=subprocess.PIPE, text=True
        ) as writer:
            try:
                for number in range(3):
                    for _ in range(3):
                        assert writer.stdout.readline() == "saved\n"
                    copy = tmp_path / f"copy-{number}"
                    backup(url, str(copy))
                    found = check(f"sqlite:///{copy}")
                    assert found.problems == []
                    sizes.append(found.plans)
            finally:
                writer.kill()
        assert all(number >= 3 * (i + 1) for i, number in enumerate(sizes))
        assert sizes == sorted(sizes)

    def test_the_copy_is_private_one_file_and_a_record(self, tmp_path, url):
        plan, copy = new_plan("a"), tmp_path / "copies" / "one"
        copy.parent.mkdir()
        with closing(SqlStore(url)) as store:
            store.save_plan(plan)
            # The changes are in the write-ahead log still.
            backup(url, str(copy))
        assert [p.name for p in copy.parent.iterdir()] == ["one"]
        assert stat.S_IMODE(copy.stat().st_mode) == 0o600
        with closing(SqlStore(f"sqlite:///{copy}")) as store:
            assert store.load_plan(plan.uuid) == plan
            store.move_plan(plan.uuid, PlanState.PENDING, now=NOW)

    @pytest.mark.parametrize("there", ["file", "folder", "link"])
    def test_nothing_is_overwritten(self, tmp_path, url, there):
        SqlStore(url).close()
        (tmp_path / "file").write_text("kept")
        (tmp_path / "folder").mkdir()
        (tmp_path / "link").symlink_to("nowhere")
        before = sorted(tmp_path.iterdir())
        with pytest.raises(StoreError, match=f"{there} exists already: name a new file"):
            backup(url, str(tmp_path / there))
        assert sorted(tmp_path.iterdir()) == before
        assert (tmp_path / "file").read_text() == "kept"

    def test_what_has_no_record_is_refused_and_stays_without(self, tmp_path, url):
        with pytest.raises(StoreError, match="there is no record yet"):
            backup(url, str(tmp_path / "copy"))
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        ("server", "program"), [("postgresql", "pg_dump"), ("mariadb", "mariadb-dump")]
    )
    def test_on_a_server_its_own_program_is_named(self, tmp_path, server, program):
        with pytest.raises(StoreError, match=rf"{program} .* plans$") as caught:
            backup(f"{server}://me:password@db.example/plans", str(tmp_path / "copy"))
        assert "me:***@db.example" in str(caught.value)


def test_a_record_of_another_version_is_not_changed_by_a_check(path, url):
    schema_version.upgrade(url)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE actionplan_alembic_version SET version_num = '0017'")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="have version 0017"):
        check(url)
    assert path.read_bytes() == before


# A copy that does not fit on the disk is no copy; what SQLite finds wrong is told by the check.


@pytest.fixture
def record(tmp_path):
    record = tmp_path / "plans.db"
    with closing(SqlStore(f"sqlite:///{record}")) as store:
        store.save_plan(new_plan("a"))
    return record


def test_a_copy_that_does_not_fit_on_the_disk_is_refused_and_leaves_nothing(record):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, limits[1]))
    try:
        with pytest.raises(StoreError, match=r"no copy was made: .*; free some space"):
            backup(f"sqlite:///{record}", str(record.with_name("copy.db")))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert all(file.name.startswith(record.name) for file in record.parent.iterdir())


def test_a_copy_needs_no_links_which_a_usb_stick_does_not_have(record, monkeypatch):
    def refused(*_):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    copy = record.with_name("copy.db")
    backup(f"sqlite:///{record}", str(copy))
    assert check(f"sqlite:///{copy}").problems == []
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600


def test_a_file_that_is_made_while_the_record_is_copied_stays(record, monkeypatch):
    copy, require_sound = record.with_name("copy.db"), check_and_backup._require_sound

    def checked(*given):
        require_sound(*given)
        copy.write_text("of another")

    monkeypatch.setattr(check_and_backup, "_require_sound", checked)
    with pytest.raises(StoreError, match=r"copy\.db.*File exists"):
        backup(f"sqlite:///{record}", str(copy))
    assert copy.read_text() == "of another"
    assert {file.name[:7] for file in record.parent.iterdir()} == {"copy.db", "plans.d"}


def test_pages_that_belong_to_nothing_are_told(record):
    assert check(f"sqlite:///{record}").problems == []
    with closing(sqlite3.connect(record)) as database:
        database.execute("PRAGMA writable_schema = ON")
        database.execute("DELETE FROM sqlite_master WHERE name = 'ix_actionplan_plan_state'")
        database.commit()
    found = [it for it in check(f"sqlite:///{record}").problems if it.startswith("integrity: ")]
    assert len(found) == 1
    assert "never used" in found[0]


def spoil(record, page):
    """Overwrite a page of the file, whose log is empty."""
    with record.open("r+b") as file:
        file.seek(page * 2048)
        file.write(b"\x5a" * 2048)


def test_of_a_file_with_a_bad_page_no_copy_is_made(record):
    spoil(record, 3)
    with pytest.raises(DamagedRecord, match="no copy was made"):
        backup(f"sqlite:///{record}", str(record.with_name("copy.db")))
    assert all(file.name.startswith(record.name) for file in record.parent.iterdir())


@pytest.mark.parametrize("use", [check, lambda url: backup(url, f"{url[10:]}.copy")])
def test_an_empty_file_is_no_record(record, use):
    record.write_bytes(b"")
    with pytest.raises(StoreError, match="empty"):
        use(f"sqlite:///{record}")
    assert record.read_bytes() == b""


def changed(record, *statements):
    """Run statements, and return the problems that the check finds."""
    with closing(sqlite3.connect(record)) as database, database:
        for statement in statements:
            database.execute(statement)
    return check(f"sqlite:///{record}").problems


def test_an_index_that_is_missing_is_named(record):
    name = "ix_actionplan_plan_state"
    told = f"the index {name} of actionplan_plan is missing"
    assert changed(record, f"DROP INDEX {name}") == [told]


@pytest.mark.parametrize(
    ("value", "said"), [("'0001'", "0001 and 00"), ("x'00'", r"00\w+ and b'\\x00'")]
)
def test_two_versions_are_refused_by_all(record, value, said):
    table = "actionplan_alembic_version"
    with pytest.raises(DamagedRecord, match=f"its tables have 2 versions, {said}") as caught:
        changed(record, f"INSERT INTO {table} VALUES ({value})")
    with pytest.raises(DamagedRecord) as opened:
        SqlStore(f"sqlite:///{record}")
    assert str(opened.value) == str(caught.value)
