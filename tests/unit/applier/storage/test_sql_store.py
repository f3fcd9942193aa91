# SPDX-License-Identifier: Apache-2.0
"""The database store beyond the contract: files, locks, cost, and things that break."""

from __future__ import annotations

import os
import queue
import resource
import shutil
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import pytest
from sample_plans import new_plan
from store_checks.running_plans import ME, NOW, claimed, starts, succeeds

from applier.errors import StoreError
from applier.storage import schema_version
from applier.storage.connection import parse
from applier.storage.sql_store import SqlStore
from applier.storage.statements import Compiled
from applier.store import Service
from planner.plan.states import PlanState


@pytest.fixture
def store(path):
    with closing(SqlStore(f"sqlite:///{path}")) as store:
        yield store


class TestFile:
    def test_it_is_private_and_so_is_the_folder_made_for_it(self, tmp_path):
        path = tmp_path / "state" / "plans.db"
        with closing(SqlStore(f"sqlite:///{path}")) as store:
            store.save_plan(new_plan("a"))
            made = [path.parent, *path.parent.iterdir()]
            modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in made}
        assert modes == {
            "state": 0o700,
            **{f"plans.db{end}": 0o600 for end in ("", "-wal", "-shm")},
        }
        assert sorted(p.name for p in path.parent.iterdir()) == ["plans.db"]

    def test_every_connection_is_set_up(self, path):
        with closing(SqlStore(f"sqlite:///{path}", busy_timeout_s=1.5)) as store:
            database = connection_of(store)
            asked = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout", "page_size")
            found = [database.execute(f"PRAGMA {a}").fetchone()[0] for a in asked]
            assert found == ["wal", 2, 1, 1500, 2048]

    @pytest.mark.slow
    def test_opening_it_again_does_not_drop_the_locks_of_this_process(self, path, store):
        # POSIX: to close any handle of a file drops all locks that the process has on it. Another
        # process would then take itself for the last, and remove the log that this one writes to.
        SqlStore(f"sqlite:///{path}").close()
        assert plans_seen_by_another_process(path) == "0"
        store.save_plan(new_plan("a"))
        assert plans_seen_by_another_process(path) == "1"

    def test_who_opens_it_waits_for_who_is_opening_it(self, path, monkeypatch):
        # To turn on the write-ahead log, SQLite needs the file for itself and does not wait.
        url, waits, never = f"sqlite:///{path}", queue.SimpleQueue(), threading.Event()
        waiting = SimpleNamespace(wait=lambda seconds: (waits.put(seconds), never.wait(seconds)))
        monkeypatch.setattr(schema_version, "_NEVER", waiting)
        with ThreadPoolExecutor(1) as other:
            with schema_version.alone(parse(url)):
                opened = other.submit(SqlStore, url)
                assert waits.get(timeout=120) > 0
                assert not path.exists()
                assert not opened.done()
            opened.result(timeout=120).close()

    @pytest.mark.parametrize(
        ("prepare", "said"),
        [
            (lambda path: path.write_bytes(b"text" * 1000), "not a database"),
            (lambda path: path.mkdir(), "check the rights"),
            (lambda path: path.parent.rmdir() or path.parent.touch(), "cannot use the folder"),
        ],
    )
    def test_one_that_cannot_be_used_is_said_in_one_sentence(self, tmp_path, prepare, said):
        path = tmp_path / "state" / "plans.db"
        path.parent.mkdir()
        prepare(path)
        with pytest.raises(StoreError, match=said) as refusal:
            SqlStore(f"sqlite:///{path}")
        assert str(path) in str(refusal.value)
        assert "\n" not in str(refusal.value)

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
    def test_a_folder_that_cannot_be_written_is_named(self, tmp_path):
        tmp_path.chmod(0o500)
        with pytest.raises(StoreError, match="Permission denied"):
            SqlStore(f"sqlite:///{tmp_path}/plans.db")

    @pytest.mark.parametrize("step", ["parameters", "rows"])
    def test_a_ctrl_c_in_the_middle_stays_one(self, store, step, monkeypatch):
        plan, other = new_plan("a"), new_plan("b", "c")
        store.save_plan(plan)

        def interrupt(*_):
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(Compiled, step, interrupt)
            with pytest.raises(KeyboardInterrupt):
                store.load_plan(plan.uuid)
            with pytest.raises(KeyboardInterrupt):
                store.move_plan(plan.uuid, PlanState.PENDING, now=NOW)
        assert store.load_plan(plan.uuid) == plan
        store.save_plan(other)
        assert store.load_plan(other.uuid) == other

    def test_an_action_that_is_no_json_leaves_nothing(self, store):
        plan = new_plan("a", "b")
        wrong = replace(plan.actions[1], input_parameters={"what": object()})
        with pytest.raises(TypeError):
            store.save_plan(replace(plan, actions=(plan.actions[0], wrong)))
        assert store.list_plans() == []
        store.save_plan(plan)


