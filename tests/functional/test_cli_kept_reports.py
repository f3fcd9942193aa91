# SPDX-License-Identifier: Apache-2.0
"""Reports that a purge keeps: no plan goes without its report, whatever comes between."""

from __future__ import annotations

import fcntl
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from command_line import PATIENCE_S, CommandLine, Ended, wait_until

PURGE = ("purge", "--older-than", "0m", "--yes", "--keep-reports")
#: Runs a command line that is killed where the first report is about to be whole.
KILLED = """
import os, signal, sys
os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
from applier.cli.main import main
main(sys.argv[1:])
"""


@pytest.fixture
def ended(actionplan: CommandLine) -> CommandLine:
    """Return a command line with two plans that have ended."""
    actionplan.document("plan.yaml", {"name": "a", "action_type": "nop"})
    for _ in range(2):
        actionplan.good("apply", "plan.yaml", "--yes")
    return actionplan


def uuids(line: CommandLine) -> set[str]:
    """Return the plans on record."""
    return {plan.uuid for plan in line.plans()}


def test_a_purge_that_was_killed_leaves_nothing_to_the_next_one(ended: CommandLine) -> None:
    before, folder = uuids(ended), ended.folder / "kept"
    words = [sys.executable, "-c", KILLED, *PURGE, "kept"]
    killed = subprocess.run(words, cwd=ended.folder, env=ended.environment, check=False)
    assert killed.returncode == -signal.SIGKILL
    (left,) = folder.iterdir()
    assert left.name.startswith(".new-report-")
    assert uuids(ended) == before
    (folder / ".new-of-others").touch()
    assert ended.good(*PURGE, "kept") == "2 plans deleted for good.\n"
    names = {".new-of-others", *(f"{uuid}.html" for uuid in before)}
    assert {path.name for path in folder.iterdir()} == names


def test_what_another_purge_writes_right_now_stays(ended: CommandLine) -> None:
    folder = ended.folder / "kept"
    folder.mkdir()
    (folder / ".new-report-of-another").touch()
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH)
        ended.good(*PURGE, "kept")
    finally:
        os.close(handle)
    assert (folder / ".new-report-of-another").exists()


def test_reports_in_the_folder_of_the_record_keep_nobody_out(ended: CommandLine) -> None:
    folder = ended.record.parent
    with closing(sqlite3.connect(ended.record, isolation_level=None)) as database:
        # The purge writes its reports, and waits before it deletes.
        database.execute("BEGIN IMMEDIATE")
        with ended.start(*PURGE, str(folder)) as purge:
            wait_until(lambda: len([*folder.glob("*.html")]) == 2)
            listed = ended("list", "-f", "value", "-c", "uuid")
            database.execute("ROLLBACK")
            out, err = purge.communicate(timeout=PATIENCE_S)
    assert (listed.code, listed.err, len(listed.out.split())) == (0, "", 2)
    assert (purge.returncode, out) == (0, "2 plans deleted for good.\n"), err


def test_a_damaged_plan_stays_and_is_told_and_the_others_go(ended: CommandLine) -> None:
    with closing(sqlite3.connect(ended.record)) as database, database:
        database.execute("UPDATE actionplan_plan SET limits = '{\"x\": 7}' WHERE number = 1")
    good, bad = ended.good("list", "-f", "value", "-c", "uuid").split()
    purged = ended(*PURGE, "kept")
    assert (purged.code, purged.out) == (1, "1 plan deleted for good.\n")
    (told,) = purged.err.splitlines()
    assert told.startswith(f"Not deleted: plan {bad[:8]} is damaged: its content was changed")
    assert told.endswith(f"no report of it can be made; see: actionplan delete {bad[:8]}")
    assert [path.name for path in (ended.folder / "kept").iterdir()] == [f"{good}.html"]
    assert ended.good("list", "-f", "value", "-c", "uuid").split() == [bad]


@pytest.fixture
def disk(ended: CommandLine) -> Iterator[Path]:
    """Return a folder on a small disk."""
    folder = ended.folder / "kept"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.needs("mount")
def test_on_a_full_disk_no_plan_goes_without_its_report(ended: CommandLine, disk: Path) -> None:
    before = uuids(ended)
    with suppress(OSError), open(disk / "rest", "wb", buffering=0) as rest:
        while rest.write(b"\0" * 4096):
            pass
    _refused(ended(*PURGE, "kept"), "No space left on device")
    assert uuids(ended) == before
    assert {path.name for path in disk.iterdir()} == {"rest"}
    (disk / "rest").unlink()
    ended.good(*PURGE, "kept")
    assert {path.stem for path in disk.iterdir()} == before


@pytest.mark.needs("mount")
def test_on_a_disk_that_is_read_only_no_plan_goes(ended: CommandLine, disk: Path) -> None:
    before = uuids(ended)
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    _refused(ended(*PURGE, "kept"), "Read-only file system")
    assert uuids(ended) == before


def test_a_folder_that_cannot_be_made_is_told_before_any_plan_goes(ended: CommandLine) -> None:
    before = uuids(ended)
    for folder, why in (("plan.yaml", "File exists"), ("plan.yaml/kept", "Not a directory")):
        purged = ended(*PURGE, folder)
        assert (purged.code, purged.out) == (1, "")
        (told,) = purged.err.splitlines()
        assert told.endswith(f"--keep-reports {folder} cannot be made: {why}")
    assert uuids(ended) == before


def _refused(purged: Ended, why: str) -> None:
    """Check that a purge has told in one sentence which report it could not write."""
    assert (purged.code, purged.out) == (1, "0 plans deleted for good.\n")
    (told,) = purged.err.splitlines()
    assert "--keep-reports kept/" in told
    assert told.endswith(f".html cannot be written: {why}")
