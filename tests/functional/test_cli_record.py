# SPDX-License-Identifier: Apache-2.0
"""The record as an operator finds it: damaged, read-only; a plan goes to another record."""

from __future__ import annotations

import errno
import json
import logging
import os
import socket
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from api_client import client_of, configured
from command_line import EXAMPLE, PATIENCE_S, CommandLine, Ended
from forked_program import bound_by_rights
from sample_plans import MADE, new_plan
from store_checks.running_plans import NOW, claimed, starts, succeeds

from applier.cli.program import LogFile
from applier.contracts import Approval, HistoryEntry, Request
from applier.storage.sql_store import SqlStore
from applier.store import Service
from applier.store.worker_jobs import Worker
from planner.plan.states import PlanState


@pytest.fixture
def kept(actionplan: CommandLine) -> CommandLine:
    """A home with two plans on record."""
    for _ in range(2):
        actionplan.good("create", str(EXAMPLE))
    return actionplan


def change(record: Path, statement: str) -> None:
    with closing(sqlite3.connect(record, timeout=PATIENCE_S)) as database:
        database.execute(statement)
        database.commit()


def test_a_damaged_plan_is_listed_beside_the_others_and_explained(kept):
    change(kept.record, "UPDATE actionplan_plan SET state = 'BOGUS' WHERE number = 1")
    good, bad = kept.good("list", "-f", "value", "-c", "uuid").split()
    ended = kept("list")
    assert [line.split()[3] for line in ended.out.splitlines()[2:4]] == ["RECOMMENDED", "damaged"]
    wrong = f"plan {bad[:8]} is damaged: state 'BOGUS' is none of RECOMMENDED, PENDING, "
    assert ended.err.startswith(wrong.replace("plan", "Plan", 1))
    assert ended.err.endswith("; see: actionplan db check\n")
    for words in (("show",), ("apply", "--yes"), ("graph",)):
        ended = kept(*words, bad)
        assert (ended.code, ended.err.startswith(f"Refused: {wrong}")) == (1, True)
    kept.good("show", good)


def test_a_damaged_plan_is_removed_once_the_question_is_answered(kept):
    change(kept.record, "UPDATE actionplan_plan SET limits = '{\"x\": 7}' WHERE number = 1")
    good, bad = kept.good("list", "-f", "value", "-c", "uuid").split()
    told = f"plan {bad[:8]} is damaged: its content was changed after it was saved"
    ended = kept("delete", bad, stdin="n\n")
    assert (ended.code, ended.out.startswith(told)) == (1, True)
    assert ended.out.endswith("nobody follows them. [y/N] Not removed.\n")
    assert kept("db", "check").code == 1
    ended = kept("delete", bad, stdin="y\n")
    assert (ended.code, ended.out.splitlines()[-1][-28:]) == (0, " is removed from the record.")
    assert kept.good("list", "-f", "value", "-c", "uuid").split() == [good]
    assert kept("db", "check").code == 0


def test_a_damaged_plan_that_somebody_runs_is_not_removed(kept):
    bad = kept.good("list", "-f", "value", "-c", "uuid").split()[1]
    values = {"state": "ONGOING", "claim": "c", "claimant_host": socket.gethostname()}
    values |= {"claimant_pid": os.getpid(), "claimant_user": "ann", "limits": '{"x": 7}'}
    with closing(sqlite3.connect(kept.record)) as database, database:
        # Six of these intervals without a beat, and it would count as dead.
        for name, value in {**values, "heartbeat_interval_s": 5}.items():
            database.execute(f"UPDATE actionplan_plan SET {name} = ? WHERE number = 1", [value])
    beats = threading.Event()

    def beat() -> None:
        while not beats.wait(0.01):
            change(
                kept.record,
                "UPDATE actionplan_plan SET heartbeat_at = CURRENT_TIMESTAMP || "
                "'.' || (1000000 + abs(random()) % 999999) WHERE number = 1",
            )

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        ended = kept("delete", bad, "--yes")
    finally:
        beats.set()
        thread.join()
    assert (ended.code, f"Run by ann on {socket.gethostname()}" in ended.err) == (1, True)
    assert kept("list", "--state", "ONGOING").code == 0


