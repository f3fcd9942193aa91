# SPDX-License-Identifier: Apache-2.0
"""A node that is reached over SSH: programs run through a shell, files go over SFTP."""

from __future__ import annotations

import asyncio
import posixpath
import shlex
import stat
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import wait as wait_for
from functools import partial
from typing import TypeVar
from uuid import uuid4

import asyncssh
from asyncssh.constants import OPEN_REQUEST_SESSION_FAILED

from applier.contracts import Content, Ended, Machine, StopSignal
from applier.errors import ActionFailed
from applier.machines import job_scripts
from applier.machines.address import Address, SshSettings
from applier.machines.attempt_jobs import AttemptJobs
from applier.machines.connections import Connections
from applier.machines.following import POLL_S, Tail
from applier.machines.ssh_jobs import RemoteJob

T = TypeVar("T")
_LOST = (asyncssh.SFTPConnectionLost, asyncssh.SFTPNoConnection)


class Remote(Machine):
    """The machine at an address, for one attempt of an action; ``jobs`` names its commands."""

    def __init__(
        self,
        connections: Connections,
        settings: SshSettings,
        address: Address,
        stop: StopSignal,
        jobs: AttemptJobs | None = None,
    ) -> None:
        self._connections, self._settings = connections, settings
        self._address, self._stop, self._jobs = address, stop, jobs or AttemptJobs()

    def run(
        self,
        program: Sequence[str],
        *,
        output: Callable[[str], None],
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_s: float | None = None,
    ) -> Ended:
        """Run a program on the node, in the environment of sshd extended by ``env``.

        A lost connection is made again for up to ``reconnect_timeout_s`` seconds; then JobLost is
        raised, because the command may go on.
        """
        job_scripts.check(program, env or {}, cwd)
        job = RemoteJob(
            self._connections,
            self._address,
            self._stop,
            jobs=self._jobs,
            patience_s=self._settings.reconnect_timeout_s,
        )
        return job.run(program, Tail(output), env or {}, cwd, timeout_s)

    def read(self, path: str) -> Content | None:
        return self._files(partial(_read, path), path)

    def write(self, path: str, data: bytes, mode: int, folder_mode: int | None = None) -> None:
        self._jobs.begin()
        self._files(partial(_write, path, data, mode, folder_mode), path)

    def files(self, folder: str) -> list[str]:
        return self._files(partial(_list, folder), folder)

    def remove(self, path: str) -> None:
        self._jobs.begin()
        self._files(partial(_remove, path), path)

    def rsync(self, path: str) -> tuple[list[str], str]:
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
        """Return the result of ``work`` over SFTP, which may be repeated; a stop abandons it."""

        async def run(connection: asyncssh.SSHClientConnection) -> T:
            try:
                async with connection.start_sftp_client() as client:
                    return await work(client)
            except _LOST:
                raise
            except asyncssh.ChannelOpenError as reason:
                if reason.code != OPEN_REQUEST_SESSION_FAILED or connection.is_closed():
                    raise  # the connection was lost
                text = "files are copied by SFTP, and its SSH server offers no subsystem sftp"
                raise ActionFailed(f"{self._address}: {text} ({reason.reason})") from reason
            except asyncssh.SFTPError as reason:
                raise ActionFailed(f"{self._address}: {path}: {reason.reason}") from reason

        future = self._connections.submit(self._address, run)
        while not wait_for([future], POLL_S).done:
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


async def _write(
    path: str, data: bytes, mode: int, folder_mode: int | None, client: asyncssh.SFTPClient
) -> None:
    folder = posixpath.dirname(path)
    if folder and not await client.exists(folder):
        await client.makedirs(folder, exist_ok=True)
        if folder_mode is not None:
            await client.chmod(folder, folder_mode)
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
