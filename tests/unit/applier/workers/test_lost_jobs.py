# SPDX-License-Identifier: Apache-2.0
"""What becomes of jobs whose workers are lost, cut off, or not able: seen from both sides."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime

import pytest

from applier.contracts import Claimant, JobOffer, Report, Verified
from applier.engines.environment import ActionEnvironment
from applier.errors import StoreError
from applier.store.worker_jobs import AttemptKey, StopReason, Worker, WorkerJobState
from applier.testing.sample_plans import new_plan
from applier.testing.temporary_store import TemporaryStore
from applier.testing.trials import changed, plugin
from applier.workers.follower import JobFollower
from applier.workers.job_runner import Capacities, JobRunner
from applier.workers.lease_keeper import LeaseKeeper
from planner.states import ActionState, Outcome, PlanState

PAYLOAD = {
    "format": 1,
    "release": "1",
    "cloud": "simulated",
    "name": "a",
    "action_type": "nop",
    "input_parameters": {},
    "limit_s": None,
    "cut_off": False,
}
NOW = datetime(2026, 1, 2, tzinfo=UTC)
OUT_S, LONG_S = -600.0, 600.0


class Clock:
    """A clock that a test moves."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Messages:
    """Notes what was sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, AttemptKey]] = []

    def send(self, queue: str, key: AttemptKey) -> None:
        self.sent.append((queue, key))

    def look(self, key: AttemptKey) -> None:
        pass

    def close(self) -> None:
        pass


class Job:
    """A job on record that an applier follows, and the reports that it got."""

    def __init__(self, store: TemporaryStore, payload: dict[str, object]) -> None:
        self.store, self.clock, self.messages = store, Clock(), Messages()
        plan = new_plan("a", state=PlanState.PENDING)
        (action,) = plan.actions
        store.save_plan(plan)
        claim = store.claim_plan(plan.uuid, Claimant(host="h", pid=1, user="u"), now=NOW)
        self.offer = JobOffer(1, "site-b", "nop", payload)
        start = Report(
            uuid=action.uuid, old=ActionState.PENDING, state=ActionState.ONGOING, job=self.offer
        )
        store.commit(plan.uuid, claim, [start], now=NOW)
        self.key = AttemptKey(plan.uuid, action.uuid, 1)
        self.reports: list[Report] = []
        self.follower = JobFollower(
            plan.uuid,
            store,
            self.messages,
            self.reports.append,
            lease_s=30.0,
            resend_s=-1.0,
            clock=self.clock,
        )
        self.follower.follow(self.key, self.offer)

    def take(self, worker: str, lease_s: float = LONG_S) -> None:
        assert self.store.take_job(self.key, worker=worker, token=worker, lease_s=lease_s)

    def look_until(self, passed_s: float) -> None:
        """Look every second, as the thread of the follower does."""
        until = self.clock.now + passed_s
        while self.clock.now < until:
            self.clock.now += 1
            self.follower.look()

    @property
    def state(self) -> WorkerJobState:
        (job,) = self.store.jobs_of(self.key.plan)
        return job.state


@pytest.fixture
def store() -> Iterator[TemporaryStore]:
    with closing(TemporaryStore()) as store:
        yield store


@pytest.fixture
def job(store) -> Job:
    return Job(store, PAYLOAD)


def runner(store, work=changed, *, verified=Verified.IN_DOUBT, **own) -> JobRunner:
    kind = plugin(work)
    kind.verify = lambda _self: verified
    environment = ActionEnvironment(plugins={"nop": kind}, cloud=lambda: None)
    known = {"name": "h2:7:b", "host": "h2", "cloud": "simulated", "release": "1"}
    capacities = Capacities(environment=environment, **{**known, **own})
    return JobRunner(store, capacities, lease_s=LONG_S)


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
    ("verified", "state", "again"),
    [
        (Verified.DONE, ActionState.SUCCEEDED, False),
        (Verified.NOT_DONE, ActionState.FAILED, True),
        (Verified.IN_DOUBT, ActionState.UNKNOWN, False),
    ],
)
def test_a_lost_job_is_verified_by_another_worker_and_not_run(job, verified, state, again):
    ran = []
    job.take("h1:5:a", OUT_S)
    job.look_until(32)
    runner(job.store, lambda *given: ran.append(given), verified=verified).perform(job.key)
    job.look_until(1)
    (report,) = job.reports
    assert (report.state, report.again, report.job) == (state, again, job.offer)
    assert ran == []


def test_who_verifies_is_lost_too_and_the_action_is_in_doubt(job):
    job.take("w1", OUT_S)
    job.look_until(32)
    job.take("w2", OUT_S)
    job.look_until(2)
    (report,) = job.reports
    assert report.state is ActionState.UNKNOWN
    assert "w2" in report.message


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
    job.store.stop_job(job.key, StopReason.TIMEOUT)
    job.look_until(1)
    (report,) = job.reports
    assert (report.state, report.outcome) == (ActionState.FAILED, Outcome.ERROR)
    assert report.message == "timed out: no worker took it from the queue site-b"


@pytest.mark.parametrize(
    ("change", "own", "why"),
    [
        ({"action_type": "wings"}, {}, "no plugin there offers the action type wings"),
        ({"format": 2, "release": "9"}, {}, "it has ActionPlan 1, older than 9 of the applier"),
    ],
)
def test_a_job_that_a_worker_cannot_carry_out_goes_back_with_a_sentence(store, change, own, why):
    job = Job(store, {**PAYLOAD, **change})
    runner(store, **own).perform(job.key)
    job.look_until(1)
    (report,) = job.reports
    assert report.state is ActionState.FAILED
    assert report.message == f"worker h2:7:b cannot carry it out: {why}"


class Away:
    """A store that does not answer."""

    def renew_jobs(self, *_: object) -> None:
        raise StoreError("no route to host")


def test_a_worker_that_cannot_renew_its_leases_stops_its_jobs_before_they_run_out(job):
    begun, stopped = threading.Event(), threading.Event()

    def work(_parameters, _context, stop):
        begun.set()
        assert stop.wait(20)
        stopped.set()
        return Outcome.CHANGED

    doing, clock = runner(job.store, work), Clock()
    thread = threading.Thread(target=doing.perform, args=(job.key,))
    thread.start()
    assert begun.wait(20)
    worker = Worker("h2:7:b", "h2", 7, "u", "1", ["site-b"], ["nop"], 1)
    keeper = LeaseKeeper(Away(), doing, worker, lease_s=30.0, clock=clock)
    clock.now += 26
    keeper.look()
    assert not stopped.wait(0.05)
    clock.now += 2
    keeper.look()
    assert stopped.wait(20)
    thread.join(20)


def test_a_job_that_is_not_held_any_more_is_stopped_and_its_result_is_dropped(job):
    begun, seen = threading.Event(), []

    def work(_parameters, _context, stop):
        begun.set()
        seen.append(stop.wait(20))
        return Outcome.CHANGED

    doing = runner(job.store, work)
    thread = threading.Thread(target=doing.perform, args=(job.key,))
    thread.start()
    assert begun.wait(20)
    job.store.renew_jobs(doing.held(), OUT_S)
    job.store.fence_jobs(job.key.plan)
    worker = Worker("h2:7:b", "h2", 7, "u", "1", ["site-b"], ["nop"], 1)
    LeaseKeeper(job.store, doing, worker, lease_s=30.0, clock=Clock()).look()
    thread.join(20)
    assert seen == [True]
    assert job.state is WorkerJobState.LOST