def test_plans_without_the_version_of_their_tables_are_damaged_and_left_alone(kept):
    change(kept.record, "DELETE FROM actionplan_alembic_version")
    for words in (["list"], ["db", "check"], ["db", "upgrade"]):
        ended = kept(*words)
        assert (ended.code, ended.err.count("\n")) == (1, 1)
        assert ended.err.startswith(f"Refused: sqlite:///{kept.record} is damaged: the version ")
        assert "actionplan db backup" in ended.err


def save_and_wait() -> None:
    """Save a plan, and close the record once nothing more can be read."""
    store = SqlStore(f"sqlite:///{os.environ['XDG_STATE_HOME']}/actionplan/actionplan.sqlite")
    store.save_plan(new_plan("disable-compute-1"))
    print("saved", flush=True)
    sys.stdin.read()
    store.close()


@pytest.mark.parametrize("when", ["after a kill", "while a process writes"])
def test_a_record_that_is_read_only_is_read_and_a_write_is_a_sentence(kept, when):
    reads = [["list"], ["show", "last"], ["action", "show", "last", "disable-compute-1"]]
    reads += [["db", "check"], ["event", "list"], ["db", "backup", "copy"]]
    writes = [["create", str(EXAMPLE)], ["event", "subscription", "remove", "ops"]]
    writes += [["apply", "last", "--yes"]]
    with kept.store() as store:
        store.subscribe("ops", now=datetime.now(UTC))
    folder = kept.record.parent
    with kept.start("--help", stdin=subprocess.PIPE, before=save_and_wait) as writer:
        assert writer.stdout.readline() == "saved\n"
        if when == "after a kill":
            writer.kill()
            writer.wait()
        files = [*folder.iterdir()]
        for path in files:
            path.chmod(0o400)
        folder.chmod(0o500)
        try:
            ended = [kept.copied(*words, before=bound_by_rights) for words in (*reads, *writes)]
        finally:
            folder.chmod(0o700)
            for path in files:
                path.chmod(0o600)
            writer.kill()
    assert [(one.code, one.err) for one in ended[: len(reads)]] == [(0, "")] * len(reads), ended
    assert "3 plans" in ended[3].out
    for words, one in zip(writes, ended[len(reads) :], strict=True):
        assert (one.code, one.out) == (1, "") if words[0] == "event" else one.code == 1, one
        assert "check the rights on the file" in one.err
        assert one.err.count("\n") == 1
        assert ("Nothing has run" in one.err) == (words[0] == "apply")


@pytest.fixture
def full(kept):
    """The same home, whose record is on a disk without room: a small tmpfs."""
    folder = kept.record.parent
    # The simulated cloud is on another disk, so that the record is what cannot be written.
    kept.configure(actionplan={"simulator": kept.folder / "simulator.json"})
    assert kept("db", "backup", "copy").code == 0
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        kept.record.write_bytes((kept.folder / "copy").read_bytes())
        with suppress(OSError), open(folder / "rest", "wb", buffering=0) as rest:
            while rest.write(b"\0" * 4096):
                pass
        yield kept
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.needs("mount")
def test_a_full_disk_is_said_and_that_nothing_has_run(full):
    # Which of its two errors SQLite raises depends on the write that fails first.
    said = f"sqlite:///{full.record}: %s is full; free some space there"
    before = full.copied("list").out
    for words, more in {
        ("create", str(EXAMPLE)): "",
        ("apply", str(EXAMPLE), "--yes"): ". Nothing has run",
        ("apply", "last", "--yes"): ". Nothing has run",
    }.items():
        ended = full.copied(*words)
        wanted = {f"Refused: {said % what}{more}\n" for what in ("the disk", "database or disk")}
        assert ended.code == 1
        assert ended.err in wanted
    assert full.copied("list").out == before
    (full.record.parent / "rest").unlink()
    assert full.copied("apply", "last", "--yes").code == 0


