"""One child process with its process group: it is followed, its output passed on, and ended."""

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

#: Seconds that a process group has between SIGTERM and SIGKILL.
GRACE_S = 2.0
#: Seconds until a stop is noticed at the latest; output and the end are noticed at once.
TURN_S = 0.05
_PIECE = 65536
#: Characters of output that are remembered to find the last line in.
_TAIL = 2000


class Tail:
    """Passes the output of a program on as text, and remembers its last line.

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
        """Take in a piece; a character may be cut in two."""
        self._print(self._decoder.decode(piece))

    def close(self) -> None:
        """Tell of a character that was never completed."""
        self._print(self._decoder.decode(b"", final=True))

    def last_line(self) -> str:
        """Give the last line that is not blank, or nothing."""
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
    """Run a program in a session of its own, and follow it until its main process has ended.

    Its output, both streams in one, goes to ``output`` in pieces and is not kept; its input is
    empty; ``env`` is all of its environment. Background processes that it leaves behind go on, and
    are not waited for even while they hold the pipe. A stop or the time-out ends the whole group.
    Raises OSError or ValueError if it cannot be started.
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
        # What runs as another user (sudo) cannot be killed: do not wait for it for ever.
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
        process.stdout.close()
    seconds = time.monotonic() - began
    return Ended(process.returncode, why, seconds, follower.last_line())


class _Follower:
    """Waits for output and for the end of a process at once, without a thread."""

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
        """Follow the process until it has ended, or say why it has to."""
        while not self._turn():
            if stop.is_set():
                return "stop"
            if deadline is not None and time.monotonic() >= deadline:
                return "timeout"
        return None

    def end_group(self) -> None:
        """End every process of the group: SIGTERM, and SIGKILL for what is left after a grace."""
        group = self._process.pid
        _signal_group(group, signal.SIGTERM)
        deadline = time.monotonic() + GRACE_S
        while time.monotonic() < deadline:
            if self._turn() and not _group_lives(group):
                return
        _signal_group(group, signal.SIGKILL)

    def drain(self) -> None:
        """Pass on what the pipe still holds, at most what it can hold: others may write on."""
        left = fcntl.fcntl(self._pipe, fcntl.F_GETPIPE_SZ)
        while left > 0 and (size := self._pass_on()):
            left -= size
        self._tail.close()

    def last_line(self) -> str:
        """Give the last line that is not blank, or nothing."""
        return self._tail.last_line()

    def _turn(self) -> bool:
        """Wait a moment for output or the end; True once the main process has ended."""
        for key, _ in self._selector.select(TURN_S):
            if key.fd == self._end:
                self._selector.unregister(self._end)
                self._ended = True
            elif self._pass_on() == 0:
                self._selector.unregister(self._pipe)
        return self._ended

    def _pass_on(self) -> int | None:
        """Pass one piece on; its size, 0 at the end of the output, None if there is nothing now."""
        try:
            piece = os.read(self._pipe, _PIECE)
        except BlockingIOError:
            return None
        self._tail.write(piece)
        return len(piece)


def _group_lives(group: int) -> bool:
    """Say whether a process group has a member that still runs.

    The number stays taken as long as the group has a member, so that this asks for no other's.
    """
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    # Ended ones are members until somebody takes note of them, which no one may do in a container.
    return any(_runs_in(group, entry) for entry in os.listdir("/proc") if entry.isdigit())


def _runs_in(group: int, pid: str) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            stat = file.read()
    except OSError:
        return False
    # The program's name stands in brackets, and may hold anything.
    state, _, its_group = stat[stat.rindex(")") + 2 :].split()[:3]
    return int(its_group) == group and state not in "ZX"


def _signal_group(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
