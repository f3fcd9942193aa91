# SPDX-License-Identifier: Apache-2.0
"""A job is started once, and what its folder and its processes tell decides what follows."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from applier.errors import ActionFailed, JobLost
from applier.machines import found_jobs, job_scripts, local_jobs
from applier.machines.attempt_jobs import AttemptJobs
from applier.machines.following import LET_GO
from applier.machines.found_jobs import FoundJob, JobState, parse
from applier.machines.job_names import AttemptName, attempt_of
from applier.machines.local_jobs import LocalJob
from applier.machines.local_machine import Local
from applier.machines.open_machines import OpenMachines

pytestmark = pytest.mark.slow
PATIENCE_S = 120.0
#: Jobs are found by the name of their attempt on the whole machine, also those of other test runs.
PLAN = uuid.uuid4().hex
ATTEMPT = AttemptName(PLAN, "a", 1)
JOB = ATTEMPT.job(1)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "jobs"


def lives(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat[stat.rindex(")") + 2] not in "ZX"


def run(place: Path, line: str, *, stop=None, output=lambda _: None, let_go=None):
    jobs = AttemptJobs(ATTEMPT, let_go or threading.Event())
    machine = Local(stop or threading.Event(), place, jobs)
    return machine.run(["/bin/sh", "-c", line], output=output)


def test_a_job_leaves_its_output_and_its_exit_code(place):
    run(place, "echo $ACTIONPLAN_JOB; exit 7")
    folder = place / JOB.folder
    assert (folder / "out").read_text() == f"{JOB.mark}\n"
    assert (folder / "rc").read_text() == "7\n"
    assert (place.stat().st_mode & 0o777, folder.stat().st_mode & 0o777) == (0o700, 0o700)
    (found,) = found_jobs.find(place, ATTEMPT.prefix, JOB.mark)
    assert (found.state, found.code) == (JobState.ENDED, 7)


def test_one_that_has_ended_is_not_started_again(place, tmp_path):
    line = f"echo once >> {tmp_path}/ran; echo said; exit 3"
    printed: list[str] = []
    ends = [run(place, line, output=printed.append) for _ in range(2)]
    assert [(e.code, e.last_line) for e in ends] == [(3, "said")] * 2
    assert printed == ["said\n"] * 2
    assert (tmp_path / "ran").read_text() == "once\n"


def test_one_that_had_ended_by_itself_was_not_stopped(place):
    run(place, "echo said; exit 3")
    stop = threading.Event()
    ended = run(place, "exit 9", stop=stop, output=lambda _: stop.set())
    assert (ended.code, ended.why, ended.last_line) == (3, None, "said")


#: Prints much more than is kept, and then a line once its output has been dropped and it may.
FLOOD = """head -c 100000000 /dev/zero | tr '\\0' x
while [ ! -e {go} ]; do sleep 0.02; done; echo; echo end"""


def room_of(out: Path) -> int:
    return out.stat().st_blocks * 512


def when_trimmed(out: Path, go: Path) -> threading.Thread:
    """Let a flood go on once its output takes no more room than is kept."""

    def watch() -> None:
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            if out.exists() and out.stat().st_size == 100_000_000 and room_of(out) < 34_000_000:
                go.touch()
                return
            threading.Event().wait(0.02)

    watching = threading.Thread(target=watch)
    watching.start()
    return watching


def test_output_without_end_takes_bounded_room_and_its_end_is_kept(place, tmp_path):
    """Whoever follows later has its end, and is told how much was dropped."""
    go, out = tmp_path / "go", place / JOB.folder / "out"
    watching = when_trimmed(out, go)
    ended = run(place, FLOOD.format(go=go) + "; exit 3")
    watching.join()
    assert (ended.code, ended.last_line) == (3, "end")
    assert room_of(out) < 34_000_000
    printed: list[str] = []
    assert run(place, "exit 9", output=printed.append).last_line == "end"
    text = "".join(printed)
    dropped = int((out.parent / "dropped").read_text())
    assert text.startswith(f"\n[{dropped} bytes of output were dropped]\nxxx")
    assert text.endswith("x\nend\n")
    assert len(text.partition("]\n")[2]) == 100_000_005 - dropped


def test_a_follower_that_is_slower_than_its_command_goes_on_with_what_is_left(place, tmp_path):
    go, out = tmp_path / "go", place / JOB.folder / "out"
    printed: list[str] = []

    def slow(text: str) -> None:
        if not printed:
            when_trimmed(out, go).join()
        printed.append(text)

    assert run(place, FLOOD.format(go=go), output=slow).last_line == "end"
    text = "".join(printed)
    assert "\0" not in text
    # The follower may begin so late that it is told twice.
    told = re.compile(r"\n\[([0-9]+) bytes of output were dropped]\n")
    dropped = sum(map(int, told.findall(text)))
    assert dropped
    assert len(told.sub("", text)) == 100_000_005 - dropped


def test_a_file_system_that_gives_back_no_part_of_a_file_drops_all(place, tmp_path, monkeypatch):
    """A program that always fails stands for it."""
    go, out, programs = tmp_path / "go", place / JOB.folder / "out", tmp_path / "bin"
    # What is written while the output is dropped is lost, so that waits until all is written.
    whole = f'until [ "$1" != 1 ] || [ "$(wc -c <{out})" = 100000000 ]; do /bin/sleep 0.02; done'
    programs.mkdir()
    for name, line in (("fallocate", "exit 1"), ("sleep", f'{whole}; exec /bin/sleep "$1"')):
        (programs / name).write_text(f"#!/bin/sh\n{line}\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    watching = when_trimmed(out, go)
    ended = run(place, FLOOD.format(go=go))
    watching.join()
    assert (ended.code, ended.last_line) == (0, "end")
    printed: list[str] = []
    run(place, "exit 9", output=printed.append)
    dropped = int((out.parent / "dropped").read_text())
    rest = "x" * (100_000_000 - dropped)
    note, text = "".join(printed).split("]\n")
    assert str(dropped) in note
    assert text == f"{rest}\nend\n"


def watchers_of(wrapper: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            if parent == wrapper and b"\0trim\0" in (stat.parent / "cmdline").read_bytes():
                assert b"ACTIONPLAN_JOB" not in (stat.parent / "environ").read_bytes()
                found.append(int(stat.parent.name))
    return found


def test_what_watches_the_output_ends_with_the_command_and_has_no_mark(place, tmp_path):
    watchers: list[int] = []

    def look(_: str) -> None:
        wrapper = int((place / JOB.folder / "pid").read_text().split()[0])
        end = time.monotonic() + PATIENCE_S
        while not watchers and time.monotonic() < end:
            watchers.extend(watchers_of(wrapper))
        (tmp_path / "go").touch()

    run(place, f"echo begun; while [ ! -e {tmp_path}/go ]; do sleep 0.02; done", output=look)
    assert len(watchers) == 1
    end = time.monotonic() + PATIENCE_S
    while lives(watchers[0]) and time.monotonic() < end:
        threading.Event().wait(0.02)
    assert not lives(watchers[0])


@pytest.mark.needs("mount")
def test_output_that_fills_the_disk_is_dropped_with_a_note(tmp_path):
    """There is room to note how much was dropped, before the command begins."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", str(tmp_path)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a file system")
    place, printed = tmp_path / "jobs", []
    out, go = place / JOB.folder / "out", tmp_path / "go"

    def slow(text: str) -> None:
        end = time.monotonic() + PATIENCE_S
        while not printed and time.monotonic() < end:
            if out.stat().st_size > 40_000_000 and room_of(out) < 34_000_000:
                go.touch()
                break
            threading.Event().wait(0.02)
        printed.append(text)

    try:
        assert run(place, FLOOD.format(go=go), output=slow).last_line == "end"
    finally:
        subprocess.run(["umount", "-l", str(tmp_path)], check=True)
    text = "".join(printed)
    assert "\0" not in text
    assert "bytes of output were dropped]" in text


