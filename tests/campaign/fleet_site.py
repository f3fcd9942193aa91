# SPDX-License-Identifier: Apache-2.0
"""Appliers and workers on machines of their own, with a record and a broker that may be killed."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from random import Random

from namespaces import Cable
from own_servers import MissingServer, OwnServer
from processes import HEARTBEAT_S, Applier

sys.path.insert(0, str(Path(__file__).parents[1]))

from tcp_proxy import Proxy

#: How many attempts of a plan run at once, and at one worker.
AT_ONCE, PLACES = 6, 4
APPLIER, WORKER = "actionplan-applier", "actionplan-worker"
WRAPPER = (sys.executable, Path(__file__).parent / "machine.py")
#: What a service logs when it is ready, and how often one is troubled before that.
READY, EARLY = ("Waiting for plans", "serves the queues"), 0.1
#: How often what was due is done, in seconds.
TICK_S = 0.1
CONFIGURATION = """
[actionplan]
connection = {record}
simulator = {folder}/simulator.json
[watcher_workflow_engines.taskflow]
workers = celery
max_workers = {places}
[watcher_applier]
workers = 2
heartbeat_interval_s = {heartbeat_s}
grace_s = 5
[workers]
broker = {broker}
lease_s = {lease_s}
"""


class Machine:
    """A machine with one service, which is started again whenever it was killed.

    ``links`` are the ways from it to the servers.
    """

    def __init__(self, name: str, program: str, folder: Path) -> None:
        self.name, self.program, self.folder = name, program, folder
        self.links: dict[str, Proxy] = {}
        self.service: Applier | None = None
        #: The services of it that have ended, to be looked through.
        self.ended: list[Applier] = []
        self.was_killed = False
        #: Its only way to the servers, if it is in a namespace of its own.
        self.cable: Cable | None = None

    def runs(self, *, early: bool) -> bool:
        """Return whether the service runs, and is ready unless ``early``."""
        if self.service is None or not self.service.lives:
            return False
        return early or any(text in self.service.told() for text in READY)


class FleetSite:
    """Machines, servers, and what is due to them: undoing troubles, and starts of services."""

    def __init__(
        self,
        record: OwnServer,
        broker: OwnServer,
        folder: Path,
        chance: Random,
        *,
        lease_s: float,
        fault: str,
        apart: bool = False,
    ) -> None:
        self.servers = {"record": record, "broker": broker}
        self.folder, self.chance, self.lease_s = folder, chance, lease_s
        self.clocks: tuple[str, ...] = ("",)
        self.found: list[str] = []
        self._fault, self._number, self._apart = fault, 0, apart
        self._numbers = count(1)
        self._due: list[tuple[float, Callable[[], None]]] = []
        self._undoing: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="site", daemon=True)
        #: What is in trouble now, so that nothing is in two troubles at once.
        self.troubled: set[str] = set()
        self.machines = [
            *(self._machine(f"applier-{i}", APPLIER) for i in (1, 2)),
            *(self._machine(f"worker-{i}", WORKER) for i in (1, 2, 3)),
        ]

    def _machine(self, name: str, program: str) -> Machine:
        machine = Machine(name, program, self.folder / name)
        machine.folder.mkdir()
        here = "127.0.0.1"
        if self._apart:
            machine.cable = Cable(next(self._numbers))
            here = machine.cable.here
        machine.links = {
            kind: Proxy("127.0.0.1", server.port, here) for kind, server in self.servers.items()
        }
        urls = {k: self.servers[k].url_at(link.port, here) for k, link in machine.links.items()}
        text = CONFIGURATION.format(
            **urls,
            folder=machine.folder,
            places=AT_ONCE if program == APPLIER else PLACES,
            heartbeat_s=HEARTBEAT_S,
            lease_s=self.lease_s,
        )
        (machine.folder / "watcher.conf").write_text(text, encoding="utf-8")
        return machine

    def begin(self) -> None:
        """Start the services, and do from now on what is due."""
        self._thread.start()

    def end(self) -> None:
        """Undo all troubles, and let the services end in an orderly way."""
        self._over.set()
        self._thread.join()
        for _, undo in self._due:
            self._begin_to_undo(undo)
        for thread in self._undoing:
            thread.join()
        running = [m for m in self.machines if m.service is not None]
        for machine in running:
            if machine.service is not None:
                machine.service.signal(signal.SIGCONT)
                machine.service.signal(signal.SIGTERM)
        for machine in running:
            if machine.service is not None:
                machine.service.end()
                machine.ended.append(machine.service)
        for machine in self.machines:
            for link in machine.links.values():
                link.go_away()
            if machine.cable is not None:
                machine.cable.end()

    def later(self, seconds: float, what: Callable[[], None]) -> None:
        """Do something after some seconds, whatever the troubler does then."""
        with self._lock:
            self._due.append((time.monotonic() + seconds, what))

    def trouble(self, name: str, seconds: float, undo: Callable[[], None]) -> None:
        """Note that something is in trouble for some seconds."""
        self.troubled.add(name)

        def over() -> None:
            undo()
            self.troubled.discard(name)

        self.later(seconds, over)

    def of(self, program: str) -> list[Machine]:
        """Return the machines of a program whose service runs and is in no trouble.

        Mostly it is ready, too: on a busy machine a start may take longer than all that follows.
        """
        early = self.chance.random() < EARLY
        return [
            m
            for m in self.machines
            if m.program == program and m.name not in self.troubled and m.runs(early=early)
        ]

    def wrong(self) -> Iterator[str]:
        """Say what the services printed that they must not, and which ended by themselves."""
        yield from self.found
        for machine in self.machines:
            for service in machine.ended:
                yield from (f"{machine.name}: {text}" for text in service.wrong())
            machine.ended.clear()

    def _loop(self) -> None:
        while not self._over.wait(TICK_S):
            now = time.monotonic()
            with self._lock:
                due = [what for at, what in self._due if at <= now]
                self._due = [(at, what) for at, what in self._due if at > now]
            for what in due:
                self._begin_to_undo(what)
            for machine in self.machines:
                self._keep(machine)

    def _begin_to_undo(self, what: Callable[[], None]) -> None:
        """Undo a trouble in a thread of its own: a server may take long to start."""

        def undo() -> None:
            try:
                what()
            except MissingServer as reason:
                self.found.append(f"a server did not come back: {reason}")

        self._undoing.append(threading.Thread(target=undo, daemon=True))
        self._undoing[-1].start()

    def _keep(self, machine: Machine) -> None:
        """Start the service of a machine unless it runs."""
        if machine.service is not None:
            if machine.service.lives:
                return
            machine.ended.append(machine.service)
            if not machine.was_killed:
                how = machine.service.how_it_ended()
                self.found.append(f"{machine.name} has ended by itself{how}")
        machine.was_killed = False
        self._number += 1
        inside = machine.cable.before if machine.cable is not None else ()
        before = (*inside, *WRAPPER, machine.name, self._fault)
        clock = self.chance.choice(self.clocks)
        machine.service = Applier(machine.folder, [machine.program], self._number, clock, before)
