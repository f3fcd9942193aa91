# SPDX-License-Identifier: Apache-2.0
"""The jobs of a cancelled plan whose applier died are stopped, and awaited."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from followed_job import OUT_S, PAYLOAD, jobs_on_record, runner
from trials import plugin

from applier.contracts import JobOffer
from applier.engines.environment import ActionEnvironment
from applier.errors import ActionFailed, PlanConflict
from applier.run.interrupted_actions import jobs_of, no_jobs_of
from applier.store.worker_jobs import AttemptKey, JobTask, Worker
from applier.workers.job_runner import JobRunner
from applier.workers.lease_keeper import LeaseKeeper
from applier.workers.remote_workers import RemoteRuns
from planner.plan.states import ActionState, PlanState

NOW = datetime(2026, 1, 2, tzinfo=UTC)
PATIENCE_S = 120.0
SETTINGS = {"resend_s": 5.0, "cloud": "simulated", "release": "1"}


class Messages:
    """Lets the worker look when it is told to."""

    def __init__(self, keeper: LeaseKeeper) -> None:
        self._keeper = keeper

    def send(self, queue: str, key: AttemptKey) -> None:
        pass

    def look(self, keys: Sequence[AttemptKey]) -> None:
        self._keeper.look()

    def close(self) -> None:
        pass


def test_one_that_runs_is_stopped_and_one_that_waits_never_begins(store):
    begun = threading.Event()

    def work(_parameters, _context, stop):
        begun.set()
        assert stop.wait(PATIENCE_S)
        raise ActionFailed("it was stopped")

    offer = JobOffer(1, "default", "nop", PAYLOAD)
    plan = jobs_on_record(store, ["runs", "waits"], [offer, offer])
    with pytest.raises(PlanConflict, match="has 2 jobs at workers"):
        no_jobs_of(store, plan)
    environment = ActionEnvironment(plugins={"nop": plugin(work)}, cloud=lambda: None)
    worker = Worker("h:1:a", "h", 1, "u", "1", ["default"], ["nop"], 1, cloud="simulated")
    runner = JobRunner(store, worker, environment, lease_s=30.0)
    messages = Messages(LeaseKeeper(store, runner, worker, lease_s=30.0))
    runs = RemoteRuns(store, messages, lease_s=30.0, **SETTINGS)
    first = AttemptKey(plan.uuid, plan.actions[0].uuid, 1)
    thread = threading.Thread(target=runner.perform, args=(first,))
    thread.start()
    assert begun.wait(PATIENCE_S)
    reports = runs.end_jobs(plan.uuid, jobs_of(store, plan), set())
    thread.join(PATIENCE_S)
    assert [report.state for report in reports] == [ActionState.CANCELLED] * 2
    messages = {report.uuid: report.message for report in reports}
    assert messages[plan.actions[1].uuid] == "aborted before it began"
    cancelled = PlanState.CANCELLED
    seen = store.claimant(plan.uuid)
    store.move_plan(plan.uuid, cancelled, now=NOW, seen=seen, reports=reports)
    assert store.jobs_of(plan.uuid) == []


def test_the_command_of_a_lost_worker_is_looked_for_on_its_machine(job):
    tasks = []

    def offer(key, task=JobTask.VERIFY):
        tasks.append(task)
        is_offered = verify_job(key, task)
        runner(job.store, runs_on=(None,)).perform(key)
        return is_offered

    job.take("h2:5:a", OUT_S)
    verify_job, job.store.verify_job = job.store.verify_job, offer
    runs = RemoteRuns(job.store, job.messages, lease_s=0.2, **SETTINGS)
    plan = job.store.load_plan(job.key.plan)
    (report,) = runs.end_jobs(plan.uuid, jobs_of(job.store, plan), {job.key.action})
    assert tasks == [JobTask.FIND]
    assert report.state is ActionState.UNKNOWN
    assert "its worker" not in report.message
