# SPDX-License-Identifier: Apache-2.0
"""Appliers and workers as processes of their own, on one record and one broker, for tests."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import kombu
from reserved_port import ReservedPort
from scratch_broker import broker_for_tests
from scratch_database import database_for_tests

from applier.storage import schema_version
from applier.storage.sql_store import SqlStore
from planner.plan.model import Action, ActionPlan
from planner.plan.states import PlanState

PROGRAMS = Path(sys.executable).parent
PATIENCE_S = 300.0
#: A lease that no worker loses that lives, however slow it is; and one that is soon lost by others.
LEASE_S, SHORT_LEASE_S = 60.0, 2.0
CONFIGURATION = """
[actionplan]
connection = {url}
simulator = {folder}/simulator.json
[watcher_applier]
heartbeat_interval_s = 0.2
[watcher_workflow_engines.taskflow]
workers = celery
max_workers = {places}
[workers]
broker = {broker}
queues = {site}
route = region
lease_s = {lease_s}
"""
#: Writes a line at its begin and at its end: what really happened.
SHELL = 'echo "B {name}" >> {log}; sleep {seconds}; echo "E {name}" >> {log}'


class Processes:
    """Programs of the product in one folder, each in a session of its own; ``close`` kills them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.configuration = folder, folder / "watcher.conf"
        self.started: list[subprocess.Popen[bytes]] = []

    def start(
        self, program: str | Path, *words: str, **environment: str
    ) -> subprocess.Popen[bytes]:
        """Start a program of the product, or another, with the configuration of the folder."""
        name = f"{Path(program).name}-{len(self.started)}.log"
        own = {"HOME": str(self.folder), "PATH": os.defpath, "PYTHONWARNINGS": "ignore"}
        with (self.folder / name).open("wb") as log:
            process = subprocess.Popen(
                [PROGRAMS / program, "--config-file", self.configuration, *words],
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**own, **environment},
            )
        self.started.append(process)
        return process

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """Kill a process with its children, as a loss of power would; commands are elsewhere."""
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def told(self) -> str:
        """Return what the programs wrote."""
        logs = sorted(self.folder.glob("actionplan-*.log"))
        return "\n".join(f"{log.name}: {log.read_text()}" for log in logs)

    def close(self) -> None:
        """Kill what still runs."""
        for process in self.started:
            self.kill(process)


class Fleet(Processes):
    """Appliers and workers of one test."""

    def __init__(self, folder: Path, url: str, broker: str, lease_s: float, places: int) -> None:
        super().__init__(folder)
        self.log = folder / "effects"
        # A queue of its own, which only the workers of this test serve.
        self.site = f"test-{uuid4().hex[:12]}"
        text = CONFIGURATION.format(
            url=url, folder=folder, broker=broker, site=self.site, lease_s=lease_s, places=places
        )
        self.configuration.write_text(text, encoding="utf-8")
        self.url, self.store = url, SqlStore(url)

    def workers(self, number: int, **environment: str) -> list[subprocess.Popen[bytes]]:
        """Start workers, and wait until the record knows them."""
        before = len(self.store.workers())
        started = [self.start("actionplan-worker", **environment) for _ in range(number)]
        until(lambda: len(self.store.workers()) == before + number, self.told)
        return started

    def shells(self, number: int, seconds: float) -> ActionPlan:
        """Save a PENDING plan of commands that are independent of each other."""
        actions = [self.shell(f"s{i}", seconds) for i in range(number)]
        return self.pending(actions)

    def shell(self, name: str, seconds: float) -> Action:
        """Return an action that writes when it begins and ends."""
        command = SHELL.format(name=name, log=self.log, seconds=seconds)
        return Action(
            uuid=str(uuid4()),
            name=name,
            action_type="shell",
            tokens=(f"region:{self.site}",),
            input_parameters={"command": command},
        )

    def pending(self, actions: Sequence[Action]) -> ActionPlan:
        """Save a PENDING plan."""
        plan = ActionPlan(
            uuid=str(uuid4()), planner="weight", actions=tuple(actions), state=PlanState.PENDING
        )
        self.store.save_plan(plan)
        return plan

    def effects(self) -> tuple[Counter[str], Counter[str]]:
        """Return how often each action has begun, and ended, as it wrote itself."""
        text = self.log.read_text(encoding="utf-8") if self.log.exists() else ""
        lines = [line.split() for line in text.splitlines()]
        return (
            Counter(name for kind, name in lines if kind == "B"),
            Counter(name for kind, name in lines if kind == "E"),
        )

    def ended(self, plan: ActionPlan) -> ActionPlan:
        """Wait until a plan has ended, and return it as it is then."""
        over = (PlanState.SUCCEEDED, PlanState.FAILED, PlanState.CANCELLED, PlanState.PAUSED)
        until(lambda: self.store.load_plan(plan.uuid).state in over, self.told)
        return self.store.load_plan(plan.uuid)

    def close(self) -> None:
        """Kill what still runs, and close the record."""
        super().close()
        self.store.close()


class OwnRedis:
    """A Redis that may be killed; it keeps nothing."""

    def __init__(self, folder: Path) -> None:
        # Kept while it is away, too.
        self._kept = ReservedPort()
        self._port = self._kept.port
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"redis://127.0.0.1:{self._port}/0"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        program = ["redis-server", "--port", str(self._port), "--bind", "127.0.0.1"]
        rest = ["--save", "", "--appendonly", "no", "--dir", str(self._folder)]
        self._process = subprocess.Popen([*program, *rest], stdout=subprocess.DEVNULL)
        until(self._answers)

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self._port), timeout=1).close()
        except OSError:
            return False
        return True


@contextmanager
def fleet(
    folder: Path, url: str, broker: str, *, lease_s: float = LEASE_S, places: int = 8
) -> Iterator[Fleet]:
    """Yield a fleet on the database of a URL; its queue is deleted afterwards."""
    schema_version.upgrade(url)
    made = Fleet(folder, url, broker, lease_s, places)
    with closing(made):
        yield made
    with kombu.Connection(broker, connect_timeout=5) as connection:
        connection.default_channel.queue_delete(f"actionplan.{made.site}")


@contextmanager
def fleet_for_tests(
    folder: Path, database: str = "postgresql", broker: str = "rabbitmq", **options: Any
) -> Iterator[Fleet]:
    """Yield a fleet on a new database of a kind of server, or skip the test."""
    url = broker_for_tests(broker)
    with database_for_tests(database) as record, fleet(folder, record, url, **options) as made:
        yield made


def until(what: Callable[[], object], told: Callable[[], str] = str) -> None:
    """Wait until something is so."""
    ends, pause = time.monotonic() + PATIENCE_S, threading.Event()
    while not what():
        assert time.monotonic() < ends, f"it took too long\n{told()}"
        pause.wait(0.05)
