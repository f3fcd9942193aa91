# SPDX-License-Identifier: Apache-2.0
"""The SSH connections that the tasks of a run share: one for each address, in one thread."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import CancelledError, Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import asyncssh

from applier.errors import ActionFailed
from applier.machines.address import Address, SshSettings
from applier.machines.job_scripts import removing

LOG = logging.getLogger(__name__)
# At INFO asyncssh logs every command and channel.
asyncssh.set_log_level(logging.WARNING)

#: The seconds without data before a keepalive message is sent, and the number of unanswered
#: messages after which a connection is lost.
KEEPALIVE_S, KEEPALIVES = 15, 3
#: The command that reads a script.
SHELL = "exec /bin/sh -s"
#: The seconds that a node has to answer a script; sshd answers keepalive messages for a shell that
#: hangs.
ANSWER_S = 15.0
#: The seconds that connections have to close before they are aborted.
_CLOSE_S = 2.0

_SSH_PORT = 22
CLOSED = "the connections of this run are closed"

T = TypeVar("T")
Work = Callable[[asyncssh.SSHClientConnection], Awaitable[T]]


class NoAnswer(ConnectionError):
    """The shell of a node does not answer."""


@dataclass(slots=True)
class _SharedConnection:
    """The connection to one address; the lock lets one task connect while others wait."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    connection: asyncssh.SSHClientConnection | None = None


class Connections:
    """Connects when a connection is first needed, keeps it, and reconnects when it is lost.

    Safe to call from any thread. Host keys are always checked.
    """

    def __init__(self, settings: SshSettings) -> None:
        self._settings = settings
        self._shared: dict[Address, _SharedConnection] = {}
        #: All connections, even those that were replaced, because a task may still use one.
        self._made: list[asyncssh.SSHClientConnection] = []
        self.is_closed = False
        self._removals: set[Future[str]] = set()
        self._lock = threading.Lock()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="ssh", daemon=True)
        self._thread.start()

    def submit(self, address: Address, work: Work[T]) -> Future[T]:
        """Start ``work`` on the connection to an address.

        The future raises what ``work`` raises, ActionFailed if the node or its key is refused,
        and ConnectionError if the node cannot be reached or the connection is lost. If ``work``
        raises an error of asyncssh on a connection that existed before, it is started again on a
        new one. Work that must not start twice raises ConnectionError itself once it has begun.
        """
        return self.start(self._work(address, work))

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine in the thread of the connections; raises ConnectionError if closed."""
        if self.is_closed:
            work.close()
            raise ConnectionError(CLOSED)
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def call(self, function: Callable[[], object]) -> None:
        """Call a function in the thread of the connections, unless they are closed."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function)

    def shell(self, address: Address, script: bytes, within_s: float | None = None) -> Future[str]:
        """Start a script in a shell of a node; the future returns its standard output.

        The script is started again on a new connection if the answer is cut off. The future raises
        as that of :meth:`submit`, ConnectionError if the shell fails, and NoAnswer if it does not
        answer within so many seconds, ANSWER_S by default.
        """
        limit_s = ANSWER_S if within_s is None else within_s

        async def run(connection: asyncssh.SSHClientConnection) -> str:
            try:
                async with asyncio.timeout(limit_s):
                    return await _answer(connection, script)
            except TimeoutError as reason:
                text = f"{address}: its shell does not answer within {limit_s:g} s"
                raise NoAnswer(text) from reason

        return self.submit(address, run)

    def remove_jobs(self, address: Address, folders: Sequence[str]) -> Future[str]:
        """Start to remove jobs on a node; :meth:`close` waits up to two seconds for it."""
        future = self.shell(address, removing(folders))
        self._removals.add(future)
        future.add_done_callback(self._removals.discard)
        return future

    def close(self) -> None:
        """Close all connections; tasks that still use one fail."""
        self.is_closed = True
        wait(list(self._removals), _CLOSE_S)
        with self._lock:
            if self._loop.is_closed():
                return
            with suppress(TimeoutError):
                asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(2 * _CLOSE_S)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_CLOSE_S)
            if not self._thread.is_alive():
                self._loop.close()

    async def _work(self, address: Address, work: Work[T]) -> T:
        shared = self._shared.setdefault(address, _SharedConnection())
        while True:
            connection, is_new = await self._connection(address, shared)
            try:
                return await work(connection)
            except asyncssh.Error as reason:
                if shared.connection is connection:
                    shared.connection = None
                if is_new:
                    raise ConnectionError(f"{address}: {sentence(reason)}") from reason
                LOG.info("Reconnecting to %s: the connection was lost: %s", address, reason)

    async def _connection(
        self, address: Address, shared: _SharedConnection
    ) -> tuple[asyncssh.SSHClientConnection, bool]:
        """Return the connection to an address, and True if it was made just now."""
        async with shared.lock:
            if shared.connection is not None and not shared.connection.is_closed():
                return shared.connection, False
            shared.connection = await self._connect(address)
            self._made.append(shared.connection)
            return shared.connection, True

    async def _connect(self, address: Address) -> asyncssh.SSHClientConnection:
        settings = self._settings
        expected = _readable(address, settings.known_hosts_path)
        given: dict[str, Any] = {"known_hosts": expected}
        given |= {"port": address.port} if address.port else {}
        given |= {"username": address.user} if address.user else {}
        if settings.keys:
            given |= {"client_keys": list(settings.key_paths), "agent_path": None}
        try:
            return await asyncssh.connect(
                address.host,
                connect_timeout=settings.connect_timeout_s,
                login_timeout=settings.connect_timeout_s,
                keepalive_interval=KEEPALIVE_S,
                keepalive_count_max=KEEPALIVES,
                **given,
            )
        except (asyncssh.HostKeyNotVerifiable, asyncssh.KeyExchangeFailed) as reason:
            raise _key_refusal(address, expected, reason) from reason
        except asyncssh.PermissionDenied as reason:
            text = f"{address} accepts none of the keys: {reason.reason}"
            raise ActionFailed(text) from reason
        except TimeoutError as reason:
            text = f"{address} does not answer within {settings.connect_timeout_s:g} s"
            raise ConnectionError(text) from reason
        except ValueError as reason:
            # A key that cannot be read, or an invalid configuration of ssh.
            raise ActionFailed(f"no connection to {address}: {reason}") from reason
        except (asyncssh.Error, OSError) as reason:
            text = f"no connection to {address}: {sentence(reason)}"
            if isinstance(reason, OSError) and reason.filename:
                raise ActionFailed(f"{text}: {reason.filename}") from reason
            raise ConnectionError(text) from reason

    async def _close(self) -> None:
        made = list(self._made)
        for connection in made:
            connection.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                for connection in made:
                    await connection.wait_closed()
        for connection in made:
            connection.abort()
        for task in asyncio.all_tasks(self._loop) - {asyncio.current_task()}:
            task.cancel()
        await asyncio.sleep(0)