@contextmanager
def full_disk(room: int = 4096):
    """Let no file of this process grow beyond so many bytes, as on a disk that is nearly full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class TestNothingCanBeWritten:
    @pytest.mark.parametrize("room", [0, 2048, 4096, 8192, 16384, 32768, 65536])
    def test_a_new_record_is_refused_in_a_sentence_that_helps(self, path, room):
        url = f"sqlite:///{path}"
        for _ in range(2):
            for make in (SqlStore, schema_version.upgrade):
                with full_disk(room), pytest.raises(StoreError, match="; free some space"):
                    make(url)
        SqlStore(url).close()

    def test_a_record_is_read_and_written_again_once_there_is_room(self, path):
        url, plan = f"sqlite:///{path}", new_plan("a")
        with closing(SqlStore(url)) as store:
            store.save_plan(plan)
        with full_disk():
            store = SqlStore(url)
            assert [p.uuid for p in store.list_plans()] == [plan.uuid]
            with pytest.raises(StoreError, match="free some space"):
                store.save_plan(new_plan("b"))
            assert store.load_plan(plan.uuid) == plan
        with closing(store):
            store.save_plan(new_plan("b"))
            assert len(store.list_plans()) == 2

    def test_what_others_write_meanwhile_is_seen(self, path):
        url = f"sqlite:///{path}"
        SqlStore(url).close()
        with full_disk():
            store = SqlStore(url)
            assert store.list_plans() == []
        with closing(store), closing(SqlStore(url)) as other:
            other.save_plan(new_plan("a"))
            with full_disk():
                assert len(store.list_plans()) == 1

    def test_a_log_that_nobody_can_read_there_is_named(self, path, store):
        store.save_plan(new_plan("a"))
        copy = path.with_name("copy.db")
        for end in ("", "-wal"):
            shutil.copy(f"{path}{end}", f"{copy}{end}")
        with full_disk(), pytest.raises(StoreError, match=r"space .*changes are in copy\.db-wal"):
            SqlStore(f"sqlite:///{copy}")


def plans_seen_by_another_process(path):
    script = (
        "import sqlite3, sys\n"
        "database = sqlite3.connect(sys.argv[1])\n"
        "print(*database.execute('SELECT count(*) FROM actionplan_plan').fetchone())\n"
        "database.close()\n"
    )
    command = [sys.executable, "-c", script, str(path)]
    ran = subprocess.run(command, check=True, capture_output=True, text=True)
    return ran.stdout.strip()


@contextmanager
def traced(store):
    """Note the statements of a store that only one thread uses."""
    seen = []
    database = connection_of(store)
    database.set_trace_callback(seen.append)
    yield seen
    database.set_trace_callback(None)


def connection_of(store):
    """Return the connection that a store keeps, and begins its next transaction on."""
    with store._database.read() as transaction:
        return transaction._connection.driver


@pytest.mark.slow
class TestCost:
    def test_a_commit_is_four_statements_that_are_already_compiled(self, store, monkeypatch):
        plan = new_plan(*"abcdefghijkl")
        claim = claimed(store, plan)
        first, then, last = plan.actions[:4], plan.actions[4:8], plan.actions[8:]
        for ends, begins in (((), first), (first, then)):
            batch = [*map(succeeds, ends), *map(starts, begins)]
            store.commit(plan.uuid, claim, batch, now=NOW)
        batch = [*map(succeeds, then), *map(starts, last)]
        monkeypatch.setattr(Compiled, "__init__", None)
        with traced(store) as seen:
            store.commit(plan.uuid, claim, batch, now=NOW)
        assert [" ".join(statement.split()[:2]) for statement in seen] == [
            "BEGIN IMMEDIATE",
            "UPDATE actionplan_plan",
            "UPDATE actionplan_action_state",
            "INSERT INTO",
            "UPDATE actionplan_action_state",
            "COMMIT",
        ]

    def test_every_method_that_writes_asks_for_the_right_to_write_first(self, store):
        plan, other = new_plan("a", "b"), new_plan("c")
        with traced(store) as seen:
            store.save_plan(other)
            store.skip_action(other.uuid, other.actions[0].uuid, now=NOW, message="")
            store.move_plan(other.uuid, PlanState.CANCELLED, now=NOW)
            store.save_plan(plan)
            store.move_plan(plan.uuid, PlanState.PENDING, now=NOW)
            store.load_plan(plan.uuid)
            claim = store.claim_plan(plan.uuid, ME, now=NOW)
            store.commit(plan.uuid, claim, [starts(plan.actions[0])], now=NOW)
            store.beat(plan.uuid, claim, now=NOW)
            store.reserve(plan.uuid, claim, ["node:a"], now=NOW)
            store.move_claimed(plan.uuid, claim, PlanState.FAILED, now=NOW)
            store.resume_plan(plan.uuid, [], now=NOW)
            here = {"host": "h", "pid": 1, "user": "u", "started_at": NOW, "heartbeat_at": NOW}
            store.report_service(Service(uuid="s", cloud="west", **here))
            store.remove_service("s")
        began = [(b, a.split()[0]) for b, a in pairwise(seen) if b.startswith("BEGIN")]
        reads = [first for begin, first in began if begin == "BEGIN"]
        writes = [first for begin, first in began if begin == "BEGIN IMMEDIATE"]
        assert set(reads) == {"SELECT"}
        # The row of the plan comes first, so that two writers of one plan wait for each other.
        assert writes == ["INSERT", *["UPDATE"] * 2, "INSERT", *["UPDATE"] * 7, *["DELETE"] * 2]


class TestConflicts:
    @pytest.mark.server
    def test_a_nul_that_a_server_refuses_is_said(self, postgresql_url):
        schema_version.upgrade(postgresql_url)
        with (
            closing(SqlStore(postgresql_url)) as store,
            pytest.raises(StoreError, match="NUL"),
        ):
            store.save_plan(new_plan("a\0b"))

    @pytest.mark.server
    def test_a_value_that_does_not_fit_is_said(self, mysql_url):
        schema_version.upgrade(mysql_url)
        with (
            closing(SqlStore(mysql_url)) as store,
            pytest.raises(StoreError, match="column 'name'"),
        ):
            store.save_plan(new_plan("a", name="n" * 256))
