# SPDX-License-Identifier: Apache-2.0
"""Run a command on this machine as a job, pass its output on, and end its processes.

A shortage of this machine (of files, processes or memory) fails no action: what needs more waits.
"""

from __future__ import annotations

import errno
import logging
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from io import FileIO
from pathlib import Path
from typing import TypeVar

from applier.backoff import delays_s
from applier.contracts import Ended, StopSignal
from applier.errors import ActionFailed, JobLost, shortage_in
from applier.machines import following, found_jobs, job_scripts
from applier.machines.attempt_jobs import ENDED, AttemptJobs
from applier.machines.following import POLL_S, Job, Piece, Tail, follow, let_go_of
from applier.machines.found_jobs import FoundJob, JobState
from applier.machines.job_names import REMOVED, VARIABLE

LOG = logging.getLogger(__name__)
Made = TypeVar("Made")

#: The longest pause between two checks for output and for a stop, in seconds, which is reached
#: while there is no output. The end of a command ends the pause.
LONGEST_POLL_S = 0.5
#: The seconds between two tries during a shortage: the first, and the longest.
FIRST_S, LONGEST_S = 0.1, 2.0
_PIECE = 65536


def end(folder: Path, mark: str, grace_s: float | None = None) -> None:
    """End a job: SIGTERM, and SIGKILL for processes that are left after ``grace_s`` seconds.

    By default, these are GRACE_S. Returns when that is done.
    """
    grace_s = following.GRACE_S if grace_s is None else grace_s
    found_jobs.shell(job_scripts.ending(folder.name, mark, grace_s, str(folder.parent)))


def remove(folders: Iterable[Path]) -> None:
    """Rename the folders of jobs, then delete them; log each that cannot be removed.

    ``actionplan job list`` still shows one that was not renamed; :func:`sweep` deletes the others.
    """
    for folder in folders:
        removed = folder.with_name(f"{REMOVED}{folder.name}")
        try:
            # A command that is about to begin there must not find half a folder.
            folder.rename(removed)
            shutil.rmtree(removed)
        except FileNotFoundError:
            continue
        except OSError as reason:
            LOG.warning("The job %s cannot be removed: %s", folder, reason.strerror)


def sweep(place: Path) -> None:
    """Remove the folders that interrupted calls of :func:`remove` have left; ignore errors."""
    for left in place.glob(f"{REMOVED}*"):
        shutil.rmtree(left, ignore_errors=True)


