# SPDX-License-Identifier: Apache-2.0
"""Everything that a runner needs, in one value."""

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
#: Pauses a plan: who does it, and why.
Pause = Callable[[str, str | None], None]
#: Jobs at workers by the uuids of their actions.
Jobs = Mapping[str, WorkerJob]


class RunsAt(Protocol):
    """Where the actions of runs are executed: in threads of this process, or at workers."""

    def jobs_of(self, plan: ActionPlan) -> Jobs:
        """Return the jobs at workers of interrupted actions of a plan, by action.

        Raises PlanConflict if this process cannot follow them, StoreError.
        """

    def executor_of(
        self, plan: ActionPlan, known: Jobs, tell: Callable[[str], None]
    ) -> MakeExecutor | None:
        """Return what makes the executor of a run; None if its actions run in threads here.

        ``known`` are the jobs of its interrupted actions, as :meth:`jobs_of` returns them. ``tell``
        is called with what the actions wait for.
        """

    def queue_limits(self, plan: ActionPlan, workerless: Collection[str]) -> QueueLimits:
        """Return the limits that the places of workers are now; raises StoreError."""

    def end_jobs(self, plan: str, jobs: Jobs, at_workers: Collection[str]) -> list[Report]:
        """Tell jobs of a plan that nobody runs to stop; return how their attempts ended.

        ``at_workers`` are the actions whose commands run on the machines of their workers. Raises
        StoreError.
        """


@dataclass(frozen=True, kw_only=True)
class RunSetup:
    """The parts and settings that a runner uses, and the claimant that it runs as.

    ``on_failure`` applies to plans that have no policy themselves. While the store cannot be
    reached, no action starts, and writes are retried for up to ``store_patience_s`` seconds.
    Plugins may take up to ``verify_patience_s`` seconds to verify an interrupted action.
    ``listener_of`` makes one more listener, for a plan that was claimed; its block is the run.
    ``require_allowed`` raises GuardRefusal for a plan that may not run; ``holding_of`` returns what
    holds actions of a plan back while they may not start, if anything does; it gets a function that
    pauses the plan. ``budget_of`` returns what pauses a plan after failures, if anything does.
    ``runs_at`` says where actions run; without it, in threads of this process. ``tell`` is called
    with what actions wait for there.
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
