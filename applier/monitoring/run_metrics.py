# SPDX-License-Identifier: Apache-2.0
"""The metrics of a process that runs plans: running actions, commits, waits and durations."""

from __future__ import annotations

import threading
import weakref
from typing import Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

#: The upper bounds of the histograms, in seconds.
COMMIT_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
ACTION_S = (0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200)


class MeasuredRun(Protocol):
    """The run of one plan; ``runs`` is false when it has ended."""

    runs: bool

    @property
    def busy(self) -> int:
        """The number of actions that run."""


class RunMetrics:
    """The metrics of one process, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.running_plans = Gauge(
            "actionplan_running_plans", "Plans that this process runs.", registry=registry
        )
        self.workers_busy = Gauge(
            "actionplan_workers_busy", "Actions that run in this process.", registry=registry
        )
        self.plan_ends = Counter(
            "actionplan_plan_runs",
            "Runs of plans that ended in this process, by the state that they left.",
            ["state"],
            registry=registry,
        )
        self.attempts = Histogram(
            "actionplan_attempt_seconds",
            "Durations of the attempts of actions, by the state after it; PENDING is a retry.",
            ["action_type", "state"],
            buckets=ACTION_S,
            registry=registry,
        )
        self.waits = Histogram(
            "actionplan_action_wait_seconds",
            "Seconds that actions waited before they started: for other actions, for limits "
            "(a worker, a token or another plan), or for a retry.",
            ["reason"],
            buckets=ACTION_S,
            registry=registry,
        )
        self.commits = Histogram(
            "actionplan_commit_seconds",
            "Durations of the commits of states to the record.",
            buckets=COMMIT_S,
            registry=registry,
        )
        self.commit_failures = Counter(
            "actionplan_commit_failures",
            "Commits of states that the record refused, or that it could not be reached for.",
            registry=registry,
        )
        self.reports = Counter(
            "actionplan_committed_changes",
            "Changes of states that were committed.",
            registry=registry,
        )

        self._lock = threading.Lock()
        #: The runs. The references are weak, so that one that broke off is removed, too.
        self._runs: weakref.WeakSet[MeasuredRun] = weakref.WeakSet()
        self.running_plans.set_function(lambda: sum(run.runs for run in self._listed()))
        self.workers_busy.set_function(lambda: sum(run.busy for run in self._listed()))

    def add(self, run: MeasuredRun) -> None:
        """Include a run in the gauges, until it ends or the last reference to it is dropped."""
        with self._lock:
            self._runs.add(run)

    def _listed(self) -> list[MeasuredRun]:
        with self._lock:
            return list(self._runs)