class LocalJob(Job):
    """A job on this machine."""

    host: str | None = None

    def __init__(self, place: Path, stop: StopSignal, jobs: AttemptJobs) -> None:
        self._stop, self._jobs, self._name = stop, jobs, jobs.next()
        self._folder = place / self._name.folder
        self._child: subprocess.Popen[bytes] | None = None
        self._out: FileIO | None = None
        self.is_over = False
        self.began = time.monotonic()

    def run(
        self,
        program: Sequence[str],
        tail: Tail,
        env: Mapping[str, str],
        cwd: str | None,
        timeout_s: float | None,
    ) -> Ended:
        """Start the job unless it has begun, and follow it to its end.

        Background processes of the program keep running, and are not waited for. The time-out
        counts from the start of the job. ``env`` is the complete environment. After its start, an
        error of the system is a JobLost.
        """
        has_begun = False
        try:
            once_granted(partial(self._begin, program, env, cwd), self._stop)
            has_begun = True
            return once_granted(
                partial(follow, self, tail, self._stop, self._jobs.let_go, timeout_s), self._stop
            )
        except JobLost:
            raise
        except BaseException as reason:
            if isinstance(reason, OSError) and self._stop.is_set() and self._jobs.let_go.is_set():
                raise let_go_of(None) from reason
            if has_begun:  # whatever happened here, the command does not outlive it
                self._end_after(reason)
            raise
        finally:
            self._reap()

    def _begin(self, program: Sequence[str], env: Mapping[str, str], cwd: str | None) -> None:
        self._folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self._makes_folder():
            try:
                found = once_granted(self._begun, self._stop)
            except OSError as reason:
                raise _may_go_on(reason) from reason
            if found.state is not JobState.NONE or found.left:
                self.began -= found.age_s or 0.0
                return
        try:
            _check_program(program, env, cwd)
            self._check_may_begin()
        except (ActionFailed, OSError, ValueError):
            with suppress(OSError):  # it is not empty if another applier was about to begin
                self._folder.rmdir()
            raise
        self._start(program, env, cwd)

    def _makes_folder(self) -> bool:
        """Make the folder; return False if it is there. Raises ActionFailed if it was removed."""
        if self._jobs.was_made_before(self._name):
            if not self._folder.is_dir():
                raise ActionFailed(f"not started: {ENDED}")
            return False
        try:
            self._folder.mkdir(mode=0o700)
        except FileExistsError:
            return False
        return True

    def _begun(self) -> FoundJob:
        """Wait while a wrapper is starting and has not written its ``pid``; return the job then.

        A stop ends the wait: the job still has the wrapper in ``left``.
        """
        found = self._look()
        while found.state is JobState.NONE and found.left and not self._stop.is_set():
            self._stop.wait(POLL_S)
            found = self._look()
        return found

    def _check_may_begin(self) -> None:
        """Raise ActionFailed if another applier forbids the attempt, or has recorded its end."""
        self._jobs.begin()
        first = self._jobs.first
        if first is not None and not self._folder.with_name(first).is_dir():
            raise ActionFailed(f"not started: {ENDED}")

    def _start(self, program: Sequence[str], env: Mapping[str, str], cwd: str | None) -> None:
        """Start the wrapper, once its output is open: there may be no descriptor later."""
        out = FileIO(self._folder / "out", "a+")
        try:
            self._child = subprocess.Popen(
                [
                    found_jobs.SHELL,
                    "-c",
                    job_scripts.WRAPPER,
                    "job",
                    str(self._folder),
                    cwd or "",
                    *program,
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**env, VARIABLE: self._name.mark},
                start_new_session=True,
            )
        except BaseException:
            out.close()
            raise
        self._out = out

    def pieces(self, tail: Tail) -> Generator[Piece]:
        opened, self._out = self._out, None
        with opened or FileIO(self._folder / "out") as out, closing(_Watched()) as wrapper:
            out.seek(tail.seen)
            if self._child is not None:
                wrapper.watch(self._child.pid)
            self.is_over, pause_s = False, POLL_S
            while not self.is_over:
                self.is_over = wrapper.has_ended(pause_s) and not self._goes_on(wrapper, pause_s)
                pause_s = min(2 * pause_s, LONGEST_POLL_S)
                # No more than there is now: what it leaves running may print for ever.
                size = os.fstat(out.fileno()).st_size
                while out.tell() < size and (piece := self._piece(out, tail)):
                    pause_s = POLL_S
                    yield piece
                yield None

    def _piece(self, out: FileIO, tail: Tail) -> Piece:
        """Return the next piece of output, or the place up to which it was dropped."""
        piece, file = out.read(_PIECE), self._folder / "dropped"
        dropped = int(file.read_text(encoding="utf-8")) if file.exists() else 0
        return out.seek(dropped) if tail.seen < dropped else piece

    def _goes_on(self, wrapper: _Watched, pause_s: float) -> bool:
        """Return whether processes of the job run, although the watched wrapper does not.

        That may be the wrapper of another applier, which is watched from then on; one that has not
        written its ``pid`` yet; or processes whose wrapper was killed. Their work is not done.
        """
        if (self._folder / "rc").exists():
            return False
        self._reap()
        found = self._look()
        if found.state is JobState.RUNS:
            with suppress(FileNotFoundError, IndexError, ValueError):
                text = (self._folder / "pid").read_text(encoding="utf-8")
                wrapper.watch(int(text.split()[0]))
        elif found.left:
            self._stop.wait(pause_s)
        return found.is_running

    def end(self) -> bool:
        end(self._folder, self._name.mark)
        return True

    def found(self) -> FoundJob:
        path = str(self._folder)
        with suppress(FileNotFoundError, ValueError):
            code = int((self._folder / "rc").read_text(encoding="utf-8"))
            return FoundJob(path, JobState.ENDED, found_jobs.exit_code(code))
        found = replace(self._look(), folder=path)
        if found.state is JobState.NONE and not found.left and (self._folder / "pid").exists():
            return replace(found, state=JobState.KILLED)  # before its ``pid`` was whole
        return found

    def _look(self) -> FoundJob:
        name = self._folder.name
        alike = found_jobs.find(self._folder.parent, name, self._name.mark)
        return next((job for job in alike if job.folder == name), FoundJob(name, JobState.MISSING))

    def _end_after(self, reason: BaseException) -> None:
        """End the job after an error; raise JobLost for an OSError, or if that is not possible."""
        try:
            end(self._folder, self._name.mark, 0.0)
            is_over = not self._look().is_running
        except OSError as error:
            raise _may_go_on(error) from reason
        if isinstance(reason, OSError):
            if not is_over:
                raise _may_go_on(reason) from reason
            text = f"the command was ended after an error: {reason.strerror or reason}"
            raise JobLost(text, is_over=True) from reason

    def _reap(self) -> None:
        if self._child is not None and self._child.poll() is None:
            # A process of another user (sudo) cannot be killed, and a job may be let go. A set
            # return code keeps Python from warning that the process is still running.
            self._child.returncode = 0


class _Watched:
    """Waits for the end of a process, which need not be a child; none has ended."""

    _handle = -1

    def watch(self, pid: int) -> None:
        """Watch this process from now on."""
        self.close()
        with suppress(ProcessLookupError):
            self._handle = os.pidfd_open(pid)

    def close(self) -> None:
        """Watch no process any more."""
        if self._handle >= 0:
            os.close(self._handle)
        self._handle = -1

    def has_ended(self, timeout_s: float) -> bool:
        """Wait up to ``timeout_s`` seconds; return whether it has ended."""
        waits = select.poll()
        if self._handle >= 0:
            waits.register(self._handle, select.POLLIN)
        return self._handle < 0 or bool(waits.poll(timeout_s * 1000))


def once_granted(make: Callable[[], Made], stop: StopSignal) -> Made:
    """Call a function again and again while it fails for a shortage; log that once.

    ``make`` must be able to go on where it failed. At a stop, the error is raised.
    """
    is_told = False
    for pause_s in delays_s(FIRST_S, LONGEST_S):
        try:
            return make()
        except OSError as reason:
            if shortage_in(reason) is None:
                raise
            if not is_told:
                LOG.warning("%s; a command waits until that is over", reason.strerror)
            is_told = True
            if stop.wait(pause_s):
                raise
    raise AssertionError  # the delays have no end


def _check_program(program: Sequence[str], env: Mapping[str, str], cwd: str | None) -> None:
    """Raise the error that would be raised if the program were started directly."""
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


def _may_go_on(reason: OSError) -> JobLost:
    text = f"the command can no longer be followed: {reason.strerror or reason}; it may go on"
    return JobLost(text, is_over=False)