def test_output_is_kept_while_it_cannot_be_noted_that_it_is_dropped(place, tmp_path, monkeypatch):
    """A folder that has the name of the note stands for a disk without room."""
    programs, turns, out = tmp_path / "bin", tmp_path / "turns", place / JOB.folder / "out"
    programs.mkdir()
    (programs / "sleep").write_text(f'#!/bin/sh\necho >>{turns}\nexec /bin/sleep "$1"\n')
    (programs / "sleep").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    blocks = f"cd {out.parent}; rm -f dropped.new; mkdir dropped.new"
    flood = "head -c 40000000 /dev/zero | tr '\\0' x"
    # The size is looked at after each turn but the last.
    waits = f"true >{turns}; until [ $(wc -l <{turns}) -gt 2 ]; do /bin/sleep 0.02; done"
    printed: list[str] = []
    run(place, f"{blocks}; {flood}; {waits}", output=printed.append)
    assert "".join(printed) == "x" * 40_000_000


@pytest.mark.needs("mount")
def test_its_exit_code_waits_for_room_on_a_full_disk(tmp_path):
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a file system")
    codes: list[int | None] = []
    place, filler = tmp_path / "jobs", tmp_path / "filler"
    line = f"dd if=/dev/zero of={filler} 2>/dev/null; exit 3"
    try:
        follower = threading.Thread(target=lambda: codes.append(run(place, line).code))
        follower.start()
        end = time.monotonic() + PATIENCE_S
        while not (place / JOB.folder / "rc").exists() and time.monotonic() < end:
            threading.Event().wait(0.02)
        assert not (place / JOB.folder / "rc").read_text(), "there was room for it"
        filler.unlink()
        follower.join(PATIENCE_S)
    finally:
        subprocess.run(["umount", "-l", str(tmp_path)], check=True)
    assert codes == [3]


