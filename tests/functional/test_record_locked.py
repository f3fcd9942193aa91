# SPDX-License-Identifier: Apache-2.0
"""Who holds the record or a plan: stopped, alive whatever the clock says, or waited for."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from command_line import PROGRAM, CommandLine, Gate

from applier.contracts import Claimant, Report
from applier.storage import database_errors
from applier.storage.schema_version import LONGEST_S
from planner.plan.states import ActionState, PlanState

# A process that is stopped while it holds a lock: others name it and end


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
                upgrading.wait(2 * database_errors.SOON_S)
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


# Nobody who lives loses a plan: clocks apart, long intervals


SHIFT = Path(__file__).parents[1] / "shifted_clock" / "start.py"
NOP = {"action_type": "nop", "input_parameters": {"message": "x"}}


@contextmanager
def applied(actionplan: CommandLine, gate: Gate, clock: str, interval_s: float):
    """Run a plan by an applier with a clock and an interval of its own, until its action runs."""
    applier = {"heartbeat_interval_s": interval_s}
    actionplan.configure(actionplan={"simulator_speed": 1000}, watcher_applier=applier)
    count = f"echo ran >> {actionplan.folder}/effects; {gate.command}"
    action = {**gate.action("first"), "input_parameters": {"command": count}}
    actionplan.document("plan.yaml", action)
    with subprocess.Popen(
        [sys.executable, SHIFT, clock, PROGRAM, "apply", "plan.yaml", "--yes"],
        cwd=actionplan.folder,
        env=actionplan.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            gate.wait()
            yield process
        finally:
            process.send_signal(signal.SIGCONT)
            process.kill()


@pytest.mark.long
@pytest.mark.needs("faketime")
@pytest.mark.parametrize("clock", ["-3600s", "+0s", "+60s", "+3600s"])
def test_the_plan_of_a_living_applier_is_not_taken_whatever_its_clock_says(actionplan, gate, clock):
    # Six of its intervals without a heartbeat would be its death, on a machine however slow.
    with applied(actionplan, gate, clock, 2.0) as process:
        ended = actionplan("resume", "last")
        assert ended.code == 1
        assert "which was heard of just now" in ended.err
        with actionplan.start("watch", "last") as watching:
            assert watching.stdout.readline().startswith("Cloud: simulated")
            assert "plan ONGOING" in watching.stdout.readline()
            gate.let_go()
            assert process.wait() == 0
            assert watching.wait() == 0
    assert actionplan.plan().state is PlanState.SUCCEEDED
    assert (actionplan.folder / "effects").read_text() == "ran\n"


@pytest.mark.long
@pytest.mark.needs("faketime")
def test_a_long_interval_is_waited_for(actionplan, gate):
    """The last heartbeat looks an hour old, and the next comes only after two minutes.

    ``resume`` says at once whom it waits for, and for how long at most.
    """
    with (
        applied(actionplan, gate, "-3600s", 120.0),
        actionplan.start("resume", "last") as resuming,
    ):
        claimant = actionplan.claimant()
        told = resuming.stderr.readline()
        assert told.startswith(f"Process {claimant.pid} on {claimant.host} may be alive: ")
        assert "12m00s" in told
        assert resuming.poll() is None
        assert actionplan.plan().state is PlanState.ONGOING
        resuming.send_signal(signal.SIGINT)
        assert resuming.wait() == 130
        assert "This is a bug" not in resuming.stderr.read()


def test_a_duration_over_which_the_clock_was_set_back_is_not_known(actionplan):
    """It is no negative number anywhere: in lists, details and reports."""
    actionplan.good("create", actionplan.document("plan.yaml", NOP))
    uuid = actionplan.plan().uuid
    (action,) = actionplan.plan().actions
    at = datetime(2026, 1, 2, tzinfo=UTC)
    with actionplan.store() as store:
        store.start_plan(uuid, None, now=at)
        claim = store.claim_plan(uuid, Claimant(host="h", pid=1, user="eve"), now=at)
        states = (ActionState.PENDING, ActionState.ONGOING, ActionState.SUCCEEDED)
        for (old, new), now in zip(pairwise(states), (at, at - timedelta(days=1)), strict=True):
            report = Report(uuid=action.uuid, old=old, state=new)
            store.commit(uuid, claim, [report], now=now)
        store.move_claimed(uuid, claim, PlanState.SUCCEEDED, now=at)
    for words in (
        ("action", "list", "last"),
        ("action", "show", "last", action.label),
        ("show", "last"),
        ("report", "last", "--out", "report.html"),
    ):
        assert "-86" not in actionplan.good(*words), words
    assert "-86" not in (actionplan.folder / "report.html").read_text(encoding="utf-8")
    listed = json.loads(actionplan.good("action", "list", "last", "-f", "json"))
    assert listed[0]["took"] is None
