# SPDX-License-Identifier: Apache-2.0
"""The store, the engine and the settings of a runner, in one value; the jobs of a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from applier.contracts import Claimant, Listener, RunOptions
from applier.engines import Engine
from applier.engines.environment import ActionEnvironment
from applier.engines.taskflow_engine import CELERY, TaskFlowEngine
from applier.errors import PlanConflict
from applier.scheduling.holding import Breaker, Holding
from applier.scheduling.resumption import TO_VERIFY
from applier.scheduling.verdict import OnFailure
from applier.store import RunStore
from applier.store.worker_jobs import WorkerJob
from applier.wording import count
from planner.errors import short
from planner.making.registry import ENGINES, section_of
from planner.plan.model import ActionPlan

if TYPE_CHECKING:
    from applier.storage.sql import SqlStore
    from applier.workers.remote_runs import RemoteRuns

UTC_NOW = partial(datetime.now, UTC)
#: Pauses a plan; the arguments are who pauses it, and why.
Pause = Callable[[str, str | None], None]
#: Jobs at workers by the uuids of their actions.
Jobs = Mapping[str, WorkerJob]


def jobs_of(store: SqlStore, plan: ActionPlan) -> Jobs:
    """Return the jobs of the last attempts of interrupted actions; raises StoreError."""
    attempts = {a.uuid: a.attempts for a in plan.actions if a.state in TO_VERIFY}
    return {
        job.key.action: job
        for job in store.jobs_of(plan.uuid)
        if attempts.get(job.key.action) == job.key.attempt
    }


def no_jobs_of(store: SqlStore, plan: ActionPlan) -> Jobs:
    """Return no jobs, as a process does that runs actions itself.

    Raises PlanConflict if interrupted actions have some, and StoreError.
    """
    if found := jobs_of(store, plan):
        section = section_of(ENGINES, TaskFlowEngine.NAME)
        text = (
            f"plan {short(plan.uuid)} has {count(len(found), 'job')} at workers, which only an "
            f"applier can follow that has [{section}] workers = {CELERY}"
        )
        raise PlanConflict(plan.uuid, plan.state, text)
    return {}


def policy_of(plan: ActionPlan, otherwise: str = OnFailure.SKIP_DESCENDANTS) -> OnFailure:
    """Return the effect of a failed action that a plan names, or else ``otherwise``."""
    return OnFailure(plan.on_failure or otherwise)


@dataclass(frozen=True, kw_only=True)
class RunSetup:
    """The parts and settings that a runner uses, and the claimant that it runs as.

    ``on_failure_of`` returns the effect of a failed action of a plan, ``options_of`` the options
    that are recorded with its run. While the store cannot be
    reached, no action starts, and writes are retried for up to ``store_patience_s`` seconds.
    Plugins may take up to ``verify_patience_s`` seconds to verify an interrupted action.
    ``listener_of`` returns a context manager around the run of a claimed plan, which yields one
    more listener. ``require_allowed`` raises GuardRefusal for a plan that may not run.
    ``holding_of`` returns the holding that keeps actions of a plan waiting, or None; the holding
    may call its second argument to pause the plan. ``budget_of`` returns the breaker that pauses a
    plan after failures, or None. ``runs_at`` executes the actions at workers; without it, threads
    of this process do. ``jobs_of`` returns the jobs at workers of interrupted actions of a plan; it
    raises PlanConflict if they cannot be followed. ``tell`` is called with sentences about workers
    that actions wait for.
    """

    store: RunStore
    engine: Engine
    environment: ActionEnvironment
    claimant: Claimant
    on_failure_of: Callable[[ActionPlan], OnFailure] = policy_of
    options_of: Callable[[ActionPlan], RunOptions] | None = None
    listeners: tuple[Listener, ...] = ()
    listener_of: Callable[[ActionPlan], AbstractContextManager[Listener]] | None = None
    require_allowed: Callable[[ActionPlan], None] | None = None
    holding_of: Callable[[ActionPlan, Pause], Holding | None] | None = None
    budget_of: Callable[[ActionPlan], Breaker | None] | None = None
    runs_at: RemoteRuns | None = None
    jobs_of: Callable[[ActionPlan], Jobs] = lambda _: {}
    tell: Callable[[str], None] = lambda _: None
    clock: Callable[[], datetime] = UTC_NOW
    request_interval_s: float = 1.0
    heartbeat_interval_s: float = 5.0
    store_patience_s: float = 120.0
    verify_patience_s: float = 30.0
