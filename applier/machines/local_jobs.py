# SPDX-License-Identifier: Apache-2.0
"""Run a command on this machine as a job, pass its output on, and end its processes."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from io import FileIO
from pathlib import Path

from applier.backoff import delays_s
from applier.contracts import Ended, StopSignal
from applier.errors import ActionFailed, JobLost, shortage_in
from applier.machines import found_jobs, job_scripts
from applier.machines.attempt_jobs import ENDED, LET_GO, AttemptJobs
from applier.machines.found_jobs import FoundJob, JobState
from applier.machines.job_names import REMOVED, VARIABLE, JobName, unnamed
from applier.machines.local_job_process import Process, check_program, once_granted
from applier.machines.output_tail import Tail

LOG = logging.getLogger(__name__)

#: Seconds between SIGTERM and SIGKILL.
GRACE_S = 2.0
#: The seconds between two checks for output and for a stop: the first, and the longest, which are
#: reached while there is no output. The end of a command ends the pause.
POLL_S, LONGEST_POLL_S = 0.05, 0.5
_PIECE = 65536
_SHELL = "/bin/sh"


def run(
    arguments: Sequence[str],
    *,
    stop: StopSignal,
    output: Callable[[str], None],
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    timeout_s: float | None = None,
    place: Path | None = None,
    jobs: AttemptJobs | None = None,
) -> Ended:
    """Run a program as a job, or follow the job if it was started before, until it has ended.

    Both output streams are passed to ``output`` in pieces, from the beginning; the input is empty;
    ``env`` is the complete environment. Background processes of the program keep running, and are
    not waited for. A stop or the time-out, which counts from the start of the job, ends all its
    processes. Only if ``jobs`` has let go of them, a stop leaves them running and raises JobLost.
    ``place`` is the folder of the jobs, and ``jobs`` are those of its attempt; unless both are
    given, the job is new, and is removed at its end. Raises OSError or ValueError if the program
    cannot be started, ActionFailed if another applier forbids it, and JobLost if its end is not
    known. After its start, an error of the system is a JobLost as well.
    """
    environment = dict(os.environ if env is None else env)
    with ExitStack() as stack:
        if place is None or jobs is None:
            temporary = tempfile.TemporaryDirectory(
                prefix="actionplan-", ignore_cleanup_errors=True
            )
            job = LocalJob(Path(stack.enter_context(temporary)), unnamed())
        else:
            job = LocalJob(place, jobs.next(), jobs)
        return job.run(arguments, stop, Tail(output), environment, cwd, timeout_s)


def find(place: Path, prefix: str = "", mark: str = "") -> list[FoundJob]:
    """Return the jobs in ``place`` whose folders begin with a prefix.

    With a ``mark``, a job whose wrapper does not run has the processes that carry the mark.
    """
    if not place.is_dir():
        return []
    tag = "job"
    printed = _shell(job_scripts.FIND, tag, place, prefix, mark)
    return list(found_jobs.parse(printed, tag))


def end(folder: Path, mark: str, grace_s: float | None = None) -> None:
    """End a job: SIGTERM, and SIGKILL for processes that are left after ``grace_s`` seconds.

    By default, these are GRACE_S. Returns when that is done.
    """
    tenths = round((GRACE_S if grace_s is None else grace_s) * 10)
    _shell(job_scripts.END, folder.parent, folder.name, mark, tenths)


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


class LocalJob:
    """A job on this machine; only the thread of its action uses it."""

    def __init__(self, place: Path, name: JobName, jobs: AttemptJobs | None = None) -> None:
        self._folder, self._name, self._jobs = place / name.folder, name, jobs
        self._child: subprocess.Popen[bytes] | None = None
        self._out: FileIO | None = None

    def run(
        self,
        program: Sequence[str],
        stop: StopSignal,
        tail: Tail,
        env: Mapping[str, str],
        cwd: str | None,
        timeout_s: float | None,
    ) -> Ended:
        """Start the job unless it has begun, and follow it to its end; see :func:`run`."""
        try:
            found = once_granted(partial(self._begin, program, env, cwd, stop), stop)
        except OSError as reason:
            if self._is_let_go():
                raise JobLost(LET_GO, is_over=False) from reason
            raise
        began = time.monotonic() - (found.age_s or 0.0)
        deadline = None if timeout_s is None else began + timeout_s
        # A job that has not begun is one that a stop has found while its wrapper started.
        why = "stop" if found.state is JobState.NONE else None
        try:
            if why is None:
                why = once_granted(partial(self._followed, tail, stop, deadline), stop)
            if why == "stop" and self._is_let_go():
                raise JobLost(LET_GO, is_over=False)
            if why:
                end(self._folder, self._name.mark)
                self._follow(tail, threading.Event(), time.monotonic() + GRACE_S)
            tail.close()
            code = once_granted(partial(self._code, why), stop)
        except JobLost:
            raise
        except BaseException as reason:  # whatever happened here, the command does not outlive it
            self._end_after(reason)
            raise
        finally:
            self._reap()
        return Ended(code, why, time.monotonic() - began, tail.last_line())

    def _is_let_go(self) -> bool:
        return self._jobs is not None and self._jobs.let_go.is_set()

    def _end_after(self, reason: BaseException) -> None:
        """End the job after an error; raise JobLost for an OSError, or if that is not possible."""
        try:
            end(self._folder, self._name.mark, 0.0)
            is_over = not self._found().is_running
        except OSError as error:
            raise _may_go_on(error) from reason
        if isinstance(reason, OSError):
            if not is_over:
                raise _may_go_on(reason) from reason
            text = f"the command was ended after an error: {reason.strerror or reason}"
            raise JobLost(text, is_over=True) from reason

    def _begin(
        self, program: Sequence[str], env: Mapping[str, str], cwd: str | None, stop: StopSignal
    ) -> FoundJob:
        self._folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self._makes_folder():
            try:
                found = once_granted(partial(self._begun, stop), stop)
            except OSError as reason:
                raise _may_go_on(reason) from reason
            if found.state is not JobState.NONE or found.left:
                return found
        try:
            check_program(program, env, cwd)
            self._check_may_begin()
        except (ActionFailed, OSError, ValueError):
            with suppress(OSError):  # it is not empty if another applier was about to begin
                self._folder.rmdir()
            raise
        self._start(program, env, cwd)
        return FoundJob(self._folder.name, JobState.RUNS)

    def _start(self, program: Sequence[str], env: Mapping[str, str], cwd: str | None) -> None:
        """Start the wrapper, once its output is open: there may be no descriptor later."""
        out = FileIO(self._folder / "out", "a+")
        try:
            self._child = subprocess.Popen(
                [_SHELL, "-c", job_scripts.WRAPPER, "job", str(self._folder), cwd or "", *program],
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

    def _makes_folder(self) -> bool:
        """Make the folder; return False if it is there. Raises ActionFailed if it was removed."""
        if self._jobs is not None and self._jobs.was_made_before(self._name):
            if not self._folder.is_dir():
                raise ActionFailed(f"not started: {ENDED}")
            return False
        try:
            self._folder.mkdir(mode=0o700)
        except FileExistsError:
            return False
        return True

    def _check_may_begin(self) -> None:
        """Raise ActionFailed if another applier forbids the attempt, or has recorded its end."""
        if self._jobs is not None:
            self._jobs.begin()
            if not self._folder.with_name(self._jobs.first).is_dir():
                raise ActionFailed(f"not started: {ENDED}")

    def _followed(self, tail: Tail, stop: StopSignal, deadline: float | None) -> str | None:
        """Pass output on until no process of the job runs; may be repeated; as :meth:`_follow`."""
        why = self._follow(tail, stop, deadline)
        if why is None and self._is_run_by_another(stop):
            why = self._follow(tail, stop, deadline)
        return why or self._follow_processes(tail, stop, deadline)

    def _follow(self, tail: Tail, stop: StopSignal, deadline: float | None) -> str | None:
        """Pass output on until the wrapper has ended; return None, or why it must be ended.

        These reasons are ``stop`` and ``timeout``.
        """
        pid = self._child.pid if self._child is not None else self._wrapper()
        opened, self._out = self._out, None
        with opened or FileIO(self._folder / "out") as out, Process(pid) as wrapper:
            out.seek(tail.seen)
            pause_s = POLL_S
            while not wrapper.has_ended(_at_most(pause_s, deadline)):
                pause_s = POLL_S if self._pass_on(out, tail) else min(2 * pause_s, LONGEST_POLL_S)
                if stop.is_set():
                    return "stop"
                if deadline is not None and time.monotonic() >= deadline:
                    return "timeout"
            size = os.fstat(out.fileno()).st_size
            while out.tell() < size and self._pass_on(out, tail):
                pass
        return None

    def _follow_processes(self, tail: Tail, stop: StopSignal, deadline: float | None) -> str | None:
        """Pass output on while processes run whose wrapper was killed; returns as :meth:`_follow`.

        Their work is not done, so the attempt goes on, though its exit code is lost.
        """
        for pause_s in delays_s(POLL_S, LONGEST_POLL_S):
            found = None if (self._folder / "rc").exists() else self._found()
            # Also what another wrapper's command has printed since the one here has ended.
            self._follow(tail, threading.Event(), None)
            if found is None or found.state is not JobState.KILLED or not found.left:
                return None
            if stop.is_set():
                return "stop"
            if deadline is not None and time.monotonic() >= deadline:
                return "timeout"
            stop.wait(_at_most(pause_s, deadline))
        raise AssertionError  # the delays have no end

    def _pass_on(self, out: FileIO, tail: Tail) -> bool:
        """Pass on a piece of output, or skip what was dropped; return whether there was any."""
        piece = out.read(_PIECE)
        dropped = self._dropped()
        if tail.seen < dropped:
            out.seek(dropped)
            tail.skip(dropped)
            return True
        tail.write(piece)
        return bool(piece)

    def _dropped(self) -> int:
        dropped = self._folder / "dropped"
        return int(dropped.read_text(encoding="ascii")) if dropped.exists() else 0

    def _is_run_by_another(self, stop: StopSignal) -> bool:
        """Return whether a wrapper of another applier has begun the job, not the one started here.

        The other wrapper may not have written its ``pid`` yet, so that is waited for.
        """
        if self._child is None or (self._folder / "rc").exists():
            return False
        self._reap()
        self._child = None
        return self._begun(stop).state in (JobState.RUNS, JobState.ENDED)

    def _begun(self, stop: StopSignal) -> FoundJob:
        """Wait while a wrapper is starting and has not written its ``pid``; return the job then.

        A stop ends the wait: the job still has the wrapper in ``left``.
        """
        found = self._found()
        while found.state is JobState.NONE and found.left and not stop.is_set():
            stop.wait(POLL_S)
            found = self._found()
        return found

    def _wrapper(self) -> int | None:
        """Return the process id of the wrapper of the job; None if it does not run."""
        if self._found().state is not JobState.RUNS:
            return None
        try:
            return int((self._folder / "pid").read_text(encoding="ascii").split()[0])
        except (OSError, ValueError, IndexError) as reason:
            if isinstance(reason, OSError) and shortage_in(reason):
                raise
            return None

    def _code(self, why: str | None) -> int | None:
        """Return the exit code; None if the command could not be ended.

        Raises JobLost if the code will never be known, ActionFailed if the wrapper could not write
        its ``pid``, for example to a full disk.
        """
        with suppress(FileNotFoundError, ValueError):
            code = int((self._folder / "rc").read_text(encoding="ascii"))
            return found_jobs.exit_code(code)
        found = self._found()
        if why and found.state is JobState.RUNS:
            return None
        if why:
            return -signal.SIGKILL
        has_begun = found.state is not JobState.NONE or (self._folder / "pid").exists()
        if not has_begun and not found.left:
            raise ActionFailed(f"not started: {self._folder} cannot be written")
        raise found_jobs.lost(found.state, found.left)

    def _found(self) -> FoundJob:
        prefix = self._folder.name
        for found in find(self._folder.parent, prefix, self._name.mark):
            if found.folder == prefix:
                return found
        return FoundJob(prefix, JobState.MISSING)

    def _reap(self) -> None:
        if self._child is not None and self._child.poll() is None:
            # A process of another user (sudo) cannot be killed, and a job may be let go. A set
            # return code keeps Python from warning that the process is still running.
            self._child.returncode = 0


def _may_go_on(reason: OSError) -> JobLost:
    text = f"the command can no longer be followed: {reason.strerror or reason}; it may go on"
    return JobLost(text, is_over=False)


def _at_most(pause_s: float, deadline: float | None) -> float:
    if deadline is None:
        return pause_s
    return max(0.0, min(pause_s, deadline - time.monotonic()))


def _shell(script: str, *arguments: object) -> str:
    """Run a script of :mod:`applier.machines.job_scripts`, and return its standard output.

    Raises JobLost if the shell fails, because its output may not be whole. It has a session of its
    own: an interrupt from the keyboard does not reach it.
    """
    done = subprocess.run(
        [_SHELL, "-s"],
        input=job_scripts.with_arguments(script, *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
        start_new_session=True,
    )
    if done.returncode != 0:
        text = f"the shell that looks for commands here has failed: exit code {done.returncode}"
        raise JobLost(text, is_over=False)
    return done.stdout.decode(errors="replace")