@pytest.mark.needs("mount")
def test_a_log_whose_disk_becomes_full_is_said_once_and_goes_on_with_room(tmp_path, capsys):
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    path, logger = tmp_path / "log", logging.Logger("full")
    try:
        with closing(LogFile(path)) as handler:
            logger.addHandler(handler)
            logger.warning("before")
            with suppress(OSError), open(path, "ab", buffering=0) as rest:
                while rest.write(b"x" * 512):
                    pass
            for _ in range(3):
                logger.warning("no room for this")
            os.truncate(path, 0)
            logger.warning("after")
        assert path.read_text().endswith("after\n")
    finally:
        subprocess.run(["umount", "-l", str(tmp_path)], check=True)
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith(f"--log-file {path} ")
    assert os.strerror(errno.ENOSPC) in said


# A damaged row of each kind


PLAN = "00000000-0000-4000-8000-00000000000a"
#: The columns that are damaged in the last row of a table; its key.
COLUMNS = (
    *(("history", "at", "number"), ("event", "data", "number"), ("request", "limits", "number")),
    *(("attempt", "state", "id"), ("approval", "at", "number"), ("service", "pid", "uuid")),
    *(("worker", "queues", "name"), ("subscription", "held_back", "name")),
)


@pytest.fixture
def damaged(actionplan: CommandLine) -> CommandLine:
    """A command line whose record has two rows of each kind, the last of which is damaged."""
    configured(actionplan)
    plan = new_plan("a", "b", uuid=PLAN)
    with actionplan.store() as store:
        store.subscribe("ops", now=NOW)
        store.subscribe("readers", now=NOW, until=NOW + timedelta(days=9999))
        claim = claimed(store, plan)
        for who, action in zip(("ann", "bob"), plan.actions, strict=True):
            store.commit(PLAN, claim, [starts(action)], now=NOW)
            store.commit(PLAN, claim, [succeeds(action)], now=NOW)
            store.add_request(PLAN, Request(verb="limit", who=who), now=NOW)
            store.report_service(Service(f"{PLAN[:-3]}{who}", "far", 7, who, MADE, NOW, "west"))
            store.report_worker(Worker(who, "far", 7, who, "1.0", ["q"], ["nop"], 1, 0))
        store.move_claimed(PLAN, claim, PlanState.PAUSED, now=NOW, read=2)
        for who in ("ann", "bob"):
            store.approve_plan(PLAN, Approval(who=who, at=NOW, content="c"))
            store.add_history(PLAN, HistoryEntry(verb="note", who=who, at=NOW))
    with closing(sqlite3.connect(actionplan.record)) as database, database:
        for table, column, key in COLUMNS:
            last = f"{key} = (SELECT max({key}) FROM actionplan_{table})"
            database.execute(f"UPDATE actionplan_{table} SET {column} = '{{' WHERE {last}")
    return actionplan


def test_whatever_needs_it_ends_in_one_sentence_that_names_it(damaged):
    for words, named in (
        (("history", "last"), "entry 3 of the history is damaged: at "),
        (("event", "list"), "is damaged: data "),
        (("event", "subscription", "list"), "is damaged: held_back "),
        (("service", "list"), "is damaged: pid "),
        (("worker", "list"), "is damaged: queues "),
        (("action", "show", "last", "b"), "is damaged: state "),
        (("report", "last"), "entry 3 of the history is damaged: at "),
    ):
        ended = damaged(*words)
        [told] = ended.err.splitlines()
        assert (ended.code, ended.out) == (1, "")
        assert told.startswith("Refused: ")
        assert named in told


def test_an_export_has_all_the_rest(damaged):
    ended = damaged("export", "last")
    found = json.loads(ended.out)
    assert [len(found[part]) for part in ("attempts", "requests", "damaged")] == [1, 1, 3]
    assert ended.code == 1
    assert [line.partition(":")[0] for line in ended.err.splitlines()] == ["Left out"] * 3
    told = [text.partition(" is damaged: ")[0] for text in found["damaged"]]
    assert told[1:] == ["entry 3 of the history", "request 2"]


