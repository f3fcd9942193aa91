# SPDX-License-Identifier: Apache-2.0
"""Appliers that share one record, as processes: started, killed, frozen, with clocks apart."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import TypeVar

from outage import Server

from applier.errors import StoreError
from applier.storage.sql import SqlStore

Answer = TypeVar("Answer")
#: The words of a command, or the beginning of one.
Command = Sequence[str | Path]

SHIFT = Path(__file__).parents[1] / "shifted_clock" / "start.py"
PROGRAMS = Path(sys.executable).parent
WORKERS, SERVICES = 4, 3
#: How often the applier that runs the plan is the one in trouble.
MOSTLY = 0.7
HEARTBEAT_S = 0.3
#: How long the last processes of a command may take to end after it.
ENDING_S = 60
#: How many lines are shown of what a program printed that ended by itself.
LAST_LINES = 15
#: Words that no applier may print or log.
FORBIDDEN = (
    "cannot be preloaded",
    "Traceback",
    "InvalidTransition",
    "IndexError",
    "NotImplementedError",
)
CONFIGURATION = """
[actionplan]
connection = {url}
simulator = {folder}/simulator.json
[watcher_workflow_engines.taskflow]
max_workers = {workers}
[watcher_applier]
workers = 2
heartbeat_interval_s = {heartbeat_s}
grace_s = 5
"""


class Applier:
    """A program of the product with its configuration in a folder, in a session of its own."""

    def __init__(
        self, folder: Path, words: Sequence[str], number: int, clock: str, before: Command = ()
    ) -> None:
        self.name = f"{words[0]} {number}"
        self._log = folder / f"log-{number}"
        environment = {"HOME": str(folder), "XDG_STATE_HOME": str(folder / "state")}
        program = [*before, words[0]] if before else [PROGRAMS / words[0]]
        command = [*program, *words[1:], "--config-file", folder / "watcher.conf"]
        if clock:
            command = [sys.executable, SHIFT, clock, *command]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd=folder,
                env={**os.environ, **environment},
            )
        #: When a frozen one is let go, by time.monotonic(); 0 for one that is not frozen.
        self.thaws_at = 0.0

    @property
    def lives(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to all its processes; the commands that they started are not among them.

        Once it has ended, its number may belong to a process of another campaign.
        """
        if self.lives:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    def has(self, pid: int) -> bool:
        """Return whether a process is one of its own."""
        with suppress(ProcessLookupError):
            return os.getpgid(pid) == self._process.pid
        return False

    def end(self) -> None:
        """Let it end in an orderly way; kill it if it does not."""
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(30)
        self.signal(signal.SIGKILL)
        self._process.wait()

    def told(self) -> str:
        """Return what it has printed so far."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def how_it_ended(self) -> str:
        """Return its exit code and the last lines that it printed."""
        last = "\n  ".join(self.told().splitlines()[-LAST_LINES:])
        return f", with {self._process.wait()}:\n  {last}"

    def wrong(self) -> Iterator[str]:
        """Say what it printed that it must not."""
        told = self.told()
        for word in FORBIDDEN:
            if word in told:
                place = told.index(word)
                yield f"{self.name}: {told[max(0, place - 200) : place + 1500]}"


class Site:
    """One record, and the appliers that share it."""

    #: The server of the record, if it may be stopped.
    server: Server | None = None

    def __init__(self, url: str, store: SqlStore, folder: Path, chance: Random) -> None:
        self.url, self.store, self.folder, self.chance = url, store, folder, chance
        self.appliers: list[Applier] = []
        self.plan = ""
        self.clocks: tuple[str, ...] = ("",)
        self._number = 0
        text = CONFIGURATION.format(
            url=url, folder=folder, workers=WORKERS, heartbeat_s=HEARTBEAT_S
        )
        (folder / "watcher.conf").write_text(text, encoding="utf-8")

    def start(self, *words: str) -> None:
        """Start an applier."""
        self._number += 1
        clock = self.chance.choice(self.clocks)
        self.appliers.append(Applier(self.folder, words, self._number, clock))

    def keep_services(self) -> None:
        """Start services in place of those that were killed, and let frozen ones go in time."""
        living = [a for a in self.appliers if a.lives]
        for applier in living:
            if applier.thaws_at and time.monotonic() > applier.thaws_at:
                applier.thaws_at = 0.0
                applier.signal(signal.SIGCONT)
        services = sum(a.name.startswith("actionplan-applier") for a in living)
        for _ in range(SERVICES - services):
            self.start("actionplan-applier")

    def read(self, what: Callable[[SqlStore], Answer]) -> Answer:
        """Read the record; a frozen applier may be in the middle of a commit until it is let go."""
        while True:
            try:
                return what(self.store)
            except StoreError:
                if not any(a.thaws_at for a in self.appliers if a.lives):
                    raise
                self.keep_services()
                time.sleep(0.1)

    def victim(self) -> Applier | None:
        """Return an applier that runs and is not frozen: mostly the one that runs the plan."""
        living = [a for a in self.appliers if a.lives and not a.thaws_at]
        claimant = self.read(lambda store: store.claimant(self.plan))
        its = [a for a in living if claimant and a.has(claimant.pid)]
        found = its if its and self.chance.random() < MOSTLY else living
        return self.chance.choice(found) if found else None

    def left_behind(self) -> Iterator[str]:
        """Name each process that works in the folder, and does not end for ``ENDING_S`` seconds.

        Call it when all should have ended.
        """
        deadline = time.monotonic() + ENDING_S
        while (left := [*self._processes()]) and time.monotonic() < deadline:
            time.sleep(0.1)
        yield from left

    def _processes(self) -> Iterator[str]:
        for process in Path("/proc").glob("[0-9]*"):
            # Any of them may end meanwhile.
            with suppress(OSError):
                if Path(os.readlink(process / "cwd")) == self.folder:
                    command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    yield f"process {process.name} is left: {command[:200]}"

    def verb(self, *words: str) -> None:
        """Run a verb about the plan, as an operator does; being refused is an answer."""
        self.start("actionplan", *words)
