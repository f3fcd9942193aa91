# SPDX-License-Identifier: Apache-2.0
"""A node that is reached over SSH: programs run through a shell, files go over SFTP."""

from __future__ import annotations

import asyncio
import logging
import posixpath
import queue
import shlex
import stat
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from functools import partial
from typing import TypeVar
from uuid import uuid4

import asyncssh
from asyncssh.constants import OPEN_REQUEST_SESSION_FAILED

from applier.backoff import delays_s
from applier.contracts import Content, Ended, StopSignal
from applier.errors import ActionFailed, JobLost
from applier.machines import job_names, job_scripts, local_jobs
from applier.machines.address import Address
from applier.machines.attempt_jobs import LET_GO, AttemptJobs
from applier.machines.connections import Connections
from applier.machines.output_tail import Tail
from applier.machines.remote_program import END_S, RemoteJob
from applier.machines.settings import SshSettings

LOG = logging.getLogger(__name__)
#: Seconds between two attempts to connect again: the first, and the longest.
_RECONNECT_S, _LONGEST_RECONNECT_S = 0.2, 5.0
#: The most seconds for which a lost connection is tried again once the stop signal is set.
_STOP_PATIENCE_S = 10.0

T = TypeVar("T")
_LOST = (asyncssh.SFTPConnectionLost, asyncssh.SFTPNoConnection)


class Remote:
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
        self._address, self._stop, self._jobs = address, stop, jobs
        self._let_go = jobs.let_go if jobs else threading.Event()

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
        name = self._jobs.next() if self._jobs else job_names.unnamed()

        is_there = self._jobs is not None and self._jobs.was_made_before(name)

        def script(tag: str, seen: int, may_begin: bool) -> bytes:
            return job_scripts.running(
                tag,
                name,
                program,
                env=env or {},
                cwd=cwd or "",
                seen=seen,
                may_begin=may_begin,
                is_there=is_there,
            )

        job = RemoteJob(name, script, str(self._address), self._connections.loop, self._jobs)
        tail = Tail(output)
        try:
            ended = self._to_its_end(job, tail, timeout_s)
        finally:
            if self._jobs is None and job.was_sent and not self._connections.is_closed:
                self._connections.remove_jobs(self._address, [name.folder])
        tail.close()
        return ended._replace(last_line=tail.last_line())

    def _to_its_end(self, job: RemoteJob, tail: Tail, timeout_s: float | None) -> Ended:
        """Follow a job; connect again if the connection is lost once it may have begun."""
        patience_s = self._settings.reconnect_timeout_s
        lost_at, pauses = None, delays_s(_RECONNECT_S, _LONGEST_RECONNECT_S)
        while True:
            seen, job.has_answered = tail.seen, False
            try:
                future = self._connections.submit(self._address, partial(job.run, seen=seen))
                future.add_done_callback(lambda _: job.pieces.put(b""))
                self._follow(job, future, tail, timeout_s)
                return self._result(future, timeout_s)
            except JobLost:
                raise
            except (ConnectionError, ActionFailed) as reason:
                if not job.was_sent or (isinstance(reason, ActionFailed) and job.has_answered):
                    raise
                if job.has_answered or lost_at is None:
                    lost_at, pauses = time.monotonic(), delays_s(_RECONNECT_S, _LONGEST_RECONNECT_S)
                if self._stop.is_set():
                    patience_s = min(patience_s, _STOP_PATIENCE_S)
                if self._is_let_go() or self._connections.is_closed:
                    raise JobLost(f"{self._address}: {LET_GO}", is_over=False) from reason
                if time.monotonic() - lost_at >= patience_s:
                    text = f"{reason}; it was not reached again within {patience_s:g} s, and the "
                    raise JobLost(text + "command may still run there", is_over=False) from reason
                LOG.info("Reconnecting, because a command runs there: %s", reason)
                left_s = max(0.0, lost_at + patience_s - time.monotonic())
                self._let_go.wait(min(next(pauses), left_s))

    def _result(self, future: Future[Ended], timeout_s: float | None) -> Ended:
        if future.cancelled() and not self._stop.is_set():
            raise ConnectionError(f"{self._address} was not reached within {timeout_s or 0:g} s")
        if future.cancelled():
            raise ActionFailed(f"{self._address}: stopped before it was reached")
        return future.result()

    def _is_let_go(self) -> bool:
        return self._stop.is_set() and self._let_go.is_set()

    def _follow(
        self, job: RemoteJob, future: Future[Ended], tail: Tail, timeout_s: float | None
    ) -> None:
        """Pass output on until the job has ended; end it at a stop or the time-out."""
        cut = False
        while not (future.done() and job.pieces.empty()):
            try:
                piece = job.pieces.get(timeout=local_jobs.POLL_S)
                tail.skip(piece) if isinstance(piece, int) else tail.write(piece)
                job.taken()
            except queue.Empty:
                pass
            except BaseException:  # the output function failed: the command ends
                job.cut("stop", future)
                # Its folder is removed after that: without it, the job would count as ended.
                wait_for([future], END_S)
                raise
            if self._is_let_go():
                future.cancel()
                raise JobLost(f"{self._address}: {LET_GO}", is_over=False)
            late = timeout_s is not None and time.monotonic() >= job.began + timeout_s
            if not cut and (late or self._stop.is_set()):
                cut = True
                job.cut("stop" if self._stop.is_set() else "timeout", future)

    def read(self, path: str) -> Content | None:
        """Return content and permissions of a file, or None if it does not exist."""
        return self._files(partial(_read, path), path)

    def write(self, path: str, data: bytes, mode: int) -> None:
        """Write to a temporary file, then rename it, so that no reader sees half a file."""
        self._begin()
        self._files(partial(_write, path, data, mode), path)

    def files(self, folder: str) -> list[str]:
        """List the files below a folder, relative to it."""
        return self._files(partial(_list, folder), folder)

    def remove(self, path: str) -> None:
        """Remove a file if it exists."""
        self._begin()
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

    def _begin(self) -> None:
        if self._jobs is not None:
            self._jobs.begin()

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
        while not wait_for([future], local_jobs.POLL_S).done:
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
