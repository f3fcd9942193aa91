# SPDX-License-Identifier: Apache-2.0
"""Servers of the lab's Nova, for tests; ``lab/servers.py`` does it with openstacksdk."""

from __future__ import annotations

import json
import subprocess
import time
from typing import Any

import environments
from guarded_process import PATIENCE_S
from optimize import Seen
from watcher_lab import PROGRAMS, WatcherLab

#: The statuses of moves that do not go on.
ENDED_MOVE = frozenset({"completed", "confirmed", "reverted", "cancelled", "failed", "error"})


class Servers:
    """The servers of a lab. Each method returns what ``show`` does."""

    def __init__(self, lab: WatcherLab) -> None:
        self._lab = lab

    def boot(self, host: str, count: int) -> Any:
        """Boot servers on a host; the decision engine knows them when this returns."""
        return self._seen(self._run("boot", host, str(count)))

    def mark(self, host: str, **metadata: str) -> Any:
        """Set the metadata of the servers on a host, as ``lab/lab_hypervisor.py`` knows it."""
        return self._run("mark", host, *map("=".join, metadata.items()))

    def reset(self) -> Any:
        """Remove all servers and enable all hosts; the decision engine knows it afterwards."""
        return self._seen(self._run("reset"))

    def show(self) -> Any:
        """Return all servers, all moves there ever were, and the hosts with their states."""
        return self._run("show")

    def moves(self) -> list[tuple[str, str]]:
        """Return server and status of the moves of the servers that there are."""
        there = self.show()
        present = {server["uuid"] for server in there["servers"]}
        return [(m["server"], m["status"]) for m in there["moves"] if m["server"] in present]

    def ended_moves(self) -> list[str]:
        """Return the status of each of these moves, once none goes on.

        Nova tells where a server has arrived before it writes down that its move is completed.
        """
        end = time.monotonic() + PATIENCE_S
        while not ENDED_MOVE.issuperset(found := [status for _, status in self.moves()]):
            assert time.monotonic() < end, found
        return found

    def _seen(self, there: Any) -> Any:
        known: set[Seen] = set()
        for host, state in there["hosts"].items():
            here = [(s["uuid"], s["state"]) for s in there["servers"] if s["host"] == host]
            known |= {(host, state["status"], *server) for server in here or [(None, None)]}
        self._lab.optimize.wait_until_seen(known)
        return there

    def _run(self, *words: str) -> Any:
        ended = subprocess.run(
            [environments.WATCHER.python, PROGRAMS / "servers.py", *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            env=self._lab.environment,
        )
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout)
