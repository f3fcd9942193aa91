# SPDX-License-Identifier: Apache-2.0
"""Follow one job on a node over an SSH channel, and end its processes.

A shell reads a script from its input (:mod:`applier.machines.job_scripts`), so that the command
depends neither on the user's login shell nor on its quoting. The shell begins the job or finds it,
and copies its output. It reports the state of the job on the error stream, in lines that begin with
a tag. If the connection is lost, the job goes on, and another channel follows it.
"""

from __future__ import annotations

import asyncio
import queue
import re
import signal
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any
from uuid import uuid4

import asyncssh

from applier.contracts import Ended
from applier.errors import ActionFailed
from applier.machines import found_jobs, job_scripts, local_jobs
from applier.machines.attempt_jobs import AttemptJobs
from applier.machines.connections import SHELL, answer, sentence
from applier.machines.found_jobs import JobState
from applier.machines.job_names import JobName

#: The seconds to wait for more output after the job has ended.
DRAIN_S = 1.0
#: The maximum of this wait if the reader of the output is slow.
_SLOW_S = 30.0
#: The number of queued pieces of output at which reading from the channel is paused.
_PIECES = 64
#: Seconds that a node has to answer a request to end a job.
_ANSWER_S = 5.0
#: Seconds within which a job has ended, or is given up, after it was cut.
END_S = 2 * (local_jobs.GRACE_S + _ANSWER_S)
#: The maximum number of bytes kept of the output of start-up files, and of the error stream.
_GREETING = 65536

#: Returns the script of a job; arguments: tag, bytes of output to leave out, whether it may begin.
MakeScript = Callable[[str, int, bool], bytes]


