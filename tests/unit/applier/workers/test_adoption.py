# SPDX-License-Identifier: Apache-2.0
"""The jobs of a plan are adopted as they are when it is claimed, not as they were before."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from types import SimpleNamespace

from sample_plans import new_plan
from temporary_store import TemporaryStore
from trials import Trial, changed

from applier.contracts import Claimant, JobOffer, Report
from applier.engines.taskflow_engine import TaskFlowEngine
from applier.run.interrupted_actions import jobs_of
from applier.scheduling.concurrency import QueueLimits
from planner.plan.states import ActionState, Outcome, PlanState

NOW = datetime(2026, 1, 2, tzinfo=UTC)
OTHER = Claimant(host="other", pid=1, user="u")


def test_a_job_that_another_applier_offered_just_before_the_claim_is_adopted():
    """Without it, its action would be verified here, and might run a second time."""
    store = TemporaryStore()
    plan = new_plan("a", state=PlanState.PENDING)
    store.save_plan(plan)
    adopted = []

    class Remote:
        """Ends what it adopts."""

        maximum, away_s = 1, 0.0

        def __init__(self, done):
            self._done = done

        def grow(self, number, extra=0):
            pass

        def adopt(self, task):
            adopted.append(task.action.uuid)
            uuid = task.action.uuid
            job = JobOffer(task.attempt, "default", "nop", {})
            ended = ActionState.SUCCEEDED, Outcome.CHANGED
            self._done(Report(uuid, ActionState.ONGOING, *ended, job=job))

        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

    ran = []

    def work(*given):
        ran.append(given)
        return changed(*given)

    runs_at = SimpleNamespace(
        executor_of=lambda _plan, known, _tell: (
            lambda _maximum, done: Remote(done) if known else None
        ),
        queue_limits=lambda _plan, _workerless: QueueLimits(),
    )
    engine = TaskFlowEngine(max_workers=1)
    with Trial(
        plan,
        engine,
        work,
        max_workers=1,
        inner=store,
        runs_at=runs_at,
        jobs_of=partial(jobs_of, store),
    ) as trial:
        claim_plan = trial.store.claim_plan

        def claimed_after_another(uuid, claimant, *, now):
            claim = store.claim_plan(uuid, OTHER, now=now)
            (action,) = plan.actions
            job = JobOffer(1, "default", "nop", {})
            start = Report(action.uuid, ActionState.PENDING, ActionState.ONGOING, job=job)
            store.commit(uuid, claim, [start], now=now)
            store.resume_plan(uuid, [], now=now, seen=store.claimant(uuid))
            return claim_plan(uuid, claimant, now=now)

        trial.store.claim_plan = claimed_after_another
        # The store that checks commits has not seen the start of the other applier.
        trial.store.commit = store.commit
        assert trial.runner.run(plan.uuid) is PlanState.SUCCEEDED
    assert adopted == [plan.actions[0].uuid]
    assert ran == []
    assert store.jobs_of(plan.uuid) == []
    store.close()
