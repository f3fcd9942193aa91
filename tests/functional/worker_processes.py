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
from scratch_database import run

from applier.storage import schema_version
from applier.storage.sql import SqlStore
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
[simulated_nodes]
log = {folder}/nodes.log
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

    def selected(self, statement: str) -> list[Any]:
        """Return the first value of each row that a statement finds in the record."""
        return run(self.url, statement)

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

    def nodes(self, number: int, seconds: float) -> ActionPlan:
        """Save a PENDING plan of two tasks on each of so many simulated nodes."""
        actions = []
        for i in range(number):
            before: tuple[str, ...] = ()
            for task in ("prepare", "deploy"):
                actions.append(
                    Action(
                        uuid=str(uuid4()),
                        name=f"{task}/{i}",
                        action_type="shell",
                        tokens=(f"node:{i}", f"region:{self.site}"),
                        needs=before,
                        parents=before,
                        input_parameters={
                            "node": str(i),
                            "command": task,
                            "duration_s": seconds,
                        },
                    )
                )
                before = (actions[-1].uuid,)
        return self.pending(actions)

    def done_on_nodes(self) -> list[str]:
        """Return the lines of simulated tasks that did their work."""
        log = self.folder / "nodes.log"
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        return [" ".join(line.split()[2:]) for line in lines if line.split()[1] == "changed"]

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


def until(what: Callable[[], object], told: Callable[[], str] = str) -> None:
    """Wait until something is so."""
    ends, pause = time.monotonic() + PATIENCE_S, threading.Event()
    while not what():
        assert time.monotonic() < ends, f"it took too long\n{told()}"
        pause.wait(0.05)