class Channel(asyncssh.SSHClientSession[bytes]):
    """Receives the data of one channel, in the thread of the connections."""

    def __init__(self, tag: str, pieces: queue.SimpleQueue[bytes | int]) -> None:
        loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[None] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()
        #: Done once the shell has reported a state of the job, or the channel is closed.
        self.told: asyncio.Future[None] = loop.create_future()
        #: The words of the last line in which the shell reported the state of the job.
        self.words: list[str] = []
        self.age_s = 0.0
        self.greeted = self.is_paused = False
        self.code: int | None = None
        self.broken: Exception | None = None
        self._tag, self._pieces = tag.encode(), pieces
        self._greeting = self._aside = self._first = b""
        self._is_placed = False
        self._channel: asyncssh.SSHClientChannel[bytes] | None = None

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        """Called when the channel is open."""
        self._channel = chan

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        """Called with a piece of output; the output of the user's start-up files is dropped."""
        if datatype is not None:
            self._listen(data)
            return
        if not self.greeted:
            self._greeting += data
            before, found, data = self._greeting.partition(self._tag + b"\n")
            if not found:
                self._greeting = before[-_GREETING:]
                return
            self.greeted = True
        if not self._is_placed:
            self._first += data
            line, found, data = self._first.partition(b"\n")
            if not found:
                return
            self._is_placed = True
            self._pieces.put(int(line))
        if data:
            self._pieces.put(data)
        if self._pieces.qsize() > _PIECES and self._channel and not self.is_paused:
            self.is_paused = True
            self._channel.pause_reading()

    def _listen(self, data: bytes) -> None:
        self._aside = (self._aside + data)[-_GREETING:]
        said = re.findall(rb"^%s (.*)\n" % self._tag, self._aside, re.MULTILINE)
        if said:
            self.words = said[-1].decode(errors="replace").split()
            if self.words[0] == "begun":
                self.age_s = float(self.words[1])
            _settle(self.told)

    def resume(self) -> None:
        """Resume reading if it was paused."""
        if self.is_paused and self._channel:
            self.is_paused = False
            self._channel.resume_reading()

    def exit_status_received(self, status: int) -> None:
        """Called when the shell has exited."""
        self.code = status
        _settle(self.exited)

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:  # noqa: ARG002
        """Called when a signal has ended the shell; the job may go on."""
        _settle(self.exited)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called when the channel is closed; ``exc`` is None if that was no error."""
        self.broken = exc
        if not self.greeted:
            # No shell has started: what was printed instead is the reason.
            self._pieces.put(self._greeting + self._aside)
        for future in (self.told, self.exited, self.closed):
            _settle(future)


class RemoteJob:
    """A job on a node; the thread of its action creates it, follows it and interrupts it.

    ``began`` is the time of its start, by ``time.monotonic``.
    """

    def __init__(
        self,
        name: JobName,
        script: MakeScript,
        host: str,
        loop: asyncio.AbstractEventLoop,
        jobs: AttemptJobs | None = None,
    ) -> None:
        self._name, self._make, self._host, self._loop = name, script, host, loop
        self._jobs = jobs
        #: Pieces of output. A number is the place in the output at which the next piece begins.
        self.pieces: queue.SimpleQueue[bytes | int] = queue.SimpleQueue()
        #: Whether the job may have begun: a script was sent, or another applier ran the attempt.
        self.was_sent = jobs is not None and jobs.is_taken_over
        #: Whether the node has reported a state of the job on the present channel.
        self.has_answered = False
        self.began = time.monotonic()
        self._is_known = False
        self._cut: asyncio.Future[str] = loop.create_future()
        self._channel: Channel | None = None

    def cut(self, why: str, future: Future[Ended]) -> None:
        """Request the end of the job; if it cannot have begun, cancel its ``future``.

        ``why`` is ``stop`` or ``timeout``. Does not wait.
        """

        def end() -> None:
            if not self._cut.done():
                self._cut.set_result(why)
            if not self.was_sent:
                future.cancel()

        self._loop.call_soon_threadsafe(end)

    def taken(self) -> None:
        """Resume reading from the channel if the queue of pieces is less than half full."""
        if self._channel is not None and self.pieces.qsize() < _PIECES // 2:
            self._loop.call_soon_threadsafe(self._channel.resume)

    async def run(self, connection: asyncssh.SSHClientConnection, seen: int) -> Ended:
        """Follow the job on this connection; the caller fills in ``last_line`` of the result.

        ``seen`` is the number of bytes of output that were received before. Raises ConnectionError
        if the connection is lost, JobLost if the end of the job is not known, ActionFailed if the
        node cannot begin it, or another applier forbids it.
        """
        tag = uuid4().hex
        channel, session = await connection.create_session(
            lambda: Channel(tag, self.pieces), SHELL, encoding=None
        )
        assert isinstance(session, Channel)  # noqa: S101 - for the type checker
        self._channel = session
        script = self._make(tag, seen, not self._is_known)
        try:
            if self._jobs is not None:
                self._jobs.begin()
            self.was_sent = True
            with suppress(BrokenPipeError):
                channel.write(script)
                channel.write_eof()
            return await self._watch(connection, session)
        finally:
            channel.close()

    async def _watch(self, connection: asyncssh.SSHClientConnection, session: Channel) -> Ended:
        first: set[asyncio.Future[Any]] = {session.told, self._cut}
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        if not session.told.done():
            await asyncio.wait({session.told}, timeout=_ANSWER_S)
        if session.words:
            self._is_known = self.has_answered = True
            self.began = min(self.began, time.monotonic() - session.age_s)
        either: set[asyncio.Future[Any]] = {session.exited, self._cut}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        why = None if session.exited.done() else self._cut.result()
        code = await self._end(connection, session) if why else None
        await self._drain(session)
        return Ended(self._code(session, why, code), why, time.monotonic() - self.began, "")

    def _code(self, session: Channel, why: str | None, code: int | None) -> int | None:
        """Return the exit code; None if the job could not be ended. Raises as :meth:`run`.

        ``code`` is what :meth:`_end` has returned. The channel may still have much output to send
        before it reports a state.
        """
        state, *rest = session.words or [""]
        if state == JobState.ENDED:
            return found_jobs.exit_code(int(rest[0]))
        if state == "behind":
            raise ConnectionError(f"{self._host}: output was dropped before it was read")
        if state == "refused" or (state == JobState.NONE and not rest):
            text = " ".join(rest) or "its folder cannot be written"
            raise ActionFailed(f"{self._host}: the command cannot be started: {text}")
        if why and state == JobState.KILLED:
            return -signal.SIGKILL
        if state in (*JobState,):
            raise found_jobs.lost(JobState(state), tuple(map(int, rest)), self._host)
        if session.code is not None and not session.greeted:
            return session.code
        if why and not session.closed.done():
            return code
        raise self._lost(session.broken)

    def _lost(self, reason: Exception | None) -> ConnectionError:
        why = "the channel was closed" if reason is None else sentence(reason)
        return ConnectionError(f"{self._host}: the connection was lost: {why}")

    async def _drain(self, session: Channel) -> None:
        """Wait for the rest of the output; longer while its reader is slow."""
        deadline = time.monotonic() + _SLOW_S
        while not session.closed.done() and time.monotonic() < deadline:
            await asyncio.wait({session.closed}, timeout=DRAIN_S)
            if not session.is_paused:
                return

    async def _end(self, connection: asyncssh.SSHClientConnection, session: Channel) -> int | None:
        """End the processes of the job, and wait up to GRACE_S seconds for its shell to exit.

        Returns the exit code; None if the node does not answer in time, or some of it is left.
        """
        tenths = round(local_jobs.GRACE_S * 10)
        script = job_scripts.with_arguments(
            job_scripts.END, "", self._name.folder, self._name.mark, tenths
        )
        try:
            async with asyncio.timeout(local_jobs.GRACE_S + _ANSWER_S):
                printed = await answer(connection, script)
        except TimeoutError:
            printed = ""
        except (asyncssh.Error, OSError) as reason:
            raise self._lost(reason) from reason
        await asyncio.wait({session.exited}, timeout=local_jobs.GRACE_S)
        for job in found_jobs.parse(printed, "job"):
            if job.state is JobState.ENDED:
                return job.code
            if job.state is JobState.KILLED and not job.left:
                return -signal.SIGKILL
        return None


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
