# SPDX-License-Identifier: Apache-2.0
"""The state of a job on its machine, its exit code, and the error if its end is not known."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from applier.errors import JobLost

#: Above this, the exit code of a shell means a signal.
_SIGNALLED = 128


class JobState(StrEnum):
    """The state of a job, by the files in its folder and the processes of its machine."""

    #: There is no folder: it was never started, or its end was recorded and it was removed.
    MISSING = "missing"
    #: There is a folder, and the wrapper has not begun.
    NONE = "none"
    RUNS = "runs"
    ENDED = "ended"
    #: The machine was restarted while it ran.
    RESTARTED = "restarted"
    #: It was killed together with its wrapper.
    KILLED = "killed"
    #: There is no folder, and processes of it run: its folder is in another place of this machine.
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


def parse(printed: str, tag: str) -> Iterator[FoundJob]:
    """Yield the jobs of the lines that the script FIND has printed.

    >>> list(parse("welcome\\nT p.a.1.1 ended 7 -\\n", "T"))[0].code
    7
    """
    for line in printed.splitlines():
        words = line.split()
        if len(words) >= 5 and words[0] == tag:
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


def lost(state: JobState, left: tuple[int, ...] = (), host: str | None = None) -> JobLost:
    """Return the error for a job that was started, and whose end is not known."""
    where = f"{host}: " if host else ""
    if state is JobState.RESTARTED:
        machine = "the node" if host else "this machine"
        return JobLost(f"{where}{machine} was restarted while the command ran", is_over=True)
    if state is JobState.MISSING:
        text = f"{where}the folder of the command was removed while it ran"
        return JobLost(text, is_over=False)
    if left:
        text = f"{where}the shell of the command was killed, and processes of it still run: "
        text += _pids(left)
        return JobLost(text, is_over=False)
    return JobLost(f"{where}the command was killed together with its shell", is_over=True)


def _pids(pids: tuple[int, ...]) -> str:
    return ", ".join(map(str, pids))
