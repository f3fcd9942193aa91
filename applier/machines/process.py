# SPDX-License-Identifier: Apache-2.0
"""Run a command on this machine as a job, pass its output on, and end its processes."""

from __future__ import annotations

import errno
import logging
import os
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from io import FileIO
from pathlib import Path

from applier.contracts import Ended, StopSignal
from applier.errors import JobLost
from applier.machines import found_jobs, job_scripts
from applier.machines.attempt_jobs import LET_GO
from applier.machines.found_jobs import FoundJob, JobState
from applier.machines.job_names import VARIABLE, JobName, unnamed
from applier.machines.output_tail import Tail

LOG = logging.getLogger(__name__)

#: Seconds between SIGTERM and SIGKILL.
GRACE_S = 2.0
#: The seconds between two looks for output and for a stop: the first, and the longest, which are
#: reached while there is no output. The end of a command is noticed at once.
POLL_S, LONGEST_POLL_S = 0.05, 0.5
_PIECE = 65536
_SHELL = "/bin/sh"
#: Wrappers that outlive their followers, kept so that Python does not warn about them.
_LEFT: list[subprocess.Popen[bytes]] = []


def run(
    arguments: Sequence[str],
    *,
    stop: StopSignal,
    output: Callable[[str], None],
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    timeout_s: float | None = None,
    place: Path | None = None,
    name: JobName | None = None,
    let_go: StopSignal | None = None,
) -> Ended:
    """Run a program as a job, or follow the job if it was started before, until it has ended.

    Both output streams are passed to ``output`` in pieces, from the beginning; the input is empty;
    ``env`` is the complete environment. Background processes of the program keep running, and are
    not waited for. A stop or the time-out, which counts from the start of the job, ends all its
    processes; if ``let_go`` is set as well, a stop leaves it running. ``place`` is the folder of
    the jobs; without it and a ``name``, it is a new job, which is removed at its end. Raises
    OSError or ValueError if the program cannot be started, and JobLost if its end is not known.
    """
    environment = dict(os.environ if env is None else env)
    _check(arguments, environment, cwd)
    with ExitStack() as stack:
        if place is None or name is None:
            temporary = tempfile.TemporaryDirectory(prefix="actionplan-")
            place, name = Path(stack.enter_context(temporary)), unnamed()
        job = LocalJob(place / name.folder, name)
        return job.run(arguments, stop, let_go, Tail(output), environment, cwd, timeout_s)


def find(place: Path, prefix: str = "", mark: str = "") -> list[FoundJob]:
    """Return the jobs whose folders begin with a prefix, and for one mark what is left of it."""
    if not place.is_dir():
        return []
    tag = "job"
    printed = _shell(job_scripts.FIND, tag, place, prefix, mark)
    return list(found_jobs.parse(printed, tag))


def end(folder: Path, mark: str, grace_s: float | None = None) -> None:
    """End a job: SIGTERM, and SIGKILL for what is left after ``grace_s``, by default GRACE_S."""
    tenths = round((GRACE_S if grace_s is None else grace_s) * 10)
    _shell(job_scripts.END, folder.parent, folder.name, mark, tenths)


def remove(folders: Iterable[Path]) -> None:
    """Remove jobs; what cannot be removed is logged, and ``actionplan job list`` shows it."""
    for folder in folders:
        try:
            shutil.rmtree(folder)
        except FileNotFoundError:
            continue
        except OSError as reason:
            LOG.warning("The job %s cannot be removed: %s", folder, reason.strerror)


