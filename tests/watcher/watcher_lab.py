# SPDX-License-Identifier: Apache-2.0
"""OpenStack Watcher on the loopback, driven by its own client.

Real are Watcher's API, decision engine and applier, RabbitMQ, the database server, Nova and
Placement; the rest stands in ``lab/stand_ins.py``. By hand, until it is interrupted::

    python tests/watcher/watcher_lab.py FOLDER [SECTION.OPTION=VALUE...]

FOLDER is made; a setting is one of watcher.conf. It prints how to reach it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import environments
import watcher_configuration
from broker import Broker
from guarded_process import GuardedProcess
from optimize import Optimize, client_environment
from ports import free_block

Settings = Mapping[str, Mapping[str, str]]

PROGRAMS = Path(__file__).parent / "lab"
HOST = "lab"
APPLIER, DECISION_ENGINE, API = "watcher-applier", "watcher-decision-engine", "watcher-api"
#: The section of watcher.conf with the queue of each service.
SECTIONS = {APPLIER: "watcher_applier", DECISION_ENGINE: "watcher_decision_engine"}


class WatcherLab:
    """One Watcher with a Nova of its own; ``database`` is the URL of an empty database.

    Hosts of Nova are cmp1, cmp2, ... ``cinder`` is the URL of a Cinder; without it there are no
    volumes. The strategies ``planned_NAME`` have our planner, and leave their solutions in
    ``folder``. A context manager: all processes are killed at its end.
    """

    def __init__(
        self, folder: Path, database: str, settings: Settings, computes: int = 3, cinder: str = ""
    ) -> None:
        self.folder, self.computes, self._settings = folder, computes, settings
        self._cinder = cinder
        self.broker = Broker(folder / "broker")
        (folder / "nova").mkdir()
        self._port = free_block(8)
        self.keystone = f"http://127.0.0.1:{self._port}"
        self.url = f"http://127.0.0.1:{self._port + 7}"
        self._base = watcher_configuration.base(
            folder, database, self.broker.url, self.keystone, self._port + 6
        )
        self._processes: dict[tuple[str, str], GuardedProcess] = {}
        self.environment = {
            **client_environment(folder),
            "PYTHONPATH": str(PROGRAMS / "planned_strategies"),
            "LAB_SOLUTIONS": str(folder),
        }
        self.optimize = Optimize(self.environment, self.keystone, self.url)

    def start(self) -> None:
        """Start everything; all services answer when this returns."""
        self.broker.start()
        nova = self._start_nova()
        upgrade = self._command("watcher-db-manage", HOST, self._settings)
        output = self.folder / "upgrade.out"
        with output.open("wb") as file:
            subprocess.run(
                [*upgrade, "upgrade"], check=True, stdout=file, stderr=file, env=self.environment
            )
        nova.wait_until("READY", lambda: "READY" in nova.whole_output())
        self.broker.wait()
        for program in (DECISION_ENGINE, APPLIER):
            self._start(program, HOST, self._settings)
        self._start_api()
        for program in (DECISION_ENGINE, APPLIER):
            self.wait(program)

    def _start_nova(self) -> GuardedProcess:
        program = str(PROGRAMS / "nova_in_one_process.py")
        words = (
            str(self.folder / "nova"),
            str(self._port),
            str(self.computes),
            self.url,
            self._cinder,
        )
        command = [environments.NOVA.python, program, *words]
        return self._guard("nova", HOST, command)

    def _start_api(self) -> None:
        _, *options = self._command(API, HOST, self._settings)
        program = str(PROGRAMS / "watcher_api.py")
        self._guard(
            API, HOST, [environments.WATCHER.python, program, str(self._port + 7), *options]
        )

    def start_service(
        self, program: str, settings: Settings | None = None, host: str = HOST
    ) -> None:
        """Start a service, with settings besides the lab's, and wait until it answers."""
        self._start(program, host, settings or {})
        self.wait(program, host)

    def restart(self, program: str, settings: Settings | None = None, host: str = HOST) -> None:
        """Kill a service and start it again, with settings besides the lab's."""
        self.kill(program, host)
        self.start_service(program, settings, host)

    @contextmanager
    def configured(self, program: str, settings: Settings) -> Iterator[None]:
        """Run a service with settings besides the lab's; afterwards without them again."""
        self.restart(program, settings)
        try:
            yield
        finally:
            self.restart(program)

    def kill(self, program: str, host: str = HOST) -> None:
        """Kill a service with signal 9, its workers too; it may be gone already."""
        if process := self._processes.pop((program, host), None):
            process.kill()

    def terminate(self, program: str, host: str = HOST) -> None:
        """Let a service end as a service manager does; it has ended when this returns."""
        process = self._processes.pop((program, host))
        process.terminate()
        process.kill()

    def wait(self, program: str, host: str = HOST) -> None:
        """Return when a service answers."""
        url = f"{self.url}/lab/{SECTIONS[program]}/{host}"
        process = self._processes[program, host]
        process.wait_until(f"answer of {program}", lambda: answers(url))

    def log(self, program: str, host: str = HOST) -> str:
        """Return what a service has logged and printed, with all its runs."""
        files = (self.folder / f"{host}-{program}.{suffix}" for suffix in ("log", "out"))
        return "".join(file.read_text(errors="replace") for file in files if file.exists())

    def _start(self, program: str, host: str, settings: Settings) -> None:
        merged = watcher_configuration.merged(self._settings, settings)
        self._guard(program, host, self._command(program, host, merged))

    def _command(self, program: str, host: str, settings: Settings) -> list[str | Path]:
        """Return a command of Watcher, for which its configuration is written."""
        path = self.folder / f"{host}-{program}.conf"
        own = watcher_configuration.merged(settings, {"DEFAULT": {"host": host}})
        watcher_configuration.write(path, watcher_configuration.merged(self._base, own))
        log = self.folder / f"{host}-{program}.log"
        command = environments.WATCHER.program(program)
        return [command, "--config-file", str(path), "--log-file", str(log)]

    def _guard(self, program: str, host: str, command: list[str | Path]) -> GuardedProcess:
        output = self.folder / f"{host}-{program}.out"
        process = GuardedProcess(command, output, self.environment)
        self._processes[program, host] = process
        return process

    def stop(self) -> None:
        """Kill everything."""
        for process in self._processes.values():
            process.kill()
        self._processes.clear()
        self.broker.kill()

    def __enter__(self) -> WatcherLab:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def answers(url: str) -> bool:
    """Return whether a request is answered with success."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


@contextmanager
def running_lab(folder: Path, server: str, settings: Settings) -> Iterator[WatcherLab]:
    """Run a lab with a database of its own on the server of a URL; raises StoreError."""
    from scratch_database import scratch_database

    with scratch_database(server) as database, WatcherLab(folder, database, settings) as lab:
        yield lab


def main(arguments: list[str]) -> None:
    """Run a lab until it is interrupted or told to end."""
    from scratch_database import MYSQL

    folder = Path(arguments[0]).absolute()
    if (folder / "broker").exists():
        shutil.rmtree(folder)
    folder.mkdir()
    settings: dict[str, dict[str, str]] = {}
    for word in arguments[1:]:
        option, _, value = word.partition("=")
        section, _, name = option.rpartition(".")
        settings.setdefault(section, {})[name] = value
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    server = os.environ.get("ACTIONPLAN_TEST_MYSQL", MYSQL)
    with running_lab(folder, server, settings) as lab:
        clouds = f"OS_CLIENT_CONFIG_FILE={folder}/nova/clouds.yaml OS_CLOUD=lab"
        print(f"READY {clouds} {environments.WATCHER.program('openstack')} optimize service list")
        print(f"Watcher: {lab.url} configuration: {folder}/{HOST}-{APPLIER}.conf", flush=True)
        try:
            signal.pause()
        except KeyboardInterrupt:
            print("Stopping", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
