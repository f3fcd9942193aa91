# SPDX-License-Identifier: Apache-2.0
"""Run one program on a node over an SSH channel, and end it reliably.

A shell reads a script from its input, so that the program depends neither on the user's login shell
nor on its quoting. The shell first prints its process id, which is also its process group. To end
the program, a second channel sends a signal to that group, because closing the first channel does
not end it.
"""

from __future__ import annotations

import asyncio
import queue
import re
import shlex
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any
from uuid import uuid4

import asyncssh

from applier.contracts import Ended
from applier.machines import process
from applier.machines.connections import sentence

#: The seconds to wait for more output after the program has ended, as a background process may have
#: the pipe open.
DRAIN_S = 1.0
#: The maximum of this wait if the reader of the output is slow.
_SLOW_S = 30.0
#: The number of queued pieces of output at which reading from the channel is paused.
_PIECES = 64
#: Seconds that a node has to answer a request to end a program.
_ANSWER_S = 5.0
#: The maximum number of bytes kept of the output before the process id, and of the error stream.
_GREETING = 65536
_END = """\
g=-%(group)d
kill -s TERM -- $g 2>/dev/null || g=%(group)d
kill -s TERM -- $g 2>/dev/null
i=0
while [ $i -lt %(turns)d ] && kill -s 0 -- $g 2>/dev/null; do sleep 0.1; i=$((i+1)); done
kill -s KILL -- $g 2>/dev/null
exit 0
"""


def script(
    mark: str, program: Sequence[str], env: Mapping[str, str] | None, cwd: str | None
) -> bytes:
    r"""Return the script for the shell. Raises ValueError for a name or value it cannot hold.

    >>> print(script("m", ["echo", "a b"], {"LANG": "C"}, "/srv").decode())
    exec 2>&1
    echo m $$
    cd -- /srv || exit 126
    export LANG=C
    exec echo 'a b' </dev/null
    <BLANKLINE>
    """
    for name, value in (env or {}).items():
        if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
            raise ValueError(f"{name!r} cannot be the name of a variable on a node")
        if "\0" in value:
            raise ValueError(f"the value of {name} has a NUL character")
    if any("\0" in word for word in (*program, cwd or "")):
        raise ValueError("embedded null byte")
    lines = ["exec 2>&1", f"echo {mark} $$"]
    lines += [f"cd -- {shlex.quote(cwd)} || exit 126"] if cwd else []
    lines += [f"export {name}={shlex.quote(value)}" for name, value in (env or {}).items()]
    lines.append(f"exec {shlex.join(program)} </dev/null")
    return "".join(f"{line}\n" for line in lines).encode()


class Channel(asyncssh.SSHClientSession[bytes]):
    """Receives the data of the channel, in the thread of the connections."""

    def __init__(self, mark: str, pieces: queue.SimpleQueue[bytes]) -> None:
        loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[None] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()
        self.group: int | None = None
        self.code: int | None = None
        self.broken: Exception | None = None
        self.is_paused = False
        self._mark, self._pieces = mark, pieces
        self._greeting = self._aside = b""
        self._channel: asyncssh.SSHClientChannel[bytes] | None = None

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        """Called when the channel is open."""
        self._channel = chan

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        """Called with a piece of output.

        The output of the user's start-up files is dropped: it comes before the process id, or on
        the error stream, which the script does not use.
        """
        if datatype is not None:
            self._aside = (self._aside + data)[-_GREETING:]
            return
        if self.group is None:
            self._greeting += data
            found = re.search(rb"%s (\d+)\n" % self._mark.encode(), self._greeting)
            if found is None:
                self._greeting = self._greeting[-_GREETING:]
                return
            self.group, data = int(found[1]), self._greeting[found.end() :]
        if data:
            self._pieces.put(data)
        if self._pieces.qsize() > _PIECES and self._channel and not self.is_paused:
            self.is_paused = True
            self._channel.pause_reading()

    def resume(self) -> None:
        """Resume reading if it was paused."""
        if self.is_paused and self._channel:
            self.is_paused = False
            self._channel.resume_reading()

    def exit_status_received(self, status: int) -> None:
        """Called when the program has exited."""
        self._exit(status)

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:  # noqa: ARG002
        """Called when a signal has ended the program."""
        self._exit(-_number(signal))

    def connection_lost(self, exc: Exception | None) -> None:
        """Called when the channel is closed, for whatever reason."""
        self.broken = exc
        if self.group is None:
            # No shell was started: its output says why.
            self._pieces.put(self._greeting + self._aside)
        for future in (self.exited, self.closed):
            if not future.done():
                future.set_result(None)

    def _exit(self, code: int) -> None:
        self.code = code
        if not self.exited.done():
            self.exited.set_result(None)