class LocalJob:
    """A job on this machine, with its folder; the thread of its action uses it."""

    def __init__(self, folder: Path, name: JobName) -> None:
        self._folder, self._name = folder, name
        self._child: subprocess.Popen[bytes] | None = None

    def run(
        self,
        program: Sequence[str],
        stop: StopSignal,
        let_go: StopSignal | None,
        tail: Tail,
        env: Mapping[str, str],
        cwd: str | None,
        timeout_s: float | None,
    ) -> Ended:
        """Start the job unless it has begun, and follow it to its end."""
        found = self._begin(program, env, cwd, stop)
        began = time.monotonic() - (found.age_s or 0.0)
        deadline = None if timeout_s is None else began + timeout_s
        why = None
        try:
            why = self._follow(tail, stop, deadline)
            if why is None and self._is_run_by_another():
                why = self._follow(tail, stop, deadline)
            if why == "stop" and let_go is not None and let_go.is_set():
                raise JobLost(LET_GO, is_over=False)
            if why:
                end(self._folder, self._name.mark)
                self._follow(tail, threading.Event(), time.monotonic() + GRACE_S)
        except JobLost:
            raise
        except BaseException:
            end(self._folder, self._name.mark, 0.0)
            raise
        finally:
            self._reap()
        tail.close()
        return Ended(self._code(why), why, time.monotonic() - began, tail.last_line())

    def _begin(
        self, program: Sequence[str], env: Mapping[str, str], cwd: str | None, stop: StopSignal
    ) -> FoundJob:
        self._folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            self._folder.mkdir(mode=0o700)
        except FileExistsError:
            found = self._found()
            while found.state is JobState.NONE and found.left:
                stop.wait(POLL_S)
                found = self._found()
            if found.state is not JobState.NONE:
                return found
            (self._folder / "pid").unlink(missing_ok=True)
        (self._folder / "out").touch()
        self._child = subprocess.Popen(
            [_SHELL, "-c", job_scripts.WRAPPER, "job", str(self._folder), cwd or "", *program],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**env, VARIABLE: self._name.mark},
            start_new_session=True,
        )
        return FoundJob(self._folder.name, JobState.RUNS)

    def _follow(self, tail: Tail, stop: StopSignal, deadline: float | None) -> str | None:
        """Pass output on until the wrapper has ended, or return why it must end."""
        pid = self._child.pid if self._child is not None else self._wrapper()
        with open(self._folder / "out", "rb", buffering=0) as out, _Process(pid) as wrapper:
            out.seek(tail.seen)
            pause_s = POLL_S
            while not wrapper.has_ended(_at_most(pause_s, deadline)):
                pause_s = POLL_S if _pass_on(out, tail) else min(2 * pause_s, LONGEST_POLL_S)
                if stop.is_set():
                    return "stop"
                if deadline is not None and time.monotonic() >= deadline:
                    return "timeout"
            left = os.fstat(out.fileno()).st_size - out.tell()
            while left > 0 and (size := _pass_on(out, tail)):
                left -= size
        return None

    def _is_run_by_another(self) -> bool:
        """Return whether another wrapper began the job a moment before that of this follower."""
        if self._child is None or (self._folder / "rc").exists():
            return False
        self._reap()
        self._child = None
        return self._wrapper() is not None

    def _wrapper(self) -> int | None:
        """Return the process id of a wrapper that runs; None if it does not."""
        if self._found().state is not JobState.RUNS:
            return None
        try:
            return int((self._folder / "pid").read_text(encoding="ascii").split()[0])
        except (OSError, ValueError, IndexError):
            return None

    def _code(self, why: str | None) -> int | None:
        """Return the exit code; None if the command could not be ended. Raises JobLost."""
        with suppress(FileNotFoundError, ValueError):
            code = int((self._folder / "rc").read_text(encoding="ascii"))
            return found_jobs.exit_code(code)
        found = self._found()
        if why and found.state is JobState.RUNS:
            return None
        if why:
            return -signal.SIGKILL
        raise found_jobs.lost(found.state, found.left)

    def _found(self) -> FoundJob:
        prefix = self._folder.name
        for found in find(self._folder.parent, prefix, self._name.mark):
            if found.folder == prefix:
                return found
        return FoundJob(prefix, JobState.MISSING)

    def _reap(self) -> None:
        if self._child is not None and self._child.poll() is None:
            # A process of another user (sudo) cannot be killed, and a job may be let go.
            _LEFT.append(self._child)


class _Process:
    """Waits for the end of a process, which need not be a child; None has ended."""

    def __init__(self, pid: int | None) -> None:
        self._pid, self._handle = pid, -1

    def __enter__(self) -> _Process:
        if self._pid is not None:
            with suppress(ProcessLookupError):
                self._handle = os.pidfd_open(self._pid)
        self._poll = select.poll()
        if self._handle >= 0:
            self._poll.register(self._handle, select.POLLIN)
        return self

    def __exit__(self, *_: object) -> None:
        if self._handle >= 0:
            os.close(self._handle)

    def has_ended(self, timeout_s: float) -> bool:
        """Wait up to ``timeout_s`` seconds; return whether it has ended."""
        return self._handle < 0 or bool(self._poll.poll(timeout_s * 1000))


def _at_most(pause_s: float, deadline: float | None) -> float:
    if deadline is None:
        return pause_s
    return max(0.0, min(pause_s, deadline - time.monotonic()))


def _pass_on(out: FileIO, tail: Tail) -> int:
    piece = out.read(_PIECE)
    tail.write(piece)
    return len(piece)


def _shell(script: str, *arguments: object) -> str:
    """Run a script of :mod:`applier.machines.job_scripts`, and return what it prints."""
    done = subprocess.run(
        [_SHELL, "-s"],
        input=job_scripts.with_arguments(script, *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return done.stdout.decode(errors="replace")


def _check(program: Sequence[str], env: Mapping[str, str], cwd: str | None) -> None:
    """Raise the error that starting the program directly would raise."""
    job_scripts.check(program, {}, cwd)
    if cwd is not None and not os.path.isdir(cwd):
        os.stat(cwd)
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), cwd)
    name = program[0]
    if "/" not in name:
        if shutil.which(name, path=env.get("PATH", os.defpath)) is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        return
    path = os.path.join(cwd or "", name)
    os.stat(path)
    if os.path.isdir(path) or not os.access(path, os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
