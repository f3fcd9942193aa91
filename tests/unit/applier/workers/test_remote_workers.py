# SPDX-License-Identifier: Apache-2.0
"""What an applier does with jobs: it follows those that it adopts, and tells jobs to stop."""

from __future__ import annotations

import queue
import threading
from unittest.mock import Mock

import pytest
from followed_job import LONG_S, OUT_S, PAYLOAD, Job
from trials import changed, plugin

from applier.engines.environment import ActionEnvironment
from applier.errors import ActionFailed, StoreError
from applier.store.worker_jobs import AttemptKey, JobTask, StopReason
from applier.workers import follower
from applier.workers.payloads import require_able, task_of
from applier.workers.remote_workers import RemoteRuns, RemoteWorkers
from planner.errors import BrokenPlugin
from planner.making import registry
from planner.making.registry import ActionTypes
from planner.plan.states import ActionState

PATIENCE_S = 120.0


class Messages:
    """Passes on what is sent and told."""

    def __init__(self) -> None:
        self.sent: queue.SimpleQueue[AttemptKey] = queue.SimpleQueue()
        self.looks: queue.SimpleQueue[list[AttemptKey]] = queue.SimpleQueue()

    def send(self, _queue, key):
        self.sent.put(key)

    def look(self, keys):
        self.looks.put(list(keys))

    def close(self):
        pass


class Applier:
    """One that executes the attempts of a plan at workers."""

    def __init__(
        self,
        job: Job,
        *,
        is_known: bool = True,
        lease_s: float = LONG_S,
        resend_s: float = LONG_S,
    ) -> None:
        self.messages = Messages()
        self.reports: queue.SimpleQueue = queue.SimpleQueue()
        (row,) = job.store.jobs_of(job.key.plan)
        times = {"lease_s": lease_s, "resend_s": resend_s}
        self.workers = RemoteWorkers(
            4,
            self.reports.put,
            plan=job.key.plan,
            runs=RemoteRuns(job.store, self.messages, **times, cloud="simulated", release="1"),
            known={row.key.action: row} if is_known else {},
        )


def task(key, work=changed, runs_on=(), continued_s=None):
    kind = plugin(work)
    kind.runs_on = classmethod(lambda _kind, _parameters: runs_on)
    environment = ActionEnvironment(plugins={"nop": kind}, cloud=lambda: None)
    return task_of(key, PAYLOAD, environment, continued_s)


def test_the_end_of_an_adopted_job_is_reported(job):
    job.take("w1")
    applier = Applier(job)
    with applier.workers as workers:
        workers.adopt(task(job.key))
        result = {"state": "SUCCEEDED", "outcome": "changed", "state_reason": None}
        result |= {"message": None, "output": "", "given_up": False, "left_in": None}
        assert job.store.end_job(job.key, "w1", result)
        report = applier.reports.get(timeout=PATIENCE_S)
    assert (report.uuid, report.state) == (job.key.action, ActionState.SUCCEEDED)


@pytest.mark.parametrize(
    ("runs_on", "joins", "asked"),
    [
        ((None,), True, [JobTask.FIND, JobTask.VERIFY]),
        (("node-1",), True, [JobTask.VERIFY]),
        ((), False, [JobTask.FIND, JobTask.VERIFY]),
    ],
)
def test_an_adopted_job_is_looked_for_where_that_can_be_told(job, runs_on, joins, asked):
    job.take("w1", OUT_S)
    adopted = task(job.key, runs_on=runs_on)
    adopted.plugin.JOINS_WORK = joins
    seen = []
    offer = job.store.verify_job
    job.store.verify_job = lambda key, task=JobTask.VERIFY: seen.append(task) or offer(key, task)
    applier = Applier(job, lease_s=0.2, resend_s=0.2)
    with applier.workers as workers:
        workers.adopt(adopted)
        assert applier.messages.sent.get(timeout=PATIENCE_S) == job.key
    assert seen == asked


