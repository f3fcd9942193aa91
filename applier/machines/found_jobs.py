# SPDX-License-Identifier: Apache-2.0
"""Finds the jobs of a machine: the state of each, its exit code, the error if its end is unknown.

=============  =======================================  =========================================
State          What is seen on the machine              What a follower does
=============  =======================================  =========================================
missing        no folder: it was never started, or was  begins it, unless it was seen before
               removed when its end was recorded
none           a folder; the wrapper has not begun      begins it; of several wrappers, one does
runs           the wrapper in ``pid`` lives             passes output on until it does not
killed, left   it does not; processes of the job do     passes output on until they have ended
killed         none of them runs, and there is no       ends: the exit code is lost
               ``rc``
restarted      the boot in ``pid`` is another           ends: the exit code is lost
ended          the exit code in ``rc``                  ends with it
elsewhere      no folder, but processes of the job      never begins it: its folder is that of
                                                        another user or configuration
=============  =======================================  =========================================
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from applier.errors import ActionFailed, JobLost
from applier.machines import job_scripts
from applier.machines.job_names import AttemptName, attempt_of

#: What runs the scripts of jobs here.
SHELL = "/bin/sh"
#: Above this, the exit code of a shell means a signal.
_SIGNALLED = 128


class JobState(StrEnum):
    """The state of a job, by the files in its folder and the processes of its machine."""

    MISSING = "missing"
    NONE = "none"
    RUNS = "runs"
    ENDED = "ended"
    RESTARTED = "restarted"
    KILLED = "killed"
    ELSEWHERE = "elsewhere"


@dataclass(frozen=True, slots=True)
class FoundJob:
    """A job that was found: its folder and state, its exit code if it has ended.

    ``age_s`` is how many seconds it has been running, None if it does not run. ``left`` are the ids
    of processes that carry its mark, although its wrapper does not run.
    """

    folder: str
    state: JobState
    code: int | None = None
    age_s: float | None = None
    left: tuple[int, ...] = ()

    @property
    def is_lost(self) -> bool:
        """Whether it does not run, and its exit code will never be known."""
        return self.state in (JobState.RESTARTED, JobState.KILLED)

    @property
    def is_running(self) -> bool:
        """Whether it runs, or processes of it that outlived its wrapper."""
        return self.state is JobState.RUNS or bool(self.left)

    @property
    def may_be_left(self) -> bool:
        """Whether its wrapper does not run, but other processes of it may."""
        return self.state in (JobState.NONE, JobState.KILLED)

    @property
    def attempt(self) -> AttemptName | None:
        """The attempt to which it belongs; None if it has none."""
        return attempt_of(self.folder)

    @property
    def number(self) -> int:
        """The number of its command within the attempt."""
        return int(self.folder.rpartition(".")[2])

    def __str__(self) -> str:
        """Return its state in words, such as ``its command has ended with exit code 7``."""
        if self.state is JobState.RUNS:
            return f"its command has been running for {self.age_s or 0:.0f} s"
        if self.state is JobState.ENDED:
            return f"its command has ended with exit code {self.code}"
        if self.state is JobState.ELSEWHERE:
            return f"processes of it run, whose job is in another folder: {_pids(self.left)}"
        if self.left:
            return f"its shell was killed, and processes of it still run: {_pids(self.left)}"
        return _SENTENCES[self.state]


_SENTENCES = {
    JobState.MISSING: "its command was not started",
    JobState.NONE: "its command was about to start",
    JobState.RESTARTED: "the machine was restarted while its command ran",
    JobState.KILLED: "its command was killed together with its shell",
}


def parse(printed: str) -> Iterator[FoundJob]:
    """Yield the jobs of the lines that a script to find or end jobs has printed.

    >>> list(parse("welcome\\njob p.a.1.1 ended 7 -\\n"))[0].code
    7
    """
    for line in printed.splitlines():
        words = line.split()
        if len(words) >= 5 and words[0] == "job":
            _, folder, state, code, age, *left = words
            yield FoundJob(
                folder,
                JobState(state),
                None if code == "-" else exit_code(int(code)),
                None if age == "-" else float(age),
                tuple(map(int, left)),
            )


def exit_code(code: int) -> int:
    """Convert the exit code of a shell: 128 plus the number of a signal becomes its negative.

    >>> exit_code(7), exit_code(143), exit_code(255)
    (7, -15, 255)
    """
    number = code - _SIGNALLED
    return -number if number in signal.valid_signals() else code


def code_of(found: FoundJob, why: str | None, host: str | None = None) -> int | None:
    """Return the exit code of a job that is not followed any more; None if it still runs.

    ``why`` is the reason why it was ended, if it was. Raises JobLost if the code will never be
    known, and ActionFailed if the command has not begun, for example because of a full disk.
    """
    where = f"{host}: " if host else ""
    if found.state is JobState.ENDED:
        return found.code
    if why and found.is_running:
        return None
    if why and found.may_be_left:
        return -signal.SIGKILL
    if found.state is JobState.NONE and not found.left:
        raise ActionFailed(f"{where}not started: {found.folder} cannot be written")
    if found.state is JobState.RESTARTED:
        machine = "the node" if host else "this machine"
        raise JobLost(f"{where}{machine} was restarted while the command ran", is_over=True)
    if found.state is JobState.MISSING:
        raise JobLost(f"{where}the folder of the command was removed while it ran", is_over=False)
    if found.left:
        text = "the shell of the command was killed, and processes of it still run: "
        raise JobLost(f"{where}{text}{_pids(found.left)}", is_over=False)
    raise JobLost(f"{where}the command was killed together with its shell", is_over=True)


def _pids(pids: tuple[int, ...]) -> str:
    return ", ".join(map(str, pids))


def find(place: Path, prefix: str = "", mark: str = "") -> list[FoundJob]:
    """Return the jobs in ``place`` whose folders begin with a prefix.

    With a ``mark``, a job whose wrapper does not run has the processes that carry the mark.
    """
    if not place.is_dir():
        return []
    return list(parse(shell(job_scripts.finding(prefix, mark, str(place)))))


def shell(script: bytes) -> str:
    """Run a script of :mod:`applier.machines.job_scripts`, and return its standard output.

    Raises JobLost if the shell fails, because its output may not be whole. It has a session of its
    own: an interrupt from the keyboard does not reach it.
    """
    done = subprocess.run(
        [SHELL, "-s"],
        input=script,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
        start_new_session=True,
    )
    if done.returncode != 0:
        text = f"the shell that looks for commands here has failed: exit code {done.returncode}"
        raise JobLost(text, is_over=False)
    return done.stdout.decode(errors="replace")
