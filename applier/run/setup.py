# SPDX-License-Identifier: Apache-2.0
"""The store, the engine and the settings of a runner, in one value."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Protocol

from applier.contracts import Claimant, Listener, Report
from applier.engines import Engine
from applier.engines.environment import ActionEnvironment
from applier.engines.executor import MakeExecutor
from applier.scheduling.holding import Breaker, Holding
from applier.scheduling.queue_limits import QueueLimits
from applier.scheduling.verdict import OnFailure
from applier.store import RunStore
from applier.store.worker_jobs import WorkerJob
from planner.model import ActionPlan

UTC_NOW = partial(datetime.now, UTC)
#: Pauses a plan; the arguments are who pauses it, and why.
Pause = Callable[[str, str | None], None]
#: Jobs at workers by the uuids of their actions.
Jobs = Mapping[str, WorkerJob]


class RunsAt(Protocol):
    """Where the actions of runs are executed: in threads of this process, or at workers."""

    def jobs_of(self, plan: ActionPlan) -> Jobs:
        """Return the jobs at workers of interrupted actions of a plan, by action.

        Raises PlanConflict if this process cannot follow them, and StoreError.
        """

    def executor_of(
        self, plan: ActionPlan, known: Jobs, tell: Callable[[str], None]
    ) -> MakeExecutor | None:
        """Return the function that makes the executor of a run; None: actions run in threads here.

        ``known`` are the jobs of its interrupted actions, as :meth:`jobs_of` returns them. ``tell``
        is called with sentences about workers that the actions wait for.
        """

    def queue_limits(self, plan: ActionPlan, workerless: Collection[str]) -> QueueLimits:
        """Return how many actions may run at once in each queue, by its workers' present places.

        ``workerless`` are the actions that need no place. Raises StoreError.
        """

    def end_jobs(self, plan: str, jobs: Jobs, at_workers: Collection[str]) -> list[Report]:
        """Stop the jobs of a plan that no applier runs; wait, and return a report for each job.

        An action whose job does not end in time is reported as UNKNOWN. ``at_workers`` are the
        actions whose commands run on the machines of their workers. Raises StoreError.
        """


@dataclass(frozen=True, kw_only=True)
class RunSetup:
    """The parts and settings that a runner uses, and the claimant that it runs as.

    ``on_failure`` applies to plans that have no policy themselves. While the store cannot be
    reached, no action starts, and writes are retried for up to ``store_patience_s`` seconds.
    Plugins may take up to ``verify_patience_s`` seconds to verify an interrupted action.
    ``listener_of`` returns a context manager around the run of a claimed plan, which yields one
    more listener. ``require_allowed`` raises GuardRefusal for a plan that may not run.
    ``holding_of`` returns the holding that keeps actions of a plan waiting, or None; the holding
    may call its second argument to pause the plan. ``budget_of`` returns the breaker that pauses a
    plan after failures, or None. ``runs_at`` executes the actions; without it, threads of this
    process do. ``tell`` is called with sentences about workers that actions wait for.
    """

    store: RunStore
    engine: Engine
    environment: ActionEnvironment
    claimant: Claimant
    on_failure: OnFailure = OnFailure.SKIP_DESCENDANTS
    listeners: tuple[Listener, ...] = ()
    listener_of: Callable[[ActionPlan], AbstractContextManager[Listener]] | None = None
    require_allowed: Callable[[ActionPlan], None] | None = None
    holding_of: Callable[[ActionPlan, Pause], Holding | None] | None = None
    budget_of: Callable[[ActionPlan], Breaker | None] | None = None
    runs_at: RunsAt | None = None
    tell: Callable[[str], None] = lambda _: None
    clock: Callable[[], datetime] = UTC_NOW
    request_interval_s: float = 1.0
    heartbeat_interval_s: float = 5.0
    store_patience_s: float = 120.0
    verify_patience_s: float = 30.0
