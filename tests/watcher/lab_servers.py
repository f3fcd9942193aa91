# SPDX-License-Identifier: Apache-2.0
"""Servers of the lab's Nova, for tests; ``lab/servers.py`` does it with openstacksdk."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import environments
from watcher_lab import PROGRAMS, WatcherLab


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

    def _seen(self, there: Any) -> Any:
        known = {
            (host, state["status"], server)
            for host, state in there["hosts"].items()
            for server in [s["uuid"] for s in there["servers"] if s["host"] == host] or [None]
        }
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
