# SPDX-License-Identifier: Apache-2.0
"""Databases and brokers of one's own, on free ports, which may be killed and frozen."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import kombu
import outage
from kombu.exceptions import KombuError

from applier.storage.connection import Connector, parse
from applier.storage.database_errors import Refused
from applier.storage.transactions import Transactions

sys.path.insert(0, str(Path(__file__).parents[1]))

from programs import find
from reserved_port import ReservedPort

#: How many seconds a server may take to answer after its start.
PATIENCE_S = 600.0


class MissingServer(Exception):
    """A server cannot be made here."""


class OwnServer:
    """A server in the foreground, with all its processes; ``url`` names it on its own port."""

    #: The URL, with ``{port}`` for the port of the server or of a proxy before it.
    form = ""
    #: The user that runs it, if root may not.
    user: str | None = None

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Kept while it is away, too: who connects to a port of nobody may be given it as its own.
        self._kept = ReservedPort()
        self.port = self._kept.port
        self._process: subprocess.Popen[bytes] | None = None
        self.make()

    @property
    def url(self) -> str:
        """The URL on the port of the server itself."""
        return self.url_at(self.port)

    def url_at(self, port: int, host: str = "127.0.0.1") -> str:
        """Return the URL of a proxy before it."""
        return self.form.format(port=port).replace("127.0.0.1", host)

    def make(self) -> None:
        """Make what it needs before its first start."""

    def command(self) -> Sequence[str]:
        """Return the command that starts it in the foreground."""
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        """Return what it needs in its environment."""
        return {}

    def ask(self) -> None:
        """Ask it something; raises an error if it does not answer."""
        with (
            closing(Transactions(Connector(parse(self.url)))) as transactions,
            transactions.read() as transaction,
        ):
            transaction.read("SELECT 1")

    def start(self) -> None:
        """Start it; return when it answers."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self.command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
                user=self.user if os.geteuid() == 0 else None,
                env={**os.environ, **self.environment()},
            )
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return self.ask()
            except (OSError, Refused, KombuError):
                if time.monotonic() > deadline or self._process.poll() is not None:
                    told = (self.folder / "log").read_text(errors="replace")[-1500:]
                    raise MissingServer(f"{type(self).__name__} does not answer: {told}") from None
            time.sleep(0.1)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to all its processes, unless it has ended."""
        if self._process is not None and self._process.poll() is None:
            for pid in (self._process.pid, *_descendants(self._process.pid)):
                with suppress(ProcessLookupError):
                    os.kill(pid, number)

    def kill(self) -> None:
        """End all its processes at once, as a loss of power would."""
        if self._process is not None:
            # So that it starts no more while they are listed.
            self._process.send_signal(signal.SIGSTOP)
            pids = _descendants(self._process.pid)
            self.signal(signal.SIGKILL)
            self._process.wait()
            while any(Path(f"/proc/{pid}").exists() for pid in pids):
                time.sleep(0.01)


class OwnPostgreSql(OwnServer):
    """A PostgreSQL."""

    form, user = "postgresql://postgres@127.0.0.1:{port}/postgres", "postgres"

    def make(self) -> None:
        """Make an empty database."""
        found = outage.programs()
        if found is None:
            raise MissingServer("there is no initdb of PostgreSQL here")
        self._programs, self._data = found, self.folder / "data"
        if os.geteuid() == 0:
            shutil.chown(self.folder, self.user)
        words = ["-D", str(self._data), "-U", "postgres", "-A", "trust", "-N"]
        _run([str(found / "initdb"), *words], self.user)

    def command(self) -> Sequence[str]:
        """See :meth:`OwnServer.command`."""
        program = [str(self._programs / "postgres"), "-D", str(self._data)]
        address = ["-c", "listen_addresses=127.0.0.1", "-p", str(self.port)]
        return [*program, *address, "-k", str(self._data)]


class OwnMariaDb(OwnServer):
    """A MariaDB."""

    form = "mysql://root@127.0.0.1:{port}/plans"

    def make(self) -> None:
        """Make an empty database."""
        program, installer = find("mariadbd"), find("mariadb-install-db")
        if program is None or installer is None:
            raise MissingServer("there is no mariadbd here")
        self._program = program
        data = f"--datadir={self.folder / 'data'}"
        how = ["--auth-root-authentication-method=normal", "--skip-test-db"]
        _run([installer, "--no-defaults", data, *how, *self._as()])
        (self.folder / "data" / "plans").mkdir()
        if self._as():
            shutil.chown(self.folder / "data" / "plans", "root")

    def command(self) -> Sequence[str]:
        """See :meth:`OwnServer.command`."""
        where = [f"--datadir={self.folder / 'data'}", f"--socket={self.folder / 'socket'}"]
        address = ["--bind-address=127.0.0.1", f"--port={self.port}"]
        pid = f"--pid-file={self.folder / 'pid'}"
        return [self._program, "--no-defaults", *where, *address, pid, *self._as()]

    def _as(self) -> list[str]:
        return ["--user=root"] if os.geteuid() == 0 else []


class OwnRabbitMq(OwnServer):
    """A RabbitMQ."""

    form = "amqp://guest:guest@127.0.0.1:{port}//"

    def make(self) -> None:
        """Write its configuration."""
        self._program = find("rabbitmq-server") or ""
        behind = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
        if behind.exists():  # the script in PATH becomes another user
            self._program = str(behind)
        if not self._program:
            raise MissingServer("there is no rabbitmq-server here")
        (self.folder / "rabbitmq.conf").write_text(
            f"listeners.tcp.default = 127.0.0.1:{self.port}\n", encoding="utf-8"
        )
        (self.folder / "plugins").write_text("[].\n", encoding="utf-8")

    def command(self) -> Sequence[str]:
        """See :meth:`OwnServer.command`."""
        return [self._program]

    def environment(self) -> dict[str, str]:
        """See :meth:`OwnServer.environment`."""
        return {
            "HOME": str(self.folder),
            "RABBITMQ_NODENAME": f"campaign{self.port}@localhost",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(_free_port()),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "data"),
            "RABBITMQ_LOG_BASE": str(self.folder / "logs"),
            "RABBITMQ_CONFIG_FILE": str(self.folder / "rabbitmq"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "plugins"),
            "RABBITMQ_PID_FILE": str(self.folder / "pid"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 +sbwt none",
        }

    def ask(self) -> None:
        """See :meth:`OwnServer.ask`."""
        _connect(self.url)


class OwnRedisBroker(OwnServer):
    """A Redis that keeps nothing over a restart."""

    form = "redis://127.0.0.1:{port}/0"

    def make(self) -> None:
        """Find the program."""
        self._program = find("redis-server") or ""
        if not self._program:
            raise MissingServer("there is no redis-server here")

    def command(self) -> Sequence[str]:
        """See :meth:`OwnServer.command`."""
        address = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        return [self._program, *address, "--save", "", "--appendonly", "no"]

    def ask(self) -> None:
        """See :meth:`OwnServer.ask`."""
        _connect(self.url)


RECORDS: dict[str, type[OwnServer]] = {"postgresql": OwnPostgreSql, "mariadb": OwnMariaDb}
BROKERS: dict[str, type[OwnServer]] = {"rabbitmq": OwnRabbitMq, "redis": OwnRedisBroker}


@contextmanager
def own_server(kind: type[OwnServer], folder: Path) -> Iterator[OwnServer]:
    """Make a server and start it; end it afterwards. Raises MissingServer."""
    folder.mkdir()
    made = kind(folder)
    try:
        made.start()
        yield made
    finally:
        made.kill()


def _connect(url: str) -> None:
    with kombu.Connection(url, connect_timeout=2) as connection:
        connection.ensure_connection(max_retries=1, timeout=2)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def _run(command: Sequence[str], user: str | None = None) -> None:
    user = user if os.geteuid() == 0 else None
    try:
        subprocess.run(command, check=True, capture_output=True, cwd="/", user=user)
    except subprocess.CalledProcessError as error:
        told = error.stderr.decode(errors="replace")[-1500:]
        raise MissingServer(f"{command[0]}: {told}") from error


def _descendants(pid: int) -> list[int]:
    """Return the children of a process, their children, and so on."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it may end meanwhile
            parent = stat.read_text(errors="replace").rpartition(")")[2].split()[1]
            children.setdefault(int(parent), []).append(int(stat.parent.name))
    found: list[int] = []
    waiting = [pid]
    while waiting:
        more = children.get(waiting.pop(), [])
        found += more
        waiting += more
    return found
