# SPDX-License-Identifier: Apache-2.0
"""What becomes of jobs whose workers are lost, or never come: seen from the applier."""

from __future__ import annotations

import os
import threading

import pytest
from followed_job import OUT_S, PAYLOAD, Job, change, runner

from applier.contracts import Verified
from applier.errors import DamagedRecord
from applier.run.liveness import may_be_at_work
from applier.run.this_process import this_host
from applier.store.worker_jobs import (
    AttemptKey,
    JobTask,
    StopReason,
    WorkerJobState,
)
from applier.workers.payloads import process_of
from planner.plan.states import ActionState, Outcome

PATIENCE_S = 120.0


def test_a_lease_that_ran_out_counts_only_after_a_whole_lease_within_reach(job):
    job.take("w1", OUT_S)
    job.look_until(29)
    assert job.state is WorkerJobState.DOING
    job.clock.now += 20  # an answer that took so long: the record was away
    job.look_until(29)
    assert job.state is WorkerJobState.DOING
    job.look_until(3)
    assert job.state is WorkerJobState.TODO
    assert job.messages.sent[0] == ("site-b", job.key)
    assert job.reports == []


@pytest.mark.parametrize(
    ("lost_on", "joins", "verified", "state", "held"),
    [
        ("h1", False, Verified.DONE, ActionState.SUCCEEDED, False),
        ("h1", False, Verified.NOT_DONE, ActionState.UNKNOWN, True),
        ("h1", False, Verified.IN_DOUBT, ActionState.UNKNOWN, True),
        ("h1", True, Verified.NOT_DONE, ActionState.FAILED, False),
        ("h1", True, Verified.IN_DOUBT, ActionState.UNKNOWN, False),
        ("here", False, Verified.NOT_DONE, ActionState.FAILED, False),
        ("here", False, Verified.IN_DOUBT, ActionState.UNKNOWN, False),
    ],
)
def test_a_lost_job_is_verified_by_another_worker_and_not_run(
    job, ended_pid, lost_on, joins, verified, state, held
):
    """It runs again if its worker is known to have ended, or if that may join its work."""
    ran = []
    process = f"{this_host() if lost_on == 'here' else lost_on}:{ended_pid}"
    job.take(f"{process}:a", OUT_S)
    job.look_until(32)
    work = runner(
        job.store, lambda *given: ran.append(given), verified=verified, joins=joins, host="h2"
    )
    work.perform(job.key)
    job.look_until(1)
    (report,) = job.reports
    assert (report.state, report.again) == (state, state is ActionState.FAILED)
    assert (report.given_up, report.job) == (held, job.offer)
    assert report.left_in == process or not held
    assert ran == []


def test_a_worker_finds_what_it_lost_itself_once_it_is_not_at_work_on_it_any_more(job):
    """Until then nobody on its machine does: it may be frozen, or deaf to its stop signal."""
    begun, goes_on = threading.Event(), threading.Event()

    def work(*_given):
        begun.set()
        assert goes_on.wait(PATIENCE_S)
        return Outcome.CHANGED

    own = f"{this_host()}:{os.getpid()}:a"
    at_work = runner(job.store, work, name=own, verified=Verified.NOT_DONE)
    thread = threading.Thread(target=at_work.perform, args=(job.key,))
    thread.start()
    assert begun.wait(PATIENCE_S)
    assert may_be_at_work(process_of(own), job.key.action)
    goes_on.set()
    thread.join(PATIENCE_S)
    assert not may_be_at_work(process_of(own), job.key.action)
    assert may_be_at_work(f"{this_host()}:{os.getppid()}", job.key.action)
    assert may_be_at_work("elsewhere:1", job.key.action)


def test_whoever_verifies_is_lost_too_and_the_action_is_in_doubt_and_keeps_its_tokens(job):
    job.take("w1", OUT_S)
    job.look_until(32)
    for name in ("w2", "w3"):
        job.take(name, OUT_S)
        job.look_until(2)
        assert job.reports == []
    job.take("w4", OUT_S)
    job.look_until(2)
    (report,) = job.reports
    assert report.state is ActionState.UNKNOWN
    assert report.given_up
    assert "w4" in report.message


def test_commands_of_a_worker_are_looked_for_on_its_machine_and_then_anywhere(job):
    job.follower.follow(job.key, job.offer, at_worker=True)
    job.take("h1:5:a", OUT_S)
    job.look_until(32)
    assert job.taken_by("h2:7:b") is None
    assert job.store.jobs_to_find("h2:7:b", ["site-b"]) == {}
    assert job.store.jobs_to_find("h1:6:c", ["site-a"]) == {}
    assert job.store.jobs_to_find("h1:6:c", ["site-b"]) == {job.key: "h1:5:a"}
    assert job.messages.sent == [], "its machine looks for it, and no other has to"
    job.look_until(62)
    assert job.reports == []
    assert job.taken_by("h2:7:b").task is JobTask.VERIFY


