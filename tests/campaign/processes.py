# SPDX-License-Identifier: Apache-2.0
"""Appliers that share one record, as processes: started, killed, frozen, with clocks apart."""

from __future__ import annotations

import os
import resource
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
from applier.storage.sql_store import SqlStore
from planner.plan.model import ActionPlan

Answer = TypeVar("Answer")
#: The words of a command, or the beginning of one.
Command = Sequence[str | Path]

SHIFT = Path(__file__).parents[1] / "shifted_clock" / "start.py"
PROGRAMS = Path(sys.executable).parent
WORKERS, SERVICES = 4, 3
#: How often the applier that runs the plan is the one in trouble.
MOSTLY = 0.7
HEARTBEAT_S = 0.3
#: How many more files a starved applier may open, and how many more bytes it may map: less than
#: the stack of a thread, and enough for all else.
FEW_FILES, LITTLE_MEMORY = 6, 7 * 2**20
HARD_FILES = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
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
        #: When one that is frozen or starved is let go, by time.monotonic(); 0 for any other.
        self.thaws_at = 0.0
        self._starved = 0

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

    def starve(self, pid: int, chance: Random) -> None:
        """Let a process of it open hardly more files than it has open, or start no more threads."""
        process = Path(f"/proc/{pid}")
        with suppress(OSError):  # it may end meanwhile
            if chance.random() < 1 / 2:
                files = len(os.listdir(process / "fd")) + chance.randint(0, FEW_FILES)
                resource.prlimit(pid, resource.RLIMIT_NOFILE, (files, HARD_FILES))
            else:
                pages = int((process / "statm").read_text().split()[0])
                mapped = pages * resource.getpagesize() + LITTLE_MEMORY
                resource.prlimit(pid, resource.RLIMIT_AS, (mapped, resource.RLIM_INFINITY))
            self._starved = pid

    def let_go(self) -> None:
        """Let a frozen or starved one go on as before."""
        self.thaws_at = 0.0
        if self.has(self._starved):
            for what in (resource.RLIMIT_NOFILE, resource.RLIMIT_AS):
                with suppress(ProcessLookupError):
                    resource.prlimit(self._starved, what, resource.getrlimit(what))
        self.signal(signal.SIGCONT)

    def has(self, pid: int) -> bool:
        """Return whether a process is one of its own."""
        with suppress(ProcessLookupError):
            return os.getpgid(pid) == self._process.pid
        return False

    def end(self) -> None:
        """Let it end in an orderly way; kill it if it does not."""
        self.let_go()
        self.signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(30)
        self.signal(signal.SIGKILL)
        self._process.wait()

    def wait(self, seconds: float) -> None:
        """Wait until it has ended by itself, but not longer than this."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)

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
        #: Appliers that each run a plan of their own, that plan, and what its commands write.
        self.crowd: list[tuple[Applier, ActionPlan, Path]] = []
        self.clocks: tuple[str, ...] = ("",)
        #: What comes before the words of a program: nothing, or what makes it another version.
        self.versions: tuple[tuple[str, ...], ...] = ((),)
        self._number = 0
        text = CONFIGURATION.format(
            url=url, folder=folder, workers=WORKERS, heartbeat_s=HEARTBEAT_S
        )
        (folder / "watcher.conf").write_text(text, encoding="utf-8")

    def start(self, *words: str) -> None:
        """Start an applier."""
        self._number += 1
        clock, before = self.chance.choice(self.clocks), self.chance.choice(self.versions)
        self.appliers.append(Applier(self.folder, words, self._number, clock, before))

    def keep_services(self) -> None:
        """Start services in place of those that have ended, and let frozen ones go in time."""
        living = [a for a in self.appliers if a.lives]
        for applier in living:
            if applier.thaws_at and time.monotonic() > applier.thaws_at:
                applier.let_go()
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
        """Return an applier that runs freely: mostly the one that runs the plan."""
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
