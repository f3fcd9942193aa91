# SPDX-License-Identifier: Apache-2.0
"""Run a child process, pass its output on, and terminate its process group."""

from __future__ import annotations

import codecs
import fcntl
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from applier.contracts import Ended, StopSignal

#: Seconds between SIGTERM and SIGKILL.
GRACE_S = 2.0
#: The seconds between two checks of the stop signal. Output and the end of a process are noticed at
#: once.
POLL_S = 0.05
_PIECE = 65536
#: The number of characters of output in which the last line is searched.
_TAIL = 2000


class Tail:
    """Passes the output of a program on as text, and keeps its last line.

    >>> tail = Tail(lambda text: None)
    >>> tail.write(b"one\\ntw"); tail.write(b"o\\n\\n"); tail.close()
    >>> tail.last_line()
    'two'
    """

    def __init__(self, output: Callable[[str], None]) -> None:
        self._output = output
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._end = ""

    def write(self, piece: bytes) -> None:
        """Pass a piece on; it may end inside a character."""
        self._print(self._decoder.decode(piece))

    def close(self) -> None:
        """Pass on a replacement for a character that was never completed."""
        self._print(self._decoder.decode(b"", final=True))

    def last_line(self) -> str:
        """Return the last line that is not blank, or an empty text."""
        lines = [line.strip() for line in self._end.splitlines()]
        return next((line for line in reversed(lines) if line), "")

    def _print(self, text: str) -> None:
        if text:
            self._end = (self._end + text[-_TAIL:])[-_TAIL:]
            self._output(text)


def run(
    arguments: Sequence[str],
    *,
    stop: StopSignal,
    output: Callable[[str], None],
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    timeout_s: float | None = None,
) -> Ended:
    """Run a program in a new session, and wait until its main process has ended.

    Both output streams are passed to ``output`` in pieces; the input is empty; ``env`` is the
    complete environment. Background processes of the program keep running, and are not waited for,
    even if they have the pipe open. A stop or the time-out ends the whole group. Raises OSError or
    ValueError if the program cannot be started.
    """
    began = time.monotonic()
    process = subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=env,
        cwd=cwd,
        bufsize=0,
        start_new_session=True,
    )
    assert process.stdout is not None  # noqa: S101 - for the type checker: it has a pipe
    try:
        with _Follower(process, process.stdout.fileno(), output) as follower:
            why = follower.follow(stop, None if timeout_s is None else began + timeout_s)
            if why:
                follower.end_group()
            follower.drain()
    finally:
        if process.poll() is None:
            _signal_group(process.pid, signal.SIGKILL)
        # A process of another user (sudo) cannot be killed: do not wait for it forever.
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
        process.stdout.close()
    seconds = time.monotonic() - began
    return Ended(process.returncode, why, seconds, follower.last_line())


class _Follower:
    """Waits for output and for the end of a process at the same time, without a thread."""

    def __init__(
        self, process: subprocess.Popen[bytes], pipe: int, output: Callable[[str], None]
    ) -> None:
        self._process, self._pipe, self._tail = process, pipe, Tail(output)
        self._ended = False

    def __enter__(self) -> _Follower:
        self._end = os.pidfd_open(self._process.pid)
        self._selector = selectors.DefaultSelector()
        os.set_blocking(self._pipe, False)
        self._selector.register(self._pipe, selectors.EVENT_READ)
        self._selector.register(self._end, selectors.EVENT_READ)
        return self

    def __exit__(self, *_: object) -> None:
        self._selector.close()
        os.close(self._end)

    def follow(self, stop: StopSignal, deadline: float | None) -> str | None:
        """Wait until the process has ended, or return why it must end: stop or timeout."""
        while not self._poll():
            if stop.is_set():
                return "stop"
            if deadline is not None and time.monotonic() >= deadline:
                return "timeout"
        return None

    def end_group(self) -> None:
        """Terminate the group: SIGTERM, then SIGKILL for those that still run after ``GRACE_S``."""
        group = self._process.pid
        _signal_group(group, signal.SIGTERM)
        deadline = time.monotonic() + GRACE_S
        while time.monotonic() < deadline:
            if self._poll() and not _group_lives(group):
                return
        _signal_group(group, signal.SIGKILL)

    def drain(self) -> None:
        """Pass on the rest of the pipe, at most its size: other processes may still write to it."""
        left = fcntl.fcntl(self._pipe, fcntl.F_GETPIPE_SZ)
        while left > 0 and (size := self._pass_on()):
            left -= size
        self._tail.close()

    def last_line(self) -> str:
        """Return the last line that is not blank, or an empty text."""
        return self._tail.last_line()

    def _poll(self) -> bool:
        """Wait up to ``POLL_S`` for output or the end; return whether the process has ended."""
        for key, _ in self._selector.select(POLL_S):
            if key.fd == self._end:
                self._selector.unregister(self._end)
                self._ended = True
            elif self._pass_on() == 0:
                self._selector.unregister(self._pipe)
        return self._ended

    def _pass_on(self) -> int | None:
        """Pass one piece of output on; return its size, 0 at the end, None without new output."""
        try:
            piece = os.read(self._pipe, _PIECE)
        except BlockingIOError:
            return None
        self._tail.write(piece)
        return len(piece)


def _group_lives(group: int) -> bool:
    """Return whether a process group has a running member.

    The kernel does not reuse the number while the group has a member.
    """
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    # Zombies stay members until they are reaped, and a container may have no process that reaps.
    return any(_runs_in(group, entry) for entry in os.listdir("/proc") if entry.isdigit())


def _runs_in(group: int, pid: str) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            stat = file.read()
    except OSError:
        return False
    # The name, in parentheses, may contain any character.
    state, _, its_group = stat[stat.rindex(")") + 2 :].split()[:3]
    return int(its_group) == group and state not in "ZX"


def _signal_group(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
