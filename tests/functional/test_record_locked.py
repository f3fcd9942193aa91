# SPDX-License-Identifier: Apache-2.0
"""A process that is stopped while it holds a lock of the record: others name it and end."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest
from command_line import CommandLine

from applier.storage import lock_holders
from applier.storage.schema_version import LONGEST_S
from planner.plan.states import PlanState

WRITER = """
import os, signal, sqlite3, sys
writer = sqlite3.connect(sys.argv[1].removeprefix("sqlite:///"))
writer.execute("BEGIN IMMEDIATE")
os.kill(os.getpid(), signal.SIGSTOP)
"""
OPENER = """
import os, signal, sys
from applier.storage.schema_version import alone
from applier.storage.connection import parse
with alone(parse(sys.argv[1])):
    os.kill(os.getpid(), signal.SIGSTOP)
"""
#: As a program does that wants the file for itself.
OWNER = """
import os, signal, sqlite3, sys
owner = sqlite3.connect(sys.argv[1].removeprefix("sqlite:///"))
owner.execute("PRAGMA locking_mode = EXCLUSIVE")
owner.execute("BEGIN EXCLUSIVE")
os.kill(os.getpid(), signal.SIGSTOP)
"""
#: Stops where SQLite has written one of the two copies of the header of its index of the log, and
#: not the other. Byte 120 of the file is the lock of writers (https://sqlite.org/walformat.html).
PUBLISHER = """
import fcntl, os, signal, sys
index = open(sys.argv[1].removeprefix("sqlite:///") + "-shm", "r+b", buffering=0)
fcntl.lockf(index, fcntl.LOCK_EX, 1, 120)
first = os.pread(index.fileno(), 48, 0)
os.pwrite(index.fileno(), bytes(48), 0)
os.kill(os.getpid(), signal.SIGSTOP)
os.pwrite(index.fileno(), first, 0)
"""

Holds = Callable[[str], "subprocess.Popen[bytes]"]


@pytest.fixture
def holds(actionplan: CommandLine) -> Iterator[Holds]:
    """Return a function that starts a process which takes a lock and is stopped."""
    started = []

    def holds(program: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", program, f"sqlite:///{actionplan.record}"]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        started.append(process)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        return process

    yield holds
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def plan(actionplan: CommandLine) -> None:
    """Store a plan."""
    actionplan.document("plan.yaml", {"name": "a", "action_type": "nop"})
    actionplan.good("create", "plan.yaml")


#: What a stopped process does, and whom it keeps from what.
KEPT_OUT = (
    (WRITER, ("start", "last")),
    (WRITER, ("create", "plan.yaml")),
    (WRITER, ("db", "upgrade")),
    (OWNER, ("db", "upgrade")),
    (OWNER, ("db", "check")),
    (OWNER, ("db", "backup", "copy.sqlite")),
    # SQLite calls that "locking protocol", after ten seconds.
    (PUBLISHER, ("list",)),
    (OPENER, ("list",)),
    (OPENER, ("apply", "last", "--yes")),
)


@pytest.mark.long
@pytest.mark.usefixtures("plan")
@pytest.mark.parametrize(("program", "words"), KEPT_OUT)
def test_who_is_kept_out_is_told_who_is_stopped_and_how_it_goes_on(
    actionplan, holds, program, words
):
    """A process that is not stopped is waited for for 30 s."""
    with closing(sqlite3.connect(actionplan.record)) as keeps_the_index:
        if program is PUBLISHER:
            keeps_the_index.execute("SELECT count(*) FROM sqlite_master").fetchall()
        holder = holds(program)
        began = time.monotonic()
        # In this process: the start of another is not counted.
        ended = actionplan.inside(*words)
        assert words[0] != "db" or time.monotonic() - began < LONGEST_S - 5
        assert ended.code == 1
        assert f"process {holder.pid} ({sys.executable} -c " in ended.err
        assert f"kill -CONT {holder.pid}" in ended.err
        assert ("Nothing has run" in ended.err) is (words[0] == "apply")
        if program is WRITER:
            assert actionplan.good("list")
        holder.send_signal(signal.SIGCONT)
        assert holder.wait() == 0
        assert actionplan(*words).code == 0


@pytest.mark.long
@pytest.mark.usefixtures("plan")
def test_an_upgrade_waits_for_a_process_that_writes_longer_than_others_look(actionplan):
    with ExitStack() as writing:
        writing.enter_context(actionplan.locked())
        with actionplan.start("db", "upgrade") as upgrading:
            with pytest.raises(subprocess.TimeoutExpired):
                upgrading.wait(2 * lock_holders.SOON_S)
            writing.close()
            assert upgrading.wait() == 0


def test_an_applier_that_runs_a_plan_names_it_and_keeps_trying(actionplan, running, gate, holds):
    holder = holds(WRITER)
    gate.let_go()
    told = running.stderr.readline()
    assert "cannot be reached; retrying for" in told
    assert f"process {holder.pid} (" in told
    holder.send_signal(signal.SIGCONT)
    running.communicate()
    assert running.returncode == 0
    assert actionplan.plan().state is PlanState.SUCCEEDED