def test_of_many_who_start_it_at_once_all_follow_the_same(place, tmp_path):
    line = f"echo once >> {tmp_path}/ran; sleep 0.1; exit 5"
    codes: list[int | None] = []
    threads = [
        threading.Thread(target=lambda: codes.append(run(place, line).code)) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert codes == [5] * 8
    assert (tmp_path / "ran").read_text() == "once\n"


def test_one_whose_program_and_folder_are_gone_is_followed(place, tmp_path):
    """A script may replace or remove itself, and the folder in which it works."""
    folder = tmp_path / "work"
    folder.mkdir()
    script = folder / "upgrade.sh"
    script.write_text(f"#!/bin/sh\nrm -r {folder}\nexit 3\n")
    script.chmod(0o755)

    def upgrade() -> int | None:
        machine = Local(threading.Event(), place, AttemptJobs(ATTEMPT, threading.Event()))
        return machine.run([str(script)], output=lambda _: None, cwd=str(folder)).code

    assert [upgrade(), upgrade()] == [3, 3]


def test_one_that_cannot_be_started_leaves_no_folder(place):
    machine = Local(threading.Event(), place, AttemptJobs(ATTEMPT, threading.Event()))
    with pytest.raises(FileNotFoundError):
        machine.run(["/no/such/program"], output=lambda _: None)
    assert list(place.iterdir()) == []


@contextlib.contextmanager
def without_descriptors() -> Iterator[None]:
    """Open files until this process may open no more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = [os.open(os.devnull, os.O_RDONLY)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken[0] + 1, hard))
    try:
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in taken:
            os.close(descriptor)


def test_one_that_cannot_be_ended_without_descriptors_may_go_on(place):
    """It has begun, so it is not one that cannot be started."""
    stop, pids = threading.Event(), []
    with contextlib.ExitStack() as stack:

        def take(text: str) -> None:
            pids.append(int(text))
            stack.enter_context(without_descriptors())
            stop.set()

        try:
            run(place, "echo $$; exec sleep 1000", stop=stop, output=take)
        except OSError as reason:
            lost = reason
    was_alive = lives(pids[0])
    local_jobs.end(place / JOB.folder, JOB.mark, 0.0)
    assert isinstance(lost, JobLost)
    assert not lost.is_over
    assert "Too many open files" in str(lost)
    assert was_alive


@pytest.fixture
def stopped() -> threading.Event:
    """A stop that is set: nothing waits any longer."""
    stop = threading.Event()
    stop.set()
    return stop


def test_one_that_was_begun_before_and_cannot_be_looked_for_may_go_on(place, stopped):
    (place / JOB.folder).mkdir(parents=True)
    with (
        without_descriptors(),
        pytest.raises(JobLost, match="Too many open files") as lost,
    ):
        run(place, "exit 4", stop=stopped)
    assert not lost.value.is_over


def test_one_that_is_stopped_before_it_has_descriptors_is_not_started(place, tmp_path, stopped):
    with without_descriptors(), pytest.raises(OSError, match="Too many open files") as refused:
        run(place, f"echo ran >> {tmp_path}/ran", stop=stopped)
    assert not isinstance(refused.value, JobLost)
    assert found_jobs.find(place, ATTEMPT.prefix, JOB.mark)[0].state is JobState.NONE
    assert not (tmp_path / "ran").exists()


def test_one_that_is_let_go_before_it_has_descriptors_is_left_to_the_next(place, stopped):
    with without_descriptors(), pytest.raises(JobLost, match="let go") as lost:
        run(place, "exit 4", stop=stopped, let_go=stopped)
    assert not lost.value.is_over
    assert run(place, "exit 4").code == 4


def test_one_waits_for_descriptors_before_and_after_it_has_begun(place, monkeypatch, caplog):
    """Whatever else the applier does has taken them, and gives them back."""

    class Stop(threading.Event):
        def wait(self, timeout=None):
            taken.close()
            return False

    waiting = local_jobs.once_granted

    def short(make, stop):
        taken.enter_context(without_descriptors())
        return waiting(make, stop)

    monkeypatch.setattr(local_jobs, "once_granted", short)
    with contextlib.ExitStack() as taken:
        assert run(place, "echo one; exit 4", stop=Stop()).code == 4
    assert "Too many open files; a command waits" in caplog.text


def test_one_that_ends_without_descriptors_is_followed_to_its_end(place):
    with contextlib.ExitStack() as stack:

        def take(_: str) -> None:
            stack.enter_context(without_descriptors())
            (place / "go").mkdir()  # which takes no descriptor

        line = f"echo up; until [ -e {place}/go ]; do sleep 0.02; done; exit 6"
        assert run(place, line, output=take).code == 6


def test_a_folder_without_a_process_is_started(place):
    """Its starter was killed before the wrapper began."""
    (place / JOB.folder).mkdir(parents=True)
    assert found_jobs.find(place)[0].state is JobState.NONE
    assert run(place, "exit 4").code == 4


def test_one_whose_wrapper_had_begun_is_not_started_even_if_it_wrote_nothing(place):
    """Its file may have been emptied by a power failure, and another follower may be later."""
    (place / JOB.folder).mkdir(parents=True)
    (place / JOB.folder / "pid").touch()
    with pytest.raises(JobLost, match="killed together") as lost:
        run(place, "exit 4")
    assert lost.value.is_over


def test_one_that_a_stop_is_to_leave_running_goes_on_and_is_followed_by_the_next(place, tmp_path):
    stop, let_go = threading.Event(), threading.Event()
    let_go.set()
    line = f"echo one; while [ -d {tmp_path} ] && [ ! -e {tmp_path}/go ]; do sleep 0.02; done"
    with pytest.raises(JobLost, match="let go") as lost:
        run(place, line, stop=stop, let_go=let_go, output=lambda _: stop.set())
    assert not lost.value.is_over
    assert found_jobs.find(place)[0].state is JobState.RUNS
    printed: list[str] = []

    def go(text: str) -> None:
        printed.append(text)
        (tmp_path / "go").touch()

    ended = run(place, line, output=go)
    assert (ended.code, "".join(printed)) == (0, "one\n")


LETS_GO = """
import sys, threading
from pathlib import Path
from applier.errors import JobLost
from applier.machines.attempt_jobs import AttemptJobs
from applier.machines.job_names import AttemptName
from applier.machines.local_machine import Local

stop, let_go = threading.Event(), threading.Event()
let_go.set()
line = ["/bin/sh", "-c", "echo one; exec sleep 1000"]
jobs = AttemptJobs(AttemptName(sys.argv[2], "a", 1), let_go)
try:
    Local(stop, Path(sys.argv[1]), jobs).run(line, output=lambda _: stop.set())
except JobLost as left:
    print(left)
"""


def test_the_end_of_a_follower_that_let_go_warns_of_nothing(place):
    arguments = [sys.executable, "-W", "error", "-c", LETS_GO, str(place), PLAN]
    follower = subprocess.run(arguments, capture_output=True, text=True, check=True)
    local_jobs.end(place / JOB.folder, JOB.mark, 0.0)
    assert "let go of the command" in follower.stdout
    assert follower.stderr == ""


def test_one_that_was_killed_with_its_wrapper_is_lost(place):
    def kill(text: str) -> None:
        os.killpg(os.getpgid(int(text)), signal.SIGKILL)

    with pytest.raises(JobLost, match="killed together") as lost:
        run(place, "echo $$; exec sleep 1000", output=kill)
    assert lost.value.is_over
    (found,) = found_jobs.find(place, ATTEMPT.prefix, JOB.mark)
    assert found.is_lost


def test_processes_that_outlive_the_wrapper_are_followed_to_their_end(place, tmp_path):
    """Each tick after the kill can only come from a follower that goes on."""
    child = f"while [ ! -e {tmp_path}/go ]; do echo tick; sleep 0.02; done; echo late"
    told = []

    def tick(text: str) -> None:
        if not told:
            wrapper = int((place / JOB.folder / "pid").read_text().split()[0])
            os.killpg(wrapper, signal.SIGKILL)
        elif found_jobs.find(place, JOB.folder, JOB.mark)[0].state == "killed":
            (tmp_path / "go").touch()
        told.extend(text.split())

    with pytest.raises(JobLost, match="killed together") as lost:
        run(place, f"setsid sh -c '{child}' & wait", output=tick)
    assert lost.value.is_over
    assert told[-1] == "late"


def test_processes_that_outlive_the_wrapper_are_stopped(place):
    stop = threading.Event()

    def tick(text: str) -> None:
        wrapper = int((place / JOB.folder / "pid").read_text().split()[0])
        os.killpg(wrapper, signal.SIGKILL)
        stop.set()

    ended = run(place, "setsid sh -c 'echo tick; exec sleep 1000' & wait", output=tick, stop=stop)
    assert (ended.code, ended.why) == (-signal.SIGKILL, "stop")
    assert found_jobs.find(place, JOB.folder, JOB.mark)[0].left == ()


def test_one_whose_wrapper_finds_no_room_was_not_started(place, tmp_path, monkeypatch):
    """The wrapper removes ``pid`` again when it cannot write it."""
    monkeypatch.setattr(job_scripts, "WRAPPER", "exit 0")
    with pytest.raises(ActionFailed, match=f"not started: .*{JOB.folder} cannot be written"):
        run(place, f"echo ran >> {tmp_path}/ran")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("ends_first", [False, True])
def test_a_wrapper_that_is_slow_to_say_that_it_runs_is_followed(
    place, tmp_path, monkeypatch, ends_first
):
    """Its applier was killed when it had started it; the next one looked a moment before that.

    Its command may have ended before the next one sees that the wrapper of its own has not begun.
    """
    folder, gate = place / JOB.folder, tmp_path / "gate"
    folder.mkdir(parents=True)
    (folder / "out").touch()
    line, tells = f"echo ran | tee -a {tmp_path}/ran", "echo $$ $job_start"
    waits = f"until [ -e {gate} ]; do sleep 0.05; done; {tells}"
    slow = job_scripts.WRAPPER.replace(tells, waits)
    command = ["/bin/sh", "-c", slow, "job", str(folder), "", "/bin/sh", "-c", line]
    find, found, started = found_jobs.find, [], []

    def looks(*given):
        if not started:
            mark = {job_scripts.VARIABLE: JOB.mark, "PATH": os.environ["PATH"]}
            started.append(subprocess.Popen(command, env=mark, start_new_session=True))
            while not (folder / "pid").exists():
                time.sleep(0.01)
            return [FoundJob(folder.name, JobState.NONE)]
        found.extend(find(*given))
        gate.touch()
        return found[-1:]

    goes_on = LocalJob._goes_on

    def asks_late(*given):
        if ends_first:
            gate.touch()
            started[0].wait(PATIENCE_S)
        return goes_on(*given)

    monkeypatch.setattr(found_jobs, "find", looks)
    monkeypatch.setattr(LocalJob, "_goes_on", asks_late)
    printed = []
    ended = run(place, line, output=printed.append)
    started[0].wait(PATIENCE_S)
    assert ends_first or found[0].state is JobState.NONE
    assert (ended.code, "".join(printed)) == (0, "ran\n")
    assert (tmp_path / "ran").read_text() == "ran\n"


def test_who_cannot_begin_a_command_follows_the_wrapper_that_begins_it(place, tmp_path):
    """An applier with another PATH takes over while the wrapper of the last one is starting."""
    folder, gate = place / JOB.folder, tmp_path / "gate"
    folder.mkdir(parents=True)
    (folder / "out").touch()
    slow = f"until [ -e {gate} ]; do sleep 0.05; done\n{job_scripts.WRAPPER}"
    command = ["/bin/sh", "-c", slow, "job", str(folder), "", "/bin/sh", "-c", "echo ran"]
    mark = {job_scripts.VARIABLE: JOB.mark, "PATH": os.environ["PATH"]}
    wrapper = subprocess.Popen(command, env=mark, start_new_session=True)

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            gate.touch()
            return super().wait(timeout)

    machine, printed = Local(Stop(), place, AttemptJobs(ATTEMPT, threading.Event())), []
    ended = machine.run(["a-program-of-the-other-PATH"], output=printed.append)
    wrapper.wait(PATIENCE_S)
    assert (ended.code, "".join(printed)) == (0, "ran\n")


#: Leaves a process, and prints its number.
LEAVES = "sleep 1000 >/dev/null 2>&1 & echo $!"


def test_what_an_earlier_command_has_left_is_not_taken_for_one_that_starts(place):
    """The applier was killed when it had made the folder of the second command."""
    first, taken_over = (AttemptJobs(ATTEMPT, threading.Event()) for _ in range(2))
    printed: list[str] = []
    machine, taker = (Local(threading.Event(), place, jobs) for jobs in (first, taken_over))
    machine.run(["/bin/sh", "-c", LEAVES], output=printed.append)
    (place / ATTEMPT.job(2).folder).mkdir()
    codes: list[int | None] = []

    def take_over() -> None:
        for line in (LEAVES, "exit 5"):
            codes.append(taker.run(["/bin/sh", "-c", line], output=printed.append).code)

    follower = threading.Thread(target=take_over, daemon=True)
    follower.start()
    follower.join(PATIENCE_S)
    was_left = lives(int(printed[0]))
    os.kill(int(printed[0]), signal.SIGKILL)
    assert codes == [0, 5]
    assert was_left


def test_what_an_earlier_command_has_left_on_a_node_is_not_taken_for_one_that_starts(
    place, tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    jobs = tmp_path / "actionplan/jobs"
    left = int(run_on_node(1, LEAVES).stdout.split()[-1])
    try:
        (jobs / ATTEMPT.job(2).folder).mkdir()
        assert b" ended 5\n" in run_on_node(2, "exit 5").stderr
        assert lives(left)
    finally:
        os.kill(left, signal.SIGKILL)


def run_on_node(number: int, line: str) -> subprocess.CompletedProcess[bytes]:
    program, more = ["/bin/sh", "-c", line], {"env": {}, "cwd": "", "seen": 0, "may_begin": True}
    script = job_scripts.running("T", ATTEMPT.job(number), program, **more)
    shell = ["/bin/sh", "-s"]
    return subprocess.run(shell, input=script, capture_output=True, check=True, timeout=PATIENCE_S)


@pytest.fixture
def frozen_wrapper(place: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that stands for a wrapper which was frozen before it had written ``pid``."""
    (place / JOB.folder).mkdir(parents=True)
    (place / JOB.folder / "out").touch()
    command = ["/bin/sh", "-c", "sleep 1000; exit", "job", str(place / JOB.folder), "", "true"]
    mark = {job_scripts.VARIABLE: JOB.mark, "PATH": os.environ["PATH"]}
    with subprocess.Popen(command, env=mark, start_new_session=True) as wrapper:
        yield wrapper
        local_jobs.end(place / JOB.folder, JOB.mark, 0.0)


@pytest.mark.parametrize("is_let_go", [False, True])
def test_a_stop_is_heard_while_a_wrapper_starts(place, frozen_wrapper, is_let_go):
    stop, let_go, ends = threading.Event(), threading.Event(), []
    stop.set()
    if is_let_go:
        let_go.set()

    def follow() -> None:
        try:
            ends.append(run(place, "true", stop=stop, let_go=let_go).why)
        except JobLost as left:
            ends.append(str(left))

    follower = threading.Thread(target=follow, daemon=True)
    follower.start()
    follower.join(PATIENCE_S)
    assert ends == [LET_GO if is_let_go else "stop"]
    assert (frozen_wrapper.poll() is None) is is_let_go


def test_an_attempt_that_another_has_ended_starts_no_more_commands(place, tmp_path):
    """Its applier was frozen between two of them, and another has followed them to their end."""
    machines = OpenMachines(place=place)
    frozen, taker = (machines.of_attempt(PLAN, "a", 1) for _ in range(2))
    line = ["/bin/sh", "-c", f"echo ran >> {tmp_path}/ran"]
    machine = frozen.machine(None, threading.Event())
    machine.run(line, output=lambda _: None)
    for _ in range(2):
        taker.machine(None, threading.Event()).run(line, output=lambda _: None)
    taker.forget()
    with pytest.raises(ActionFailed, match="another applier"):
        machine.run(line, output=lambda _: None)
    assert (tmp_path / "ran").read_text() == "ran\nran\n"
    assert list(place.iterdir()) == []


def test_a_command_that_was_found_and_removed_since_is_not_started_again(place, tmp_path):
    """Its applier was frozen after it had taken the attempt over."""
    first, frozen, taker = (OpenMachines(place=place).of_attempt(PLAN, "a", 1) for _ in range(3))
    line = ["/bin/sh", "-c", f"echo ran >> {tmp_path}/ran"]
    first.machine(None, threading.Event()).run(line, output=lambda _: None)
    assert len(frozen.find([None])) == 1
    taker.machine(None, threading.Event()).run(line, output=lambda _: None)
    taker.forget()
    with pytest.raises(ActionFailed, match="another applier"):
        frozen.machine(None, threading.Event()).run(line, output=lambda _: None)
    assert (tmp_path / "ran").read_text() == "ran\n"
    assert list(place.iterdir()) == []


def test_what_an_interrupted_removal_has_left_is_no_job_and_is_swept(place):
    run(place, "true")
    left = place / f".removed-{ATTEMPT.job(2).folder}"
    left.mkdir()
    (left / "out").touch()
    machines = OpenMachines(place=place)
    assert [job.folder for job in machines.listed(None)] == [JOB.folder]
    machines.remove(None, [JOB.folder], wait=True)
    assert list(place.iterdir()) == []


def test_a_process_number_that_is_used_again_is_no_job(place):
    """The start time of the process tells them apart."""
    run(place, "true")
    folder = place / JOB.folder
    (folder / "rc").unlink()
    _, _, boot, up = (folder / "pid").read_text().split()
    (folder / "pid").write_text(f"{os.getpid()} 1 {boot} {up}\n")
    assert found_jobs.find(place)[0].state is JobState.KILLED


def test_a_stop_reaches_what_left_the_session(place):
    stop, printed = threading.Event(), []

    def note(text: str) -> None:
        printed.append(text)
        stop.set()

    ended = run(place, "setsid sh -c 'echo $$; exec sleep 1000' & wait", stop=stop, output=note)
    assert ended.why == "stop"
    assert not lives(int(printed[0]))


def test_the_marks_of_two_attempts_are_told_apart(place):
    """Attempt 1 is no beginning of attempt 11."""
    stop, printed = threading.Event(), []
    jobs = AttemptJobs(AttemptName(PLAN, "a", 11), threading.Event())

    def look(text: str) -> None:
        printed.append(text)
        (place / JOB.folder).mkdir()
        found = found_jobs.find(place, ATTEMPT.prefix, JOB.mark)
        assert [job.left for job in found] == [()]
        stop.set()

    line = ["/bin/sh", "-c", "echo up; exec sleep 1000"]
    Local(stop, place, jobs).run(line, output=look)
    assert printed == ["up\n"]


def test_commands_of_an_attempt_are_found_in_their_order_and_forgotten_together(place):
    one = OpenMachines(place=place)
    first = one.of_attempt(PLAN, "a", 1)
    for machine in (first.machine(None, threading.Event()), first.machine(None, threading.Event())):
        for code in range(6):
            machine.run(["/bin/sh", "-c", f"exit {code}"], output=lambda _: None)
    (last,) = one.of_attempt(PLAN, "a", 1).find((None,))
    assert (last.number, last.code) == (12, 5)
    assert one.of_attempt(PLAN, "a", 2).find((None,)) == []
    first.forget()
    assert list(place.iterdir()) == []


@pytest.mark.parametrize(
    "mark", [JOB.mark, "cannot be read"], ids=["of this user", "of another user"]
)
def test_processes_whose_folder_is_in_another_place_of_a_node_are_found(place, monkeypatch, mark):
    """Whoever logs in there now may have another home."""
    monkeypatch.setenv("XDG_STATE_HOME", str(place / "of-the-next"))
    stop, found, other = threading.Event(), [], AttemptName(PLAN, "b", 1)

    def look(_: str) -> None:
        found.append(found_on_node(ATTEMPT.prefix, mark))
        found.append(found_on_node(other.prefix, other.job(1).mark))
        stop.set()

    run(place, "echo up; exec sleep 1000", stop=stop, output=look)
    (job,) = found[0]
    assert job.state is JobState.ELSEWHERE
    assert int((place / JOB.folder / "pid").read_text().split()[0]) in job.left
    assert found[1:] == [[]]
    # The last processes of a job end a moment after it.
    end = time.monotonic() + PATIENCE_S
    while found_on_node(ATTEMPT.prefix, mark) and time.monotonic() < end:
        pass
    assert found_on_node(ATTEMPT.prefix, mark) == []


def found_on_node(prefix: str, mark: str) -> list[FoundJob]:
    """Run the script that looks for jobs as on a node, whose place is that of its user."""
    script = job_scripts.finding(prefix, mark)
    done = subprocess.run(["/bin/sh", "-s"], input=script, capture_output=True, check=True)
    assert not done.stderr
    return list(parse(done.stdout.decode()))


@pytest.mark.parametrize("uuid", ["a/b", "..", "a.b", "ä ö", "%2e", "*"])
def test_whatever_a_uuid_is_its_folder_is_one_name(uuid):
    attempt = AttemptName(uuid, uuid, 3)
    folder = attempt.job(2).folder
    assert "/" not in folder
    assert attempt_of(folder) == attempt


def test_files_that_are_no_jobs_are_left_alone():
    assert attempt_of("notes") is None
    assert attempt_of("a.b.c.d") is None


@pytest.mark.parametrize("has_mark", [True, False])
def test_a_group_without_its_leader_is_ended_only_if_it_has_the_mark(place, tmp_path, has_mark):
    """The number of a shell that ended long ago may be that of a daemon by now."""
    bare = f"env -u {job_scripts.VARIABLE} sleep 1000 & echo $! > {tmp_path}/bare"
    leader = subprocess.Popen(
        ["/bin/sh", "-c", f"{bare}; sleep 1000 & exit"],
        start_new_session=True,
        env={**os.environ, job_scripts.VARIABLE: JOB.mark if has_mark else "another"},
    )
    leader.wait(PATIENCE_S)
    folder = place / JOB.folder
    folder.mkdir(parents=True)
    (folder / "pid").write_text(f"{leader.pid} 1 boot 1\n")
    (folder / "rc").write_text("0\n")
    local_jobs.end(folder, JOB.mark)
    assert lives(int((tmp_path / "bare").read_text())) is not has_mark
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader.pid, signal.SIGKILL)
