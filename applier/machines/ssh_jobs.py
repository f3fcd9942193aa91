# SPDX-License-Identifier: Apache-2.0
"""Follow one job on a node over SSH channels, and end its processes.

A shell reads a script from its input (:mod:`applier.machines.job_scripts`), so that the command
depends neither on the user's login shell nor on its quoting. The shell begins the job or finds it,
and copies its output. It reports the state of the job on the error stream, in lines that begin with
a tag. If the connection is lost, the job goes on, and another channel follows it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from concurrent.futures import wait
from contextlib import suppress
from functools import partial
from uuid import uuid4

import asyncssh

from applier.backoff import delays_s
from applier.contracts import Ended, StopSignal
from applier.errors import ActionFailed, JobLost
from applier.machines import following, job_scripts
from applier.machines.address import Address
from applier.machines.attempt_jobs import AttemptJobs
from applier.machines.connections import SHELL, Connections, NoAnswer, result, sentence
from applier.machines.following import POLL_S, Job, Piece, Tail, follow, let_go_of
from applier.machines.found_jobs import FoundJob, JobState, exit_code, parse

LOG = logging.getLogger(__name__)

#: The seconds to wait for more output after the job has ended, if the channel stays open: on a
#: loaded node or link, output may be on its way for as long.
DRAIN_S = 5.0
#: The most bytes of output that are read at once.
_PIECE = 65536
#: Seconds that a node has to answer a request to end a job.
_ANSWER_S = 5.0
#: The maximum number of bytes kept of the output of start-up files, and of the error stream.
_GREETING = 65536
#: Seconds between two attempts to connect again: the first, and the longest.
_RECONNECT_S, _LONGEST_RECONNECT_S = 0.2, 5.0
#: The most seconds for which a lost connection is tried again once the stop signal is set.
_STOP_PATIENCE_S = 10.0


class Channel:
    """What comes over one channel from a shell that follows a job, for another thread."""

    def __init__(
        self, tag: str, connections: Connections, process: asyncssh.SSHClientProcess[bytes]
    ) -> None:
        self._tag, self._connections, self._process = tag.encode(), connections, process
        self._aside = b""
        self._output = self._read()
        self._listener = asyncio.create_task(self._listen())
        #: Whether the shell has reported a state of the job, or the channel is closed.
        self.has_told = False
        #: The words of the last line in which the shell reported the state of the job.
        self.words: list[str] = []
        #: How many seconds ago the job has begun, when the shell reported that.
        self.age_s = 0.0
        #: The exit code of what was run in place of the shell.
        self.refusal: int | None = None

    def send(self, script: bytes) -> None:
        """Send the script of a job to the shell."""

        def send() -> None:
            with suppress(BrokenPipeError):
                self._process.stdin.write(script)
                self._process.stdin.write_eof()

        self._connections.call(send)

    def close(self) -> None:
        """Close the channel."""
        self._connections.call(self._process.close)

    def pieces(self) -> Generator[Piece]:
        """Yield output, and None in pauses, until all was read.

        That is when the channel is closed, or DRAIN_S seconds after the shell has exited. Raises
        errors of asyncssh.
        """
        while True:
            reading = self._connections.start(self._next())
            while True:
                has_exited = self._process.returncode is not None
                if wait([reading], DRAIN_S if has_exited else POLL_S).done:
                    break
                if has_exited:
                    reading.cancel()
                    return
                yield None
            if (piece := result(reading)) == b"":
                return
            yield piece

    async def _next(self) -> Piece:
        return await anext(self._output, b"")

    async def _read(self) -> AsyncGenerator[Piece]:
        """Yield the place of the output, then the output, without that of start-up files."""
        data, reader, greeting = b"", self._process.stdout, self._tag + b"\n"
        while greeting not in data:
            if not (piece := await reader.read(_PIECE)):
                # No shell has started: what was printed instead is the reason.
                await self._listener
                self.refusal = self._process.exit_status
                yield data + self._aside
                return
            data = (data + piece)[-_GREETING:]
        data = data.partition(greeting)[2]
        while b"\n" not in data:
            if not (piece := await reader.read(_PIECE)):
                return
            data += piece
        place, _, data = data.partition(b"\n")
        yield int(place)
        while data or (data := await reader.read(_PIECE)):
            yield data
            data = b""
        await self._listener

    async def _listen(self) -> None:
        with suppress(asyncssh.Error, OSError):
            async for line in self._process.stderr:
                if line.startswith(self._tag + b" ") and line.endswith(b"\n"):
                    self.words = line.decode(errors="replace").split()[1:]
                    if self.words[0] == "begun":
                        self.age_s = float(self.words[1])
                    self.has_told = True
                else:
                    self._aside = (self._aside + line)[-_GREETING:]
        self.has_told = True


class RemoteJob(Job):
    """A job on a node.

    After a lost connection, it is followed on another one. JobLost is raised when that was tried
    for ``patience_s`` seconds, and ConnectionError if the node is not reached at all.
    """

    def __init__(
        self,
        connections: Connections,
        address: Address,
        stop: StopSignal,
        *,
        jobs: AttemptJobs,
        patience_s: float,
    ) -> None:
        self._connections, self._address, self._stop = connections, address, stop
        self._jobs, self._patience_s = jobs, patience_s
        self._name = jobs.next()
        self.host: str | None = str(address)
        self.began, self.is_over = time.monotonic(), False
        self._script: Callable[..., bytes] = partial(job_scripts.running, name=self._name)
        self._timeout_s: float | None = None
        #: Whether the job may have begun: a script was sent, or another applier ran the attempt.
        self._was_sent = jobs.is_taken_over
        #: Whether a state of the job was reported, on the present channel and on any.
        self._has_answered = self._is_known = False
        self._cut_at: float | None = None
        self._channel: Channel | None = None
        #: Its end; its state is RUNS while the node has not told that it has ended.
        self._found = FoundJob(self._name.folder, JobState.RUNS)
        self._lost_at: float | None = None
        self._pauses = delays_s(_RECONNECT_S, _LONGEST_RECONNECT_S)

    def run(
        self,
        program: Sequence[str],
        tail: Tail,
        env: Mapping[str, str],
        cwd: str | None,
        timeout_s: float | None,
    ) -> Ended:
        """Start the job unless it has begun, and follow it to its end; see Remote.run."""
        is_there = self._jobs.was_made_before(self._name)
        self._script = partial(
            self._script, program=program, env=env, cwd=cwd or "", is_there=is_there
        )
        self._timeout_s = timeout_s
        try:
            return follow(self, tail, self._stop, self._jobs.let_go, timeout_s)
        except BaseException:
            if tail.is_broken:  # the command does not outlive its output
                with suppress(ConnectionError, ActionFailed):
                    self._end()
            raise
        finally:
            # Without its folder, a job counts as ended.
            if self._jobs.attempt is None and self._was_sent and not self._connections.is_closed:
                self._connections.remove_jobs(self._address, [self._name.folder])

    def pieces(self, tail: Tail) -> Generator[Piece]:
        while True:
            try:
                yield from self._pieces(tail.seen)
            except JobLost:
                raise
            except (ConnectionError, ActionFailed) as reason:
                if not self._was_sent or (isinstance(reason, ActionFailed) and self._has_answered):
                    raise
                if self._found.state is not JobState.RUNS:
                    return  # it was ended on another connection
                self._wait(reason)
            else:
                return

    def end(self) -> bool:
        if not self._was_sent and self._stop.is_set():
            raise ActionFailed(f"{self.host}: stopped before it was reached")
        if not self._was_sent:
            raise ConnectionError(f"{self.host} was not reached within {self._timeout_s or 0:g} s")
        self._cut_at = self._cut_at or time.monotonic()
        is_waited_for = time.monotonic() < self._cut_at + _ANSWER_S
        if self._channel is not None and not self._channel.has_told and is_waited_for:
            return False
        self._end()
        return True

    def _end(self) -> None:
        grace_s = following.GRACE_S
        script = job_scripts.ending(self._name.folder, self._name.mark, grace_s)
        while True:
            try:
                printed = result(
                    self._connections.shell(self._address, script, grace_s + _ANSWER_S)
                )
            except NoAnswer:
                return
            except (ConnectionError, ActionFailed) as reason:
                self._wait(reason)
            else:
                self._found = next(parse(printed), self._found)
                return

    def found(self) -> FoundJob:
        return self._found

    def _pieces(self, seen: int) -> Generator[Piece]:
        """Yield output from ``seen`` on, over a new channel, until the shell there has ended."""
        tag = uuid4().hex
        self._has_answered = self.is_over = False
        self._channel = None
        opening = self._connections.submit(self._address, partial(_opened, tag, self._connections))
        try:
            while not wait([opening], POLL_S).done:
                yield None
            self._channel = channel = result(opening)
            may_begin = not (self._is_known or self._cut_at)
            script = self._script(tag=tag, seen=seen, may_begin=may_begin)
            self._jobs.begin()
            self._was_sent = True
            channel.send(script)
            for piece in channel.pieces():
                self._note(channel)
                yield piece
            self._note(channel)
            self._found = self._end_of(channel)
        except (asyncssh.Error, BrokenPipeError) as reason:
            text = f"{self.host}: the connection was lost: {sentence(reason)}"
            raise ConnectionError(text) from reason
        finally:
            if not opening.cancel() and not opening.cancelled() and opening.exception() is None:
                opening.result().close()

    def _note(self, channel: Channel) -> None:
        if channel.words:
            self._is_known = self._has_answered = True
            self.is_over, self._lost_at = channel.words[0] != "begun", None
            self.began = min(self.began, time.monotonic() - channel.age_s)

    def _end_of(self, channel: Channel) -> FoundJob:
        """Return what the shell has reported last; raise ConnectionError if that is no end.

        Raises ActionFailed if the node cannot begin the job.
        """
        state, *rest = channel.words or [""]
        if state == "behind":
            raise ConnectionError(f"{self.host}: output was dropped before it was read")
        if state in ("refused", JobState.NONE):
            text = " ".join(rest) or "its folder cannot be written"
            raise ActionFailed(f"{self.host}: the command cannot be started: {text}")
        if state == JobState.ENDED:
            return FoundJob(self._name.folder, JobState.ENDED, exit_code(int(rest[0])))
        if state in (*JobState,):
            return FoundJob(self._name.folder, JobState(state), left=tuple(map(int, rest)))
        if channel.refusal is not None:
            return FoundJob(self._name.folder, JobState.ENDED, channel.refusal)
        raise ConnectionError(f"{self.host}: the connection was lost: the channel was closed")

    def _wait(self, reason: Exception) -> None:
        """Wait before the next try to connect; raise JobLost when that was tried for long."""
        now, patience_s = time.monotonic(), self._patience_s
        if self._lost_at is None:
            self._lost_at, self._pauses = now, delays_s(_RECONNECT_S, _LONGEST_RECONNECT_S)
        is_stopped = self._stop.is_set()
        if is_stopped:
            patience_s = min(patience_s, _STOP_PATIENCE_S)
        if (is_stopped and self._jobs.let_go.is_set()) or self._connections.is_closed:
            raise let_go_of(self.host) from reason
        left_s = self._lost_at + patience_s - now
        if left_s <= 0:
            text = f"{reason}; it was not reached again within {patience_s:g} s, and the "
            raise JobLost(text + "command may still run there", is_over=False) from reason
        LOG.info("Reconnecting, because a command runs there: %s", reason)
        self._jobs.let_go.wait(min(next(self._pauses), left_s))


async def _opened(
    tag: str, connections: Connections, connection: asyncssh.SSHClientConnection
) -> Channel:
    return Channel(tag, connections, await connection.create_process(SHELL, encoding=None))
