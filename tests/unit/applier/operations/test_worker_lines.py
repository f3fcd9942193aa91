# SPDX-License-Identifier: Apache-2.0
"""What is said about the job of an action that runs at a worker, or is to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from applier.contracts import Claimant, JobOffer, Report
from applier.operations import explanation, services
from applier.store.worker_jobs import (
    AttemptKey,
    JobTask,
    StopReason,
    Worker,
    WorkerJob,
    WorkerJobState,
)
from applier.testing.sample_plans import new_plan
from applier.testing.temporary_store import TemporaryStore
from planner.plan.states import ActionState, PlanState

NOW, TOKEN = datetime(2026, 1, 2, tzinfo=UTC), "t"


@pytest.fixture
def store() -> Iterator[TemporaryStore]:
    with closing(TemporaryStore()) as store:
        yield store


def line_of(store: TemporaryStore, uuid: str) -> list[str]:
    plan = store.load_plan(uuid)
    return explanation.explained(SimpleNamespace(plans=store), None, plan, plan.actions[0], 4)[1:]


def test_a_job_waits_for_workers_then_runs_then_was_lost(store):
    plan = new_plan("a", state=PlanState.PENDING)
    store.save_plan(plan)
    claim = store.claim_plan(plan.uuid, Claimant(host="h", pid=1, user="u"), now=NOW)
    key = AttemptKey(plan.uuid, plan.actions[0].uuid, 1)
    start = Report(
        uuid=key.action,
        old=ActionState.PENDING,
        state=ActionState.ONGOING,
        job=JobOffer(1, "site-b", "nop", {}),
    )
    store.commit(plan.uuid, claim, [start], now=NOW)
    assert line_of(store, plan.uuid) == ["  No worker serves site-b."]
    store.report_worker(Worker("w1", "h", 1, "u", "1", ["site-b"], ["nop"], 4))
    (line,) = line_of(store, plan.uuid)
    assert "1 worker of the queue site-b" in line
    store.take_job(key, worker="w1", token=TOKEN, lease_s=-600)
    assert line_of(store, plan.uuid) == ["  Worker w1 carries it out."]
    store.stop_jobs([key], StopReason.ABORT)
    (line,) = line_of(store, plan.uuid)
    assert "Worker w1" in line
    assert "told to stop" in line
    store.fence_jobs(plan.uuid)
    (line,) = line_of(store, plan.uuid)
    assert "w1 was lost" in line
    store.verify_job(key)
    store.take_job(key, worker="w2", token=TOKEN, lease_s=600)
    (line,) = line_of(store, plan.uuid)
    assert "w2 finds out" in line
    assert "told to stop" in line


def test_a_job_that_is_looked_for_on_its_machine_is_not_carried_out_again(store):
    job = WorkerJob(
        AttemptKey("p", "a", 1), "site-b", "nop", WorkerJobState.DOING, JobTask.FIND, 1.0, "w2"
    )
    assert services._line(store, job) == "Worker w2 finds out what became of it."
