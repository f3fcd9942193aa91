# SPDX-License-Identifier: Apache-2.0
"""The metrics of a process that runs plans, and a store that derives them from commits."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from applier.contracts import Claimant, Report
from applier.store import RunStore
from planner.plan.model import JOIN, Action, ActionPlan
from planner.plan.states import ActionState, PlanState

#: The upper bounds of the histograms, in seconds.
COMMIT_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
ACTION_S = (0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200)


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
        self._runs: weakref.WeakSet[MeasuredStore] = weakref.WeakSet()
        self.running_plans.set_function(lambda: sum(run.runs for run in self._listed()))
        self.workers_busy.set_function(lambda: sum(run.busy for run in self._listed()))

    def add(self, run: MeasuredStore) -> None:
        """Include a run in the gauges, until it ends or the last reference to it is dropped."""
        with self._lock:
            self._runs.add(run)

    def _listed(self) -> list[MeasuredStore]:
        with self._lock:
            return list(self._runs)


#: The reasons why an action waited: for the ends of other actions, for limits, for its retry.
FOR_ACTIONS, FOR_LIMITS, FOR_RETRY = "actions", "limits", "retry"


class MeasuredStore:
    """A wrapper around a store, which records the metrics of one run of one plan.

    The durations of attempts and waits are measured from commit to commit, as in the record.
    """

    def __init__(
        self, store: RunStore, metrics: RunMetrics, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store, self._metrics, self._clock = store, metrics, clock
        self._actions: Mapping[str, Action] = {}
        self._claimed_at, self.runs = 0.0, False
        #: Times of ``clock``, by uuid of action: the start of one that runs, the end of one that
        #: ended, and the end of the last attempt of one that waits for a retry.
        self._started: dict[str, float] = {}
        self._ended: dict[str, float] = {}
        self._put_back: dict[str, float] = {}

    @property
    def busy(self) -> int:
        """The number of actions that run."""
        return len(self._started) if self.runs else 0

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the wrapped store, such as a method that is not measured."""
        return getattr(self._store, name)

    def load_plan(self, uuid: str) -> ActionPlan:
        """Load a plan, and keep its actions, whose types and predecessors the metrics need."""
        plan = self._store.load_plan(uuid)
        self._actions = {action.uuid: action for action in plan.actions}
        return plan

    def claim_plan(self, uuid: str, claimant: Claimant, *, now: datetime) -> str:
        """Claim a plan; the waits of its actions are measured from this time."""
        claim = self._store.claim_plan(uuid, claimant, now=now)
        self._claimed_at, self.runs = self._clock(), True
        return claim

    def move_claimed(self, uuid: str, claim: str, new: PlanState, **given: Any) -> None:
        """Change the state of the plan; count the end of the run by the new state."""
        self._store.move_claimed(uuid, claim, new, **given)
        if new is not PlanState.CANCELLING:
            self.runs = False
            self._metrics.plan_ends.labels(new).inc()

    def commit(self, uuid: str, claim: str, reports: Sequence[Report], *, now: datetime) -> None:
        """Commit reports; record the seconds that it took, and the durations of their attempts.

        A commit that raises an error is counted as a failure.
        """
        began = self._clock()
        try:
            self._store.commit(uuid, claim, reports, now=now)
        except BaseException:  # counted, and raised again
            self._metrics.commit_failures.inc()
            raise
        ended = self._clock()
        self._metrics.commits.observe(ended - began)
        self._metrics.reports.inc(len(reports))
        for report in reports:
            self._note(report, ended)

    def _note(self, report: Report, at: float) -> None:
        action = self._actions.get(report.uuid)
        if action is None:
            return
        if report.state is ActionState.ONGOING:
            self._note_start(action, at)
            return
        started = self._started.pop(report.uuid, None)
        if started is not None:
            attempts = self._metrics.attempts.labels(action.action_type, report.state)
            attempts.observe(at - started)
        if report.state is ActionState.PENDING:
            self._put_back[report.uuid] = at
        else:
            self._ended[report.uuid] = at

    def _note_start(self, action: Action, at: float) -> None:
        if action.action_type == JOIN:
            return
        self._started[action.uuid] = at
        waits = self._metrics.waits
        put_back = self._put_back.pop(action.uuid, None)
        if put_back is not None:
            waits.labels(FOR_RETRY).observe(at - put_back)
            return
        ends = [self._ended[uuid] for uuid in action.before() if uuid in self._ended]
        ready = max(ends, default=self._claimed_at)
        waits.labels(FOR_ACTIONS).observe(ready - self._claimed_at)
        waits.labels(FOR_LIMITS).observe(at - ready)


def measured(store: RunStore, metrics: RunMetrics) -> RunStore:
    """Return a store for one run of one plan, which records the metrics of the run."""
    run = MeasuredStore(store, metrics)
    metrics.add(run)
    return cast("RunStore", run)
