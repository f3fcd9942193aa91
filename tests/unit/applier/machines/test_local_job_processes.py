# SPDX-License-Identifier: Apache-2.0
"""A child process: its output, and the end of its whole group."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
import tracemalloc
from pathlib import Path

import pytest

from applier.errors import JobLost
from applier.machines import following, local_jobs
from applier.machines.local_machine import Local

pytestmark = pytest.mark.slow
#: Seconds that a slow machine may take, and less than the programs of these tests would.
PATIENCE_S = 120.0
HOUR_S = 3600.0


class Printed:
    """Keeps output, and sets an event once the first line is whole."""

    def __init__(self, first_line: threading.Event | None = None) -> None:
        self.text, self._first_line = "", first_line or threading.Event()

    def __call__(self, piece: str) -> None:
        self.text += piece
        if "\n" in self.text:
            self._first_line.set()


def lives(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat[stat.rindex(")") + 2] not in "ZX"


def has_ended(pid: int) -> bool:
    """Wait until a process that was sent a signal has ended; False if it does not."""
    try:
        process_handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        ended = select.poll()
        ended.register(process_handle, select.POLLIN)
        return bool(ended.poll(1000 * PATIENCE_S))
    finally:
        os.close(process_handle)


class Clock:
    """The clock, which goes an hour ahead once an event is set."""

    def __init__(self, event: threading.Event) -> None:
        self._event = event

    def monotonic(self) -> float:
        return time.monotonic() + (HOUR_S if self._event.is_set() else 0.0)


@pytest.fixture
def stop() -> threading.Event:
    return threading.Event()


def first_number(printed: Printed) -> int:
    """Return the first word; a shell whose child is killed before it may print more."""
    return int(printed.text.split()[0])


def run(program, *, stop, output, env=None, timeout_s=None):
    return Local(stop).run(program, output=output, env=env, timeout_s=timeout_s)


def shell(line: str) -> list[str]:
    return ["/bin/sh", "-c", line]


def test_output_of_many_megabytes_is_passed_on_and_not_kept(stop):
    size, largest = 0, 0

    def count(text: str) -> None:
        nonlocal size, largest
        size, largest = size + len(text), max(largest, len(text))

    megabytes = 20
    program = f"import sys\nfor _ in range({megabytes}): sys.stdout.write('x' * 1_000_000)"
    tracemalloc.start()
    try:
        ended = run([sys.executable, "-c", program], stop=stop, output=count)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (ended.code, size) == (0, megabytes * 1_000_000)
    assert largest <= 65536
    assert peak < 2_000_000


def test_what_is_no_text_is_shown_as_such_and_characters_are_not_cut(stop):
    printed = Printed()
    # The euro sign comes in two writes, with a pause in which the first is read.
    run(shell(r"printf 'a\377\342'; sleep 0.05; printf '\202\254\n'"), stop=stop, output=printed)
    assert printed.text == "a�€\n"


def test_what_was_printed_and_not_yet_taken_at_the_end_is_read(stop):
    program = """
