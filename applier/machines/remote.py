# SPDX-License-Identifier: Apache-2.0
"""A node that is reached over SSH: programs run through a shell, files go over SFTP."""

from __future__ import annotations

import asyncio
import posixpath
import queue
import shlex
import stat
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from functools import partial
from typing import TypeVar
from uuid import uuid4

import asyncssh

from applier.contracts import Content, Ended, StopSignal
from applier.errors import ActionFailed
from applier.machines import process
from applier.machines.address import Address
from applier.machines.connections import Connections
from applier.machines.remote_program import RemoteProgram, script
from applier.machines.settings import SshSettings

T = TypeVar("T")
_LOST = (asyncssh.SFTPConnectionLost, asyncssh.SFTPNoConnection)


class Remote:
    """The machine at an address, for one attempt of an action."""

    def __init__(
        self, connections: Connections, settings: SshSettings, address: Address, stop: StopSignal
    ) -> None:
        self._connections, self._settings = connections, settings
        self._address, self._stop = address, stop

    def run(
        self,
        program: Sequence[str],
        *,
        output: Callable[[str], None],
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_s: float | None = None,
    ) -> Ended:
        """Run a program on the node, in the environment of sshd extended by ``env``."""
        remote = RemoteProgram(
            partial(script, program=program, env=env, cwd=cwd),
            str(self._address),
            self._connections.loop,
        )
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        future = self._connections.submit(self._address, remote.run)
        future.add_done_callback(lambda _: remote.pieces.put(b""))
        tail = process.Tail(output)
        try:
            self._follow(remote, future, tail, deadline)
        except BaseException:
            remote.cut("stop", future)
            raise
        tail.close()
        if future.cancelled() and not self._stop.is_set():
            raise ConnectionError(f"{self._address} was not reached within {timeout_s or 0:g} s")
        if future.cancelled():
            raise ActionFailed(f"{self._address}: stopped before it was reached")
        return future.result()._replace(last_line=tail.last_line())

    def _follow(
        self,
        remote: RemoteProgram,
        future: Future[Ended],
        tail: process.Tail,
        deadline: float | None,
    ) -> None:
        """Pass output on until the program has ended; end it at a stop or the deadline."""
        cut = False
        while not (future.done() and remote.pieces.empty()):
            try:
                tail.write(remote.pieces.get(timeout=process.POLL_S))
                remote.taken()
            except queue.Empty:
                pass
            late = deadline is not None and time.monotonic() >= deadline
            if not cut and (late or self._stop.is_set()):
                cut = True
                remote.cut("stop" if self._stop.is_set() else "timeout", future)

    def read(self, path: str) -> Content | None:
        """Return content and permissions of a file, or None if it does not exist."""
        return self._files(partial(_read, path), path)

    def write(self, path: str, data: bytes, mode: int) -> None:
        """Write to a temporary file, then rename it, so that no reader sees half a file."""
        self._files(partial(_write, path, data, mode), path)

    def files(self, folder: str) -> list[str]:
        """List the files below a folder, relative to it."""
        return self._files(partial(_list, folder), folder)

    def remove(self, path: str) -> None:
        """Remove a file if it exists."""
        self._files(partial(_remove, path), path)

    def rsync(self, path: str) -> tuple[list[str], str]:
        """Return the options that make rsync use the same keys and host keys."""
        settings, address = self._settings, self._address
        ssh = ["ssh", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes"]
        ssh += ["-o", f"UserKnownHostsFile={settings.known_hosts_path}"]
        ssh += ["-o", f"ConnectTimeout={max(1, round(settings.connect_timeout_s))}"]
        ssh += ["-p", str(address.port)] if address.port else []
        for key in settings.key_paths:
            ssh += ["-o", "IdentitiesOnly=yes", "-i", key]
        host = f"[{address.host}]" if ":" in address.host else address.host
        user = f"{address.user}@" if address.user else ""
        return ["-e", shlex.join(ssh)], f"{user}{host}:{path}"

    def _files(self, work: Callable[[asyncssh.SFTPClient], Awaitable[T]], path: str) -> T:
        """Do work over SFTP that may be repeated; a stop abandons it."""

        async def run(connection: asyncssh.SSHClientConnection) -> T:
            try:
                async with connection.start_sftp_client() as client:
                    return await work(client)
            except _LOST:
                raise
            except asyncssh.SFTPError as reason:
                raise ActionFailed(f"{self._address}: {path}: {reason.reason}") from reason

        future = self._connections.submit(self._address, run)
        while not wait_for([future], process.POLL_S).done:
            if self._stop.is_set():
                future.cancel()
                raise ActionFailed(f"{path}: stopped")
        return future.result()


async def _read(path: str, client: asyncssh.SFTPClient) -> Content | None:
    try:
        async with client.open(path, "rb", encoding=None) as file:
            attributes = await file.stat()
            data = await file.read()
    except asyncssh.SFTPNoSuchFile:
        return None
    assert isinstance(data, bytes)  # noqa: S101 - for the type checker: no encoding
    return Content(data, stat.S_IMODE(attributes.permissions or 0))


async def _write(path: str, data: bytes, mode: int, client: asyncssh.SFTPClient) -> None:
    folder = posixpath.dirname(path)
    if folder:
        await client.makedirs(folder, exist_ok=True)
    # As in applier.whole_files: a link is followed, and what is no regular file is not replaced.
    path = str(await client.realpath(path))
    if await client.exists(path) and not await client.isfile(path):
        async with client.open(path, "wb", encoding=None) as file:
            await file.write(data)
        return
    fresh = posixpath.join(posixpath.dirname(path), f".new-{uuid4().hex}")
    try:
        private = asyncssh.SFTPAttrs(permissions=0o600)
        async with client.open(fresh, "xb", private, encoding=None) as file:
            await file.write(data)
        await client.chmod(fresh, mode)
        await client.posix_rename(fresh, path)
    except (asyncssh.SFTPError, asyncio.CancelledError):
        await _remove(fresh, client)
        raise


async def _list(folder: str, client: asyncssh.SFTPClient) -> list[str]:
    found: list[str] = []
    left = [""]
    while left:
        inside = left.pop()
        try:
            entries = await client.readdir(posixpath.join(folder, inside))
        except asyncssh.SFTPNoSuchFile:
            continue
        for entry in entries:
            name = str(entry.filename)
            path = posixpath.join(inside, name)
            if name in (".", ".."):
                continue
            is_folder = entry.attrs.type == asyncssh.FILEXFER_TYPE_DIRECTORY
            (left if is_folder else found).append(path)
    return sorted(found)


async def _remove(path: str, client: asyncssh.SFTPClient) -> None:
    try:
        await client.remove(path)
    except asyncssh.SFTPNoSuchFile:
        return
