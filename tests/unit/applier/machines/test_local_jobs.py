# SPDX-License-Identifier: Apache-2.0
"""A job is started once, and what its folder and its processes tell decides what follows."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from applier.errors import JobLost
from applier.machines import OpenMachines, process
from applier.machines.found_jobs import JobState
from applier.machines.job_names import AttemptName, attempt_of

pytestmark = pytest.mark.slow
PATIENCE_S = 120.0
ATTEMPT = AttemptName("p", "a", 1)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "jobs"


def lives(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat[stat.rindex(")") + 2] not in "ZX"


def run(place: Path, line: str, *, stop=None, output=lambda _: None, number=1, let_go=None):
    return process.run(
        ["/bin/sh", "-c", line],
        stop=stop or threading.Event(),
        output=output,
        place=place,
        name=ATTEMPT.job(number),
        let_go=let_go,
    )


def test_a_job_leaves_its_output_and_its_exit_code(place):
    run(place, "echo $ACTIONPLAN_JOB; exit 7")
    folder = place / "p.a.1.1"
    assert (folder / "out").read_text() == "p/a/1\n"
    assert (folder / "rc").read_text() == "7\n"
    assert (place.stat().st_mode & 0o777, folder.stat().st_mode & 0o777) == (0o700, 0o700)
    (found,) = process.find(place, ATTEMPT.prefix, ATTEMPT.job(1).mark)
    assert (found.state, found.code) == (JobState.ENDED, 7)


def test_one_that_has_ended_is_not_started_again(place, tmp_path):
    line = f"echo once >> {tmp_path}/ran; echo said; exit 3"
    printed: list[str] = []
    ends = [run(place, line, output=printed.append) for _ in range(2)]
    assert [(e.code, e.last_line) for e in ends] == [(3, "said")] * 2
    assert printed == ["said\n"] * 2
    assert (tmp_path / "ran").read_text() == "once\n"


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
        while not (place / "p.a.1.1" / "rc").exists() and time.monotonic() < end:
            threading.Event().wait(0.02)
        assert not (place / "p.a.1.1" / "rc").read_text(), "there was room for it"
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


@pytest.mark.parametrize("pid", [None, ""])
def test_a_folder_without_a_process_is_started(place, pid):
    """Its starter was killed before the wrapper began, or while it wrote its first file."""
    folder = place / "p.a.1.1"
    folder.mkdir(parents=True)
    if pid is not None:
        (folder / "pid").write_text(pid)
    assert process.find(place)[0].state is JobState.NONE
    assert run(place, "exit 4").code == 4


def test_one_that_a_stop_is_to_leave_running_goes_on_and_is_followed_by_the_next(place, tmp_path):
    stop, let_go = threading.Event(), threading.Event()
    let_go.set()
    line = f"echo one; while [ -d {tmp_path} ] && [ ! -e {tmp_path}/go ]; do sleep 0.02; done"
    with pytest.raises(JobLost, match="let go of the command, which goes on") as lost:
        run(place, line, stop=stop, let_go=let_go, output=lambda _: stop.set())
    assert not lost.value.is_over
    assert process.find(place)[0].state is JobState.RUNS
    printed: list[str] = []

    def go(text: str) -> None:
        printed.append(text)
        (tmp_path / "go").touch()

    ended = run(place, line, output=go)
    assert (ended.code, "".join(printed)) == (0, "one\n")


def test_one_that_was_killed_with_its_wrapper_is_lost(place):
    def kill(text: str) -> None:
        os.killpg(os.getpgid(int(text)), signal.SIGKILL)

    with pytest.raises(JobLost, match="killed together with its shell") as lost:
        run(place, "echo $$; exec sleep 1000", output=kill)
    assert lost.value.is_over
    (found,) = process.find(place, ATTEMPT.prefix, ATTEMPT.job(1).mark)
    assert found.is_lost


def test_a_process_number_that_is_used_again_is_no_job(place):
    """The start time of the process tells them apart."""
    run(place, "true")
    folder = place / "p.a.1.1"
    (folder / "rc").unlink()
    _, _, boot, up = (folder / "pid").read_text().split()
    (folder / "pid").write_text(f"{os.getpid()} 1 {boot} {up}\n")
    assert process.find(place)[0].state is JobState.KILLED


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
    other = AttemptName("p", "a", 11)
    name = other.job(1)

    def look(text: str) -> None:
        printed.append(text)
        (place / "p.a.1.1").mkdir()
        found = process.find(place, ATTEMPT.prefix, ATTEMPT.job(1).mark)
        assert [job.left for job in found] == [()]
        stop.set()

    line = ["/bin/sh", "-c", "echo up; exec sleep 1000"]
    process.run(line, stop=stop, output=look, place=place, name=name)
    assert printed == ["up\n"]


def test_commands_of_an_attempt_are_found_in_their_order_and_forgotten_together(place):
    one = OpenMachines(place=place)
    first = one.of_attempt("p", "a", 1)
    for machine in (first.machine(None, threading.Event()), first.machine(None, threading.Event())):
        for code in range(6):
            machine.run(["/bin/sh", "-c", f"exit {code}"], output=lambda _: None)
    (last,) = one.of_attempt("p", "a", 1).find((None,))
    assert (last.number, last.code) == (12, 5)
    assert one.of_attempt("p", "a", 2).find((None,)) == []
    first.forget()
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("uuid", ["a/b", "..", "a.b", "ä ö", "%2e", "*"])
def test_whatever_a_uuid_is_its_folder_is_one_name(uuid):
    attempt = AttemptName(uuid, uuid, 3)
    folder = attempt.job(2).folder
    assert "/" not in folder
    assert attempt_of(folder) == attempt


def test_files_that_are_no_jobs_are_left_alone():
    assert attempt_of("notes") is None
    assert attempt_of("a.b.c.d") is None
