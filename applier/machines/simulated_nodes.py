# SPDX-License-Identifier: Apache-2.0
"""Simulated nodes: a task waits for its duration, and fails if it is configured to."""

from __future__ import annotations

import fnmatch
import hashlib
import os
import re
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime

from applier.contracts import StopSignal
from applier.errors import ActionFailed, ConfigurationError
from planner.plan.states import Outcome


@dataclass(frozen=True, kw_only=True, slots=True)
class SimulationSettings:
    """How simulated nodes behave; see :class:`NodeSimulation`."""

    speed: float = 1.0
    failures: tuple[str, ...] = ()
    seed: int = 0
    log: str | None = None


class NodeSimulation:
    """Replaces the work of tasks on simulated nodes.

    Each of ``failures`` is a fraction of all tasks (``0.01``), or ``NODE/TASK`` with ``*`` for any
    part of a name. Which tasks belong to the fraction depends only on ``seed``, node and task, not
    on the order in which they run. ``log`` is a file with a line for each start and end. Raises
    ConfigurationError.
    """

    def __init__(self, settings: SimulationSettings) -> None:
        self._speed, self._seed, self._log = settings.speed, settings.seed, settings.log
        self._share, self._names = 0.0, []
        for text in settings.failures:
            require_failure(text)
            if "/" in text:
                self._names.append(text)
            else:
                self._share = max(self._share, float(text))

    def run(self, node: str, task: str, seconds: float, stop: StopSignal) -> Outcome:
        """Wait ``seconds``, divided by the speed, and return CHANGED.

        Raises ActionFailed if the task has to fail or is stopped, ConfigurationError if the log
        cannot be written.
        """
        self._note(node, task, "start")
        began = time.monotonic()
        if stop.wait(min(seconds / self._speed, threading.TIMEOUT_MAX)):
            self._note(node, task, "stopped")
            passed = (time.monotonic() - began) * self._speed
            raise ActionFailed(f"stopped after {passed:.1f} s of {seconds:g} s (simulated)")
        if self.fails(node, task):
            self._note(node, task, "failed")
            raise ActionFailed("a simulated fault")
        self._note(node, task, "changed")
        return Outcome.CHANGED

    def fails(self, node: str, task: str) -> bool:
        """Return whether a task has to fail by configuration.

        >>> NodeSimulation(SimulationSettings(failures=("3/*", "*/ntp"))).fails("3", "database")
        True
        >>> one_in_four = NodeSimulation(SimulationSettings(failures=("0.25",), seed=1))
        >>> sum(one_in_four.fails("1", f"task-{i}") for i in range(1000))
        256
        """
        if any(fnmatch.fnmatchcase(f"{node}/{task}", name) for name in self._names):
            return True
        digest = hashlib.sha256(f"{self._seed}/{node}/{task}".encode()).digest()
        return int.from_bytes(digest[:8], "big") < self._share * 2**64

    def _note(self, node: str, task: str, what: str) -> None:
        """Append a line to the log in one call, because other processes append to it as well."""
        if self._log is None:
            return
        line = f"{datetime.now(UTC).isoformat()} {what} {node} {task}\n"
        try:
            with open(os.path.expanduser(self._log), "ab", buffering=0) as file:
                file.write(line.encode())
        except OSError as reason:
            text = f"[simulated_nodes] log: {self._log}: {reason.strerror}"
            raise ConfigurationError(text) from reason


def require_failure(text: str) -> None:
    """Raise ConfigurationError if a text is neither a share of all tasks nor NODE/TASK."""
    try:
        share = float(text) if text.isascii() and "_" not in text else -1.0
    except ValueError:
        share = -1.0
    if not (re.fullmatch("[^/,]+/[^,]+", text) or 0 <= share <= 1):
        raise ConfigurationError(
            f"[simulated_nodes] failures: {text!r} is neither a share of all tasks, "
            "0 to 1, nor NODE/TASK"
        )
