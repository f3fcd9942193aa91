# SPDX-License-Identifier: Apache-2.0
"""The record as an operator finds it: damaged, read-only, on a full disk."""

from __future__ import annotations

import errno
import logging
import os
import socket
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from command_line import EXAMPLE, PATIENCE_S, CommandLine
from forked_program import bound_by_rights

from applier.cli.program import LogFile
from applier.storage.sql import SqlStore
from applier.testing.sample_plans import new_plan


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


def test_a_copy_takes_the_place_of_the_record(kept):
    copied = kept("db", "backup", "copy").out
    assert copied == f"The record in sqlite:///{kept.record} was copied to copy.\n"
    assert kept("delete", "last", "--yes").code == 0
    for end in ("-wal", "-shm"):
        Path(f"{kept.record}{end}").unlink(missing_ok=True)
    os.replace(kept.folder / "copy", kept.record)
    assert len(kept.plans()) == 2


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