def test_the_api_names_it_in_one_sentence(damaged):
    api = client_of(damaged)
    for path, named in (
        (f"/v2/plans/{PLAN}/history", "entry 3 of the history is damaged: at "),
        (f"/v2/plans/{PLAN}/requests", "request 2 is damaged: limits "),
        (f"/v2/plans/{PLAN}/approvals", "approval 2 is damaged: at "),
        (f"/v2/plans/{PLAN}/actions/b", "is damaged: state "),
        ("/v2/subscriptions", "is damaged: held_back "),
        ("/v2/services", "is damaged: pid "),
        ("/v2/workers", "is damaged: queues "),
        ("/v2/events?limit=1000", "is damaged: data "),
    ):
        answer = api.simulate_get(path)
        assert (answer.status_code, answer.json["title"]) == (500, "Damaged record")
        assert named in answer.json["detail"], path


# Export and import


@pytest.fixture
def exported(actionplan: CommandLine) -> dict[str, Any]:
    """Return an exported plan that was run, with an action that printed something."""
    shells = {"say": ["printf", "%s", "hello"], "fail": ["false"]}
    actionplan.document(
        "p.yaml",
        *(
            {"name": name, "action_type": "shell", "input_parameters": {"argv": argv}}
            for name, argv in shells.items()
        ),
    )
    actionplan("apply", "p.yaml", "--yes")
    return json.loads(actionplan.good("export", "last"))


@pytest.fixture
def other(entry_point_cache: Path, tmp_path: Path) -> CommandLine:
    """Return a command line with another record."""
    return CommandLine(tmp_path / "other", entry_point_cache)


def take_in(other: CommandLine, document: Any) -> Ended:
    """Import a document."""
    (other.folder / "plan.json").write_text(json.dumps(document), encoding="utf-8")
    return other("import", "plan.json")


def test_all_that_is_known_of_a_plan_is_there_after_an_import_and_it_goes_on(
    actionplan, other, exported
):
    ended = take_in(other, exported)
    assert ended.code == 0, ended.err
    assert "2 attempts and 3 lines of history" in ended.out
    for words in (
        ("show", "last"),
        ("action", "show", "last", "say"),
        ("action", "list", "last", "-f", "json"),
        ("list", "-f", "json"),
    ):
        assert other.good(*words) == actionplan.good(*words)
    assert "hello" in other.good("action", "show", "last", "say")
    again = json.loads(other.good("export", "last"))
    assert again["history"].pop()["verb"] == "import"
    assert again == exported
    twice = take_in(other, exported)
    assert (twice.code, "is already in the record, FAILED" in twice.err) == (1, True)
    other.good("resume", "last")
    assert other("apply", "last", "--yes").code == 3
    assert json.loads(other.good("export", "last"))["attempts"][-1]["number"] == 2


def test_a_document_that_was_changed_is_refused_with_every_mistake(other, exported):
    text = json.dumps(exported)
    for path, value, why in (
        (("version",), "2", "version: '2' is not"),
        (("plan", "actions"), 3, "plan.actions"),
        (("attempts", 0, "started_at"), "2026-02-30T00:00:00+00:00", "attempts[0].started_at"),
        (("attempts", 0, "number"), 0, "attempts[0].number"),
        (("attempts", 1), exported["attempts"][0], "attempts[1].number: attempt 1 of action "),
        (("history", 0, "who"), 7, "history[0].who"),
        (("plan", "actions", 0, "retries"), 9, "plan.digest: does not fit the plan"),
    ):
        place = changed = json.loads(text)
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        ended = take_in(other, changed)
        assert (ended.code, why in ended.err) == (1, True), ended
    exported["plan"]["actions"][0]["state"] = "ONGOING"
    exported["plan"]["state"] = "PENDING"
    exported["attempts"][0]["action"] = "00000000-0000-4000-8000-00000000000f"
    ended = take_in(other, exported)
    assert (ended.code, "Refused, 3 mistakes" in ended.err) == (1, True)
    for told in ("plan.state: the plan is PENDING", "is ONGOING: only its", "no action 00000000"):
        assert told in ended.err
    assert other.plans() == []
