# SPDX-License-Identifier: Apache-2.0
"""A real sshd of our own on the loopback; a clock by which time-outs of commands are over."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from command_line import PATIENCE_S, wait_until
from programs import find

from applier.machines import following, ssh_jobs
from applier.machines.address import SshSettings

#: sshd of root wants this folder, which is made when a machine starts.
_PRIVILEGE_SEPARATION = Path("/run/sshd")
SFTP = "Subsystem sftp internal-sftp\n"
_CONFIGURATION = """\
ListenAddress {host}:{port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
PermitRootLogin yes
LogLevel VERBOSE
{more}
"""


def make_key(path: Path) -> None:
    """Make a key pair; one that is there gives way."""
    path.unlink(missing_ok=True)
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", str(path)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def lives(pid: int) -> bool:
    """Return whether a process runs; one that has ended may not be reaped yet."""
    return state_of(pid) not in ("", "Z", "X")


def state_of(pid: int) -> str:
    """Return the letter of the state of a process, or an empty text if there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return stat[stat.rindex(")") + 2]


class Sshd:
    """One server; ``environment`` is what sessions find in theirs. A context manager.

    It lets in who has ``key``, or one of its own. ``more`` are further lines of its configuration;
    an empty ``sftp`` is a server without SFTP.
    """

    def __init__(
        self,
        folder: Path,
        host: str = "127.0.0.1",
        key: Path | None = None,
        environment: Mapping[str, str] | None = None,
        more: str = "",
        sftp: str = SFTP,
    ) -> None:
        self.folder, self.host, self.key = folder, host, key or folder / "id"
        #: Where the jobs of its user lie.
        self.jobs = folder / ".local/state/actionplan/jobs"
        folder.mkdir()
        # It never listens: it keeps the port from all but the server, which may bind it as well.
        self._kept = socket.socket()
        self._kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._kept.bind((host, 0))
        self.port = int(self._kept.getsockname()[1])
        make_key(folder / "host_key")
        if key is None:
            make_key(self.key)
        shutil.copy(self.key.with_suffix(".pub"), folder / "authorized_keys")
        self.known_hosts = folder / "known_hosts"
        self.known_hosts.write_text(self.known())
        # A home with nothing in it: a shell would read the start-up files of whoever runs this.
        known = {"HOME": str(folder), **(environment or {})}
        pairs = [f'{name}="{value}"' for name, value in known.items()]
        text = _CONFIGURATION.format(
            host=host,
            port=self.port,
            folder=folder,
            more=f"{sftp}SetEnv {' '.join(pairs)}\n{more}",
        )
        (folder / "sshd_config").write_text(text)
        self.log: list[str] = []
        self._was_told = threading.Condition()

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def settings(self, **others: Any) -> SshSettings:
        """Return what a client needs to reach it, with other settings if wanted."""
        own = {"known_hosts": str(self.known_hosts), "keys": (str(self.key),)}
        return SshSettings(**{**own, "connect_timeout_s": PATIENCE_S, **others})

    def options(self) -> dict[str, Any]:
        """Return the same as options of the section ssh."""
        own = {"known_hosts": self.known_hosts, "key_files": self.key}
        return {**own, "connect_timeout_s": PATIENCE_S}

    @property
    def accepted(self) -> int:
        """How many connections it let in.

        The log is read as far as a connection that is made only to be found there.
        """
        before = len(self.log)
        with socket.create_connection((self.host, self.port)) as mark, self._was_told:
            host, port = mark.getsockname()
            told = f" from {host} port {port} "
            assert self._was_told.wait_for(
                lambda: any(told in line for line in self.log[before:]), PATIENCE_S
            )
        return self.told("Accepted publickey")

    def told(self, text: str) -> int:
        """Return how many lines of its log have a text, as far as it was read."""
        with self._was_told:
            return sum(text in line for line in self.log)

    def known(self) -> str:
        """Return the line of its host key for known_hosts."""
        kind, key, *_ = (self.folder / "host_key.pub").read_text().split()
        return f"[{self.host}]:{self.port} {kind} {key}\n"

    def start(self) -> None:
        """Start it; it listens when this returns."""
        if os.getuid() == 0:
            _PRIVILEGE_SEPARATION.mkdir(mode=0o755, exist_ok=True)
        # It insists on being called by its whole path.
        sshd = find("sshd")
        assert sshd is not None
        self._process = subprocess.Popen(
            [sshd, "-D", "-e", "-f", str(self.folder / "sshd_config")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        listens = threading.Event()
        self._reader = threading.Thread(target=self._read, args=(listens,), daemon=True)
        self._reader.start()
        assert listens.wait(PATIENCE_S), "".join(self.log)
        assert self._process.poll() is None, "".join(self.log)

    def _read(self, listens: threading.Event) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            with self._was_told:
                self.log.append(line)
                self._was_told.notify_all()
            if "Server listening" in line:
                listens.set()
        listens.set()

    def end_sessions(self) -> None:
        """Cut off all connections; what runs on the node goes on, and the server listens still."""
        with self._frozen():
            self._kill_connections()

    @contextmanager
    def _frozen(self) -> Iterator[None]:
        """Keep the server from making connections, and from reaping what served them."""
        os.kill(self._process.pid, signal.SIGSTOP)
        try:
            wait_until(lambda: state_of(self._process.pid) == "T")
            yield
        finally:
            os.kill(self._process.pid, signal.SIGCONT)

    def _kill_connections(self) -> None:
        path = f"/proc/{self._process.pid}/task/{self._process.pid}/children"
        pids = [int(pid) for pid in Path(path).read_text().split()]
        # Each has a group of its own.
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not any(map(lives, pids)))

    def kill(self) -> None:
        """Let the node be gone: the server and all its connections."""
        with self._frozen():
            self._kill_connections()
            os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join(PATIENCE_S)
        assert self._process.stderr is not None
        self._process.stderr.close()

    def __enter__(self) -> Sshd:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.returncode is None:
            self.kill()
        self._kept.close()


#: A time-out that no slow machine reaches.
HOUR_S = 3600.0


class Clock:
    """The clock, which goes an hour ahead once something is so."""

    def __init__(self, is_so: Callable[[], object]) -> None:
        self._is_so = is_so

    def monotonic(self) -> float:
        """Return what ``time.monotonic`` does, or an hour more."""
        return time.monotonic() + (HOUR_S if self._is_so() else 0.0)


def hurry(monkeypatch: pytest.MonkeyPatch, is_so: Callable[[], object]) -> None:
    """Let the time-outs of commands, here and on nodes, be over once something is so.

    A node then has as long as it needs to answer that it has ended a command.
    """
    monkeypatch.setattr(following, "time", Clock(is_so))
    monkeypatch.setattr(ssh_jobs, "_ANSWER_S", HOUR_S)