class RemoteProgram:
    """A program to run on a node; the thread of its action creates it and interrupts it."""

    def __init__(self, text: Callable[[str], bytes], host: str, loop: asyncio.AbstractEventLoop):
        self._mark = uuid4().hex
        self._script, self._host, self._loop = text(self._mark), host, loop
        self.pieces: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._cut: asyncio.Future[str] = loop.create_future()
        self._channel: Channel | None = None
        self._begun = False

    def cut(self, why: str, future: Future[Ended]) -> None:
        """Request the end of the program; if it has not begun, cancel its ``future``."""

        def end() -> None:
            if self._begun and not self._cut.done():
                self._cut.set_result(why)
            elif not self._begun:
                future.cancel()

        self._loop.call_soon_threadsafe(end)

    def taken(self) -> None:
        """Resume reading once the queue is half empty."""
        if self._channel is not None and self.pieces.qsize() < _PIECES // 2:
            self._loop.call_soon_threadsafe(self._channel.resume)

    async def run(self, connection: asyncssh.SSHClientConnection) -> Ended:
        """Run the program on this connection; the caller has to set ``last_line`` of the result."""
        began = time.monotonic()
        channel, session = await connection.create_session(
            lambda: Channel(self._mark, self.pieces), "exec /bin/sh -s", encoding=None
        )
        assert isinstance(session, Channel)  # noqa: S101 - for the type checker
        self._channel = session
        # Up to here nothing was started. From here on, the effect of a lost connection is not
        # known.
        self._begun = True
        with suppress(BrokenPipeError):
            channel.write(self._script)
            channel.write_eof()
        either: set[asyncio.Future[Any]] = {session.exited, self._cut}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        why = None if session.exited.done() else self._cut.result()
        if why:
            await self._end(connection, session)
        await self._drain(session)
        channel.close()
        if session.code is None and why is None:
            lost = sentence(session.broken) if session.broken else "the channel was closed"
            raise ConnectionError(f"{self._host}: the connection was lost: {lost}")
        return Ended(session.code, why, time.monotonic() - began, "")

    async def _drain(self, session: Channel) -> None:
        """Wait for the rest of the output; longer while its reader is slow."""
        deadline = time.monotonic() + _SLOW_S
        while not session.closed.done() and time.monotonic() < deadline:
            await asyncio.wait({session.closed}, timeout=DRAIN_S)
            if not session.is_paused:
                return

    async def _end(self, connection: asyncssh.SSHClientConnection, session: Channel) -> None:
        """Terminate the group: SIGTERM, then SIGKILL for those that still run after ``GRACE_S``."""
        if session.group is None:
            return
        text = _END % {"group": session.group, "turns": round(process.GRACE_S * 10)}
        with suppress(asyncssh.Error, OSError):  # TimeoutError is an OSError
            async with asyncio.timeout(process.GRACE_S + _ANSWER_S):
                await connection.run("exec /bin/sh -s", input=text, check=False)
        await asyncio.wait({session.exited}, timeout=process.GRACE_S)


def _number(name: str) -> int:
    """Return the number of a signal by its name in SSH, such as ``TERM``."""
    found = signal.Signals.__members__.get(f"SIG{name}")
    return int(found) if found else 0