async def _answer(connection: asyncssh.SSHClientConnection, script: bytes) -> str:
    """Run a script in a shell of a node, and return its standard output.

    Raises an error of asyncssh if the output may not be whole.
    """
    process = await connection.create_process(SHELL, encoding=None)
    try:
        with suppress(BrokenPipeError):  # the shell has ended already: how is told below
            process.stdin.write(script)
            process.stdin.write_eof()
        done = await process.wait()
    finally:
        process.close()
    if done.exit_status is None or done.exit_signal is not None:
        raise asyncssh.ConnectionLost("the answer was cut off")
    if done.exit_status != 0:
        raise asyncssh.ConnectionLost(f"its shell has failed with exit code {done.exit_status}")
    return bytes(done.stdout or b"").decode(errors="replace")  # type: ignore[arg-type]


def result(future: Future[T]) -> T:
    """Return the result of a future; raise ConnectionError if the connections were closed."""
    try:
        return future.result()
    except CancelledError:
        raise ConnectionError(CLOSED) from None


def sentence(reason: Exception) -> str:
    """Return a short description of an error."""
    if isinstance(reason, OSError) and reason.errno and reason.errno > 0:
        return os.strerror(reason.errno)
    return str(reason) or type(reason).__name__


def _readable(address: Address, known_hosts: str) -> str:
    """Return the path ``known_hosts``. Raises ActionFailed if the file cannot be read."""
    if not os.path.isfile(known_hosts):
        raise _unknown_key(address, known_hosts)
    if not os.access(known_hosts, os.R_OK):
        raise ActionFailed(f"the host keys in {known_hosts} cannot be read: Permission denied")
    return known_hosts


def _key_refusal(address: Address, known_hosts: str, reason: Exception) -> Exception:
    """Return the error for a host whose key was refused."""
    keys, authorities, revoked, *_ = asyncssh.match_known_hosts(
        known_hosts, address.host, "", address.port or _SSH_PORT
    )
    if isinstance(reason, asyncssh.KeyExchangeFailed) and not keys:
        return ConnectionError(f"no connection to {address}: {reason}")
    if not (keys or authorities or revoked):
        return _unknown_key(address, known_hosts)
    name = _name(address)
    return ActionFailed(
        f"the host key of {address} is not the one that {known_hosts} expects: either the node was "
        "installed anew, or another machine answers in its place. If its new key is right, "
        f"ssh-keygen -R '{name}' -f {known_hosts} removes the old one, and {_scan(address)} "
        f">> {known_hosts} adds the new one"
    )


def _unknown_key(address: Address, known_hosts: str) -> ActionFailed:
    """Return the error for a host without a key on file, with the command that adds one."""
    return ActionFailed(
        f"{known_hosts} has no host key of {address}: compare the fingerprint with the node's own, "
        f"then {_scan(address)} >> {known_hosts} adds it"
    )


def _name(address: Address) -> str:
    port = address.port or _SSH_PORT
    return address.host if port == _SSH_PORT else f"[{address.host}]:{port}"


def _scan(address: Address) -> str:
    port = f"-p {address.port} " if address.port else ""
    return f"ssh-keyscan {port}{address.host}"