def test_an_attempt_without_a_job_is_followed_and_stopped_here(job):
    begun = threading.Event()

    def work(_parameters, _context, stop):
        begun.set()
        assert stop.wait(PATIENCE_S)
        raise ActionFailed("it was stopped")

    applier = Applier(job, is_known=False)
    with applier.workers as workers:
        adopted = task(job.key, work, continued_s=3.0)
        workers.adopt(adopted)
        assert begun.wait(PATIENCE_S)
        assert not workers.let_go(adopted)
        workers.stop(adopted, StopReason.ABORT)
        report = applier.reports.get(timeout=PATIENCE_S)
    assert report.state is ActionState.CANCELLED
    (row,) = job.store.jobs_of(job.key.plan)
    assert row.stop is None


@pytest.mark.parametrize("why", StopReason)
def test_a_stop_is_on_record_before_its_worker_is_told(job, why):
    job.take("w1")
    applier = Applier(job)
    with applier.workers as workers:
        adopted = task(job.key)
        workers.stop(adopted, why)
        assert applier.messages.looks.get(timeout=PATIENCE_S) == [job.key]
        (row,) = job.store.jobs_of(job.key.plan)
    assert row.stop is why
    assert adopted.stop.is_set()
    assert adopted.timed_out is (why is StopReason.TIMEOUT)


def test_stops_that_wait_are_told_together_up_to_a_limit(job, monkeypatch):
    monkeypatch.setattr(follower, "STOPS_AT_ONCE", 2)
    applier = Applier(job)
    keys = [AttemptKey(job.key.plan, uuid, 1) for uuid in "abc"]
    for key in keys:
        applier.workers.stop(task(key), StopReason.ABORT)
    with applier.workers:
        told = [applier.messages.looks.get(timeout=PATIENCE_S) for _ in range(2)]
    assert told == [keys[:2], keys[2:]]


def test_a_stop_is_tried_again_while_the_record_is_away(job, monkeypatch):
    job.take("w1")
    applier = Applier(job)
    stop_jobs, failures = job.store.stop_jobs, [StoreError("it is away")] * 2

    def away(*given):
        if failures:
            raise failures.pop()
        stop_jobs(*given)

    monkeypatch.setattr(job.store, "stop_jobs", away)
    with applier.workers as workers:
        workers.stop(task(job.key), StopReason.ABORT)
        assert applier.messages.looks.get(timeout=PATIENCE_S) == [job.key]
        (row,) = job.store.jobs_of(job.key.plan)
    assert row.stop is StopReason.ABORT


@pytest.mark.parametrize("uses_cloud", [True, False])
def test_only_what_uses_the_cloud_needs_a_worker_of_the_same(uses_cloud):
    kind = plugin(changed)
    kind.USES_CLOUD = uses_cloud
    environment = ActionEnvironment(plugins={"nop": kind}, cloud=lambda: None)
    require_able(PAYLOAD, environment, PAYLOAD["cloud"], "1")
    if not uses_cloud:
        require_able(PAYLOAD, environment, "other", "1")
        return
    with pytest.raises(ActionFailed, match="'other'"):
        require_able(PAYLOAD, environment, "other", "1")


def test_an_action_type_that_a_worker_cannot_use_fails_its_action(monkeypatch):
    environment = ActionEnvironment(plugins=ActionTypes(), cloud=lambda: None)
    unknown = {**PAYLOAD, "action_type": "announce"}
    with pytest.raises(ActionFailed, match="no plugin there offers the action type announce"):
        require_able(unknown, environment, PAYLOAD["cloud"], "1")
    monkeypatch.setattr(registry, "load", Mock(side_effect=BrokenPlugin("action type", "x", "no")))
    with pytest.raises(ActionFailed, match="'x'"):
        require_able(unknown, environment, PAYLOAD["cloud"], "1")


@pytest.mark.parametrize("continued_s", [None, 0.0, 12.5])
def test_a_new_attempt_and_one_that_goes_on_have_the_number_of_their_job(continued_s):
    environment = ActionEnvironment(plugins={"nop": plugin(changed)}, cloud=lambda: None)
    made = task_of(AttemptKey("p", "a", 3), {**PAYLOAD, "limit_s": 60.0}, environment, continued_s)
    assert (made.attempt, made.continued_s, made.limit_s) == (3, continued_s, 60.0)
    assert not made.cut_off


def test_a_job_says_that_the_attempt_before_was_cut_off():
    environment = ActionEnvironment(plugins={"nop": plugin(changed)}, cloud=lambda: None)
    assert task_of(AttemptKey("p", "a", 3), {**PAYLOAD, "cut_off": True}, environment).cut_off