import os
os.write(1, f"{os.getpid():9}".encode())
os.write(1, b"x" * 500_000)
os.write(1, b"\\342")
"""
    pieces: list[str] = []

    def slow(text: str) -> None:
        pieces.append(text)
        assert has_ended(int(pieces[0][:9]))

    assert run([sys.executable, "-c", program], stop=stop, output=slow).code == 0
    text = "".join(pieces)
    assert (len(text), text[-1]) == (500_010, "�")


def test_it_has_a_session_of_its_own_and_no_input(stop):
    read, write = os.pipe()
    outside = os.dup(0)
    os.dup2(read, 0)
    os.write(write, b"not for you")
    try:
        program = "import os, sys; print(os.getsid(0), os.getpgid(0), repr(sys.stdin.read()))"
        ended = run([sys.executable, "-c", program], stop=stop, output=Printed())
    finally:
        os.dup2(outside, 0)
        for descriptor in (read, write, outside):
            os.close(descriptor)
    session, group, read_in = ended.last_line.split()
    assert (session, read_in) == (group, "''")
    assert int(session) != os.getsid(0)


def test_the_streams_stay_in_order(stop):
    printed = Printed()
    line = "for i in 1 2 3 4 5; do echo out $i; echo err $i >&2; done"
    run(shell(line), stop=stop, output=printed)
    assert printed.text == "".join(f"out {i}\nerr {i}\n" for i in range(1, 6))


def test_a_grandchild_that_holds_the_pipe_is_not_waited_for(stop):
    printed, began = Printed(), time.monotonic()
    ended = run(shell("sleep 600 & echo $!; echo done"), stop=stop, output=printed)
    grandchild = first_number(printed)
    try:
        assert time.monotonic() - began < PATIENCE_S
        assert (ended.code, ended.last_line) == (0, "done")
        assert lives(grandchild), "what a command leaves running goes on"
    finally:
        os.kill(grandchild, signal.SIGKILL)


def test_a_grandchild_that_never_stops_writing_does_not_hold_it_up(stop):
    # As fast as a shell writes: a program would fill the disk if this test were killed.
    line = "while :; do echo y; done & echo $!; sleep 0.05"
    printed, began = Printed(), time.monotonic()
    ended = run(shell(line), stop=stop, output=printed)
    grandchild = int(next(word for word in printed.text.split() if word != "y"))
    try:
        assert ended.code == 0
        assert time.monotonic() - began < PATIENCE_S
        assert lives(grandchild), "what a command leaves running goes on"
    finally:
        os.kill(grandchild, signal.SIGKILL)


def test_a_program_that_closes_its_output_is_waited_for(stop, tmp_path):
    line = f"exec >&- 2>&-; sleep 0.1; echo > {tmp_path}/late; exit 4"
    ended = run(shell(line), stop=stop, output=Printed())
    assert ended.code == 4
    assert (tmp_path / "late").exists()


@pytest.mark.parametrize("why", ["stop", "timeout"])
def test_its_whole_group_is_ended(stop, why, monkeypatch):
    monkeypatch.setattr(following, "GRACE_S", HOUR_S)
    up = stop if why == "stop" else threading.Event()
    if why == "timeout":
        monkeypatch.setattr(following, "time", Clock(up))
    line = "sleep 600 & echo $!; wait"
    ended = run(shell(line), stop=stop, output=(printed := Printed(up)), timeout_s=HOUR_S)
    assert (ended.why, ended.code) == (why, -signal.SIGTERM)
    assert ended.seconds % HOUR_S < PATIENCE_S, "nothing was left to wait for"
    assert has_ended(first_number(printed))


@pytest.fixture
def short_grace(monkeypatch) -> None:
    """Kill soon what ignores its end; the shell that notes its exit code has all its time."""
    end = local_jobs.end

    def end_soon(*given):
        monkeypatch.setattr(following, "GRACE_S", 0.2)
        end(*given)
        monkeypatch.setattr(following, "GRACE_S", PATIENCE_S)

    monkeypatch.setattr(local_jobs, "end", end_soon)


@pytest.mark.usefixtures("short_grace")
@pytest.mark.parametrize("is_behind_another", [False, True])
def test_what_ignores_the_request_is_killed_after_the_grace(stop, is_behind_another):
    printed = Printed(stop)
    ignores = "trap '' TERM; sleep 600 & echo $$; while :; do sleep 0.05; done"
    program = ["/bin/sh", "-c", 'sh -c "$1"; true', "sh", ignores]
    ended = run(program if is_behind_another else shell(ignores), stop=stop, output=printed)
    code = -signal.SIGTERM if is_behind_another else -signal.SIGKILL
    assert (ended.why, ended.code) == ("stop", code)
    assert ended.seconds >= 0.2
    assert has_ended(first_number(printed))


def test_a_grandchild_has_the_grace_to_tidy_up_in(stop, tmp_path, monkeypatch):
    monkeypatch.setattr(following, "GRACE_S", PATIENCE_S)
    note, printed = tmp_path / "note", Printed(stop)
    tidies = (
        f"trap 'sleep 0.2; echo tidy > {note}; exit' TERM; echo up; while :; do sleep 0.05; done"
    )
    # The shell in front dies at once of SIGTERM; the one behind it takes its time.
    ended = run(["/bin/sh", "-c", '(eval "$1"); true', "sh", tidies], stop=stop, output=printed)
    assert (ended.why, ended.code) == ("stop", -signal.SIGTERM)
    assert note.read_text() == "tidy\n"


def test_what_it_prints_while_it_ends_is_kept(stop, monkeypatch):
    monkeypatch.setattr(following, "GRACE_S", PATIENCE_S)
    printed = Printed(stop)
    line = "trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.02; done"
    ended = run(shell(line), stop=stop, output=printed)
    assert (ended.why, ended.code, ended.last_line) == ("stop", 3, "bye")


def test_nothing_is_left_of_it_when_its_output_cannot_be_kept(stop):
    pids = []

    def full(text: str) -> None:
        pids.append(int(text))
        raise OSError("no space left")

    with pytest.raises(JobLost, match="was ended after an error: no space left") as lost:
        run(shell("echo $$; sleep 600"), stop=stop, output=full)
    assert lost.value.is_over
    assert has_ended(pids[0])


def test_no_descriptor_and_no_zombie_is_left_behind(stop):
    run(["true"], stop=stop, output=Printed())
    before, printed = len(os.listdir("/proc/self/fd")), Printed()
    for _ in range(5):
        run(shell("echo $$"), stop=stop, output=printed)
    assert len(os.listdir("/proc/self/fd")) == before
    assert not [pid for pid in printed.text.split() if Path(f"/proc/{pid}").exists()]


def test_no_process_that_watched_it_is_left_behind(stop, tmp_path):
    sleep, pid = tmp_path / "sleep", tmp_path / "pid"
    sleep.write_text(f"#!/bin/sh\necho $$ >{pid}.new && mv {pid}.new {pid}\nexec /bin/sleep 600\n")
    sleep.chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    run(shell(f"until [ -e {pid} ]; do :; done"), stop=stop, output=Printed(), env=env)
    assert has_ended(int(pid.read_text()))
