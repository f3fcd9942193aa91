# SPDX-License-Identifier: Apache-2.0
"""The recorded jobs at workers of interrupted actions, and runs in a process without workers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from applier.contracts import Report
from applier.engines.taskflow_engine import CELERY, TaskFlowEngine
from applier.errors import PlanConflict
from applier.scheduling.queue_limits import QueueLimits
from applier.scheduling.resumption import TO_VERIFY
from applier.store.worker_jobs import WorkerJob, WorkerJobStore
from planner.errors import short
from planner.model import ActionPlan
from planner.registry import ENGINES, section_of


class LocalRuns:
    """Runs actions in threads of this process: an :class:`applier.run.setup.RunsAt`."""

    def __init__(self, store: WorkerJobStore) -> None:
        self._store = store

    def close(self) -> None:
        """Do nothing."""

    def jobs_of(self, plan: ActionPlan) -> Mapping[str, WorkerJob]:
        """Return no jobs; raises PlanConflict if a plan has some, StoreError."""
        if found := jobs_of(self._store, plan):
            section = section_of(ENGINES, TaskFlowEngine.NAME)
            text = (
                f"plan {short(plan.uuid)} has {len(found)} jobs at workers, which only an applier "
                f"can follow that has [{section}] workers = {CELERY}"
            )
            raise PlanConflict(plan.uuid, plan.state, text)
        return {}

    def executor_of(
        self,
        plan: ActionPlan,
        known: Mapping[str, WorkerJob],
        tell: Callable[[str], None],
    ) -> None:
        """Return None: the actions run in threads of the engine."""

    def queue_limits(
        self,
        plan: ActionPlan,  # noqa: ARG002
        workerless: Collection[str],  # noqa: ARG002
    ) -> QueueLimits:
        """Return no limits."""
        return QueueLimits()

    def end_jobs(
        self,
        plan: str,  # noqa: ARG002
        jobs: Mapping[str, WorkerJob],  # noqa: ARG002
        at_workers: Collection[str],  # noqa: ARG002
    ) -> list[Report]:
        """Return nothing: there are no jobs."""
        return []


def jobs_of(store: WorkerJobStore, plan: ActionPlan) -> dict[str, WorkerJob]:
    """Return the jobs of the last attempts of interrupted actions, by action."""
    attempts = {a.uuid: a.attempts for a in plan.actions if a.state in TO_VERIFY}
    return {
        job.key.action: job
        for job in store.jobs_of(plan.uuid)
        if attempts.get(job.key.action) == job.key.attempt
    }