def test_commands_of_a_worker_are_found_by_the_next_on_its_machine_however_often_it_is_lost(job):
    job.follower.follow(job.key, job.offer, at_worker=True)
    job.take("h1:5:a", OUT_S)
    job.look_until(32)
    assert job.taken_by("h1:6:b", OUT_S).task is JobTask.FIND
    job.look_until(2)
    assert job.taken_by("h1:7:c").lost_worker == "h1:5:a"


def test_a_stop_reaches_a_job_that_was_just_lost(job):
    job.take("w1", OUT_S)
    job.store.fence_jobs(job.key.plan)
    job.store.stop_jobs([job.key], StopReason.ABORT)
    job.look_until(1)
    assert job.taken_by("w2").stop is StopReason.ABORT


def test_one_that_was_stopped_and_that_nobody_verifies_is_in_doubt(job):
    job.take("w1", OUT_S)
    job.store.stop_jobs([job.key], StopReason.ABORT)
    job.look_until(32 + 70)
    (report,) = job.reports
    assert report.state is ActionState.UNKNOWN


def test_an_action_whose_job_is_not_on_record_any_more_ends_in_doubt(job):
    other = AttemptKey(job.key.plan, "gone", 1)
    job.follower.follow(other, job.offer)
    job.look_until(29)  # they are counted once a lease
    assert job.reports == []
    job.look_until(2)
    (report,) = job.reports
    assert (report.uuid, report.state) == ("gone", ActionState.UNKNOWN)
    assert report.message == "its job is not on record any more"


def test_nobody_verifies_and_the_action_is_in_doubt_after_two_leases(job):
    job.take("w1", OUT_S)
    job.look_until(32)
    job.look_until(58)
    assert job.reports == []
    job.look_until(10)
    (report,) = job.reports
    assert report.state is ActionState.UNKNOWN


def test_a_job_that_nobody_took_is_sent_again_and_a_queue_without_workers_is_told_once(job, caplog):
    job.look_until(3)
    assert job.messages.sent == [("site-b", job.key)] * 3
    assert caplog.text.count("no worker serves site-b") == 1


def test_a_job_that_nobody_takes_is_over_when_it_is_told_to_stop(job):
    job.store.stop_jobs([job.key], StopReason.TIMEOUT)
    job.look_until(1)
    (report,) = job.reports
    assert (report.state, report.outcome) == (ActionState.FAILED, Outcome.ERROR)
    assert report.message.startswith("timed out: ")
    assert "site-b" in report.message


@pytest.mark.parametrize("lease_s", [1.0, 2.0, 30.0])
def test_a_lost_worker_is_known_whatever_the_length_of_a_lease(store, lease_s):
    """The follower looks each quarter of a second while nothing ends."""
    job = Job(store, PAYLOAD, lease_s=lease_s)
    job.take("w1", OUT_S)
    job.look_until(lease_s + 1, step_s=0.3)
    assert job.state is WorkerJobState.TODO


def test_what_workers_say_of_themselves_keeps_no_job_from_being_sent_again(job):
    def damaged():
        raise DamagedRecord("the record", ["worker w9: types: no JSON"])

    job.store.served_queues = damaged
    job.clock.now += 30
    for _ in range(3):
        job.clock.now += 1
        with pytest.raises(DamagedRecord):
            job.follower.look()
    assert job.messages.sent == [("site-b", job.key)] * 3


@pytest.mark.parametrize(
    ("column", "value"), [("task", "zz"), ("stop", "zz"), ("state", "zz"), ("offered_at", "x")]
)
@pytest.mark.parametrize("is_over", [True, False], ids=["over", "not taken"])
def test_a_damaged_job_is_in_doubt_and_the_others_go_on(store, column, value, is_over):
    jobs = [Job(store, PAYLOAD), Job(store, PAYLOAD)]
    first, second = jobs
    if is_over:
        for job in jobs:
            runner(store).perform(job.key)
    change(
        store,
        f"UPDATE actionplan_worker_job SET {column} = ? WHERE plan = ?",
        value,
        first.key.plan,
    )
    for job in jobs:
        for _ in range(40):
            job.clock.now += 1
            try:
                job.follower.look()
            except DamagedRecord:
                assert not is_over
    (report,) = first.reports
    assert (report.state, report.given_up, report.job) == (ActionState.UNKNOWN, True, first.offer)
    assert f"{column} '{value}' is " in report.message
    assert [r.state for r in second.reports] == [ActionState.SUCCEEDED] * is_over
