# SPDX-License-Identifier: Apache-2.0
"""Follows a job to its end, here and on nodes alike: passes its output on, and ends it."""

from __future__ import annotations

import codecs
import threading
import time
from collections.abc import Callable, Generator
from contextlib import closing
from typing import Protocol

from applier.contracts import Ended, StopSignal
from applier.errors import JobLost
from applier.machines.found_jobs import FoundJob, code_of

#: Seconds between SIGTERM and SIGKILL.
GRACE_S = 2.0
#: The seconds between two checks for output and for a stop, unless a job says otherwise.
POLL_S = 0.05
#: The message about a command that its applier leaves running.
LET_GO = "this applier let go of the command, which goes on"
#: The number of characters of output in which the last line is searched.
_TAIL = 2000

#: A piece of output; the place in the output at which the next piece begins; or None after a pause.
Piece = bytes | int | None


class Tail:
    """Passes the output of a program on as text, and keeps its last line.

    >>> tail = Tail(lambda text: None)
    >>> tail.take(b"one\\ntw"); tail.take(b"o\\n\\n"); tail.close()
    >>> tail.last_line()
    'two'
    """

    def __init__(self, output: Callable[[str], None]) -> None:
        self._output = output
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._end = ""
        #: The place in the output up to which it was passed on, in bytes.
        self.seen = 0
        #: Whether the function to which it is passed on has raised an error.
        self.is_broken = False

    def take(self, piece: Piece) -> None:
        """Pass a piece on, which may end inside a character; a place tells what was left out."""
        if isinstance(piece, bytes):
            self.seen += len(piece)
            self._print(self._decoder.decode(piece))
        elif piece is not None:
            left_out, self.seen = piece - self.seen, piece
            if left_out > 0:
                self._print(f"\n[{left_out} bytes of output were dropped]\n")

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
            self.is_broken = True
            self._output(text)
            self.is_broken = False


class Job(Protocol):
    """A job that one thread follows: the same protocol for this machine and for nodes."""

    #: The machine in messages; None is this one.
    host: str | None
    #: The time of its start, by ``time.monotonic``.
    began: float
    #: Whether none of its processes runs any more: what comes is the rest of its output.
    is_over: bool

    def pieces(self, tail: Tail) -> Generator[Piece]:
        """Yield its output from ``tail.seen`` on, and None in pauses, while a process of it runs.

        May be called again after an error. After :meth:`end`, the rest of the output follows.
        """

    def end(self) -> bool:
        """End its processes: SIGTERM, and SIGKILL after GRACE_S seconds; wait for that.

        Returns False if it is still about to begin, and has to be asked again after more pieces.
        Raises an error if it cannot have begun.
        """

    def found(self) -> FoundJob:
        """Return how it has ended, after :meth:`pieces`; its state is RUNS if that is not known."""


def follow(
    job: Job, tail: Tail, stop: StopSignal, let_go: threading.Event, timeout_s: float | None
) -> Ended:
    """Pass the output of a job on until it has ended; end it at a stop or the time-out.

    Once ``let_go`` is set, a stop leaves it running and raises JobLost. Raises what the job raises,
    and as :func:`applier.machines.found_jobs.code_of`. May be repeated after an error.
    """
    why, until = None, 0.0
    with closing(job.pieces(tail)) as pieces:
        for piece in pieces:
            tail.take(piece)
            if why is not None:
                if until and time.monotonic() >= until:
                    break
            elif job.is_over:
                continue
            elif stop.is_set():
                if let_go.is_set():
                    raise let_go_of(job.host)
                why = "stop"
            elif timeout_s is not None and time.monotonic() >= job.began + timeout_s:
                why = "timeout"
            if why is not None and not until and job.end():
                until = time.monotonic() + GRACE_S
    tail.close()
    code = code_of(job.found(), why, job.host)
    return Ended(code, why, time.monotonic() - job.began, tail.last_line())


def let_go_of(host: str | None) -> JobLost:
    """Return the error for a command that goes on without this applier."""
    return JobLost(f"{host}: {LET_GO}" if host else LET_GO, is_over=False)
