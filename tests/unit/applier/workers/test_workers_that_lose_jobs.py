# SPDX-License-Identifier: Apache-2.0
"""What a worker does that is cut off, frozen, or not able to carry a job out."""

from __future__ import annotations

import json
import threading
from contextlib import closing
from types import SimpleNamespace

import pytest
from followed_job import LONG_S, OUT_S, PAYLOAD, Clock, Job, change, changed, runner
from temporary_store import TemporaryStore

from applier.contracts import Verified
from applier.engines.tasks import ActionTask
from applier.errors import ActionFailed, DamagedRecord, StoreError
from applier.machines.open_machines import OpenMachines
from applier.store.worker_jobs import (
    AttemptKey,
    HeldJob,
    JobTask,
    StopReason,
    TakenJob,
    Worker,
    WorkerJob,
    WorkerJobState,
)
from applier.workers import job_runner
from applier.workers.job_runner import worker_name
from applier.workers.lease_keeper import LeaseKeeper
from planner.plan.states import ActionState

PATIENCE_S = 120.0
#: The worker that the runner of these tests is of.
WORKER = Worker("h2:7:b", "h2", 7, "u", "1", ["site-b"], ["nop"], 1)


class Performed:
    """A job whose work has begun in a thread, and goes on until it is told to stop."""

    def __init__(self, job: Job, **options: object) -> None:
        begun, self.stopped = threading.Event(), threading.Event()

        def work(_parameters, _context, stop):
            begun.set()
            assert stop.wait(PATIENCE_S)
            self.stopped.set()
            raise ActionFailed("it was stopped")

        self.runner = runner(job.store, work, **options)
        self.thread = threading.Thread(target=self.runner.perform, args=(job.key,))
        self.thread.start()
        assert begun.wait(PATIENCE_S)

    def is_stopped(self) -> bool:
        """Wait for the end of the thread, and return whether the work was told to stop."""
        self.thread.join(PATIENCE_S)
        return self.stopped.is_set()


@pytest.mark.parametrize(
    ("change", "own", "why"),
    [
        ({"action_type": "wings"}, {}, "the action type wings"),
        ({"format": 2, "release": "9"}, {}, "ActionPlan 1, older than 9"),
    ],
)
def test_a_job_that_a_worker_cannot_carry_out_goes_back_with_a_sentence(store, change, own, why):
    job = Job(store, {**PAYLOAD, **change})
    runner(store, **own).perform(job.key)
    job.look_until(1)
    (report,) = job.reports
    assert report.state is ActionState.FAILED
    assert report.message.startswith("worker h2:7:b ")
    assert why in report.message


@pytest.mark.parametrize("task", [JobTask.VERIFY, JobTask.FIND])
def test_a_worker_without_the_type_does_not_say_that_a_lost_attempt_failed(store, task):
    """It may go on: it would run beside its next attempt."""
    job = Job(store, {**PAYLOAD, "action_type": "wings"})
    job.follower.follow(job.key, job.offer, at_worker=task is JobTask.FIND)
    job.take("h2:5:a", OUT_S)
    job.look_until(32)
    runner(store).perform(job.key)
    job.look_until(1)
    (report,) = job.reports
    assert (report.state, report.given_up) == (ActionState.UNKNOWN, True)
    assert "the action type wings" in report.message


@pytest.mark.parametrize(
    ("broken", "is_lost", "state", "told"),
    [
        ("task_of", False, ActionState.FAILED, "worker h2:7:b cannot carry it out: it broke"),
        (
            "InterruptedActions",
            True,
            ActionState.UNKNOWN,
            "worker h2:7:b cannot carry it out: it broke",
        ),
        ("execute", False, ActionState.UNKNOWN, "worker h2:7:b carried it out when it broke"),
    ],
)
def test_a_worker_whose_own_code_breaks_says_what_happened(
    job, monkeypatch, caplog, broken, is_lost, state, told
):
    """Whether its action is in doubt depends on whether it may have begun."""

    def breaks(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(ActionTask if broken == "execute" else job_runner, broken, breaks)
    if is_lost:
        job.take("h2:5:a", OUT_S)
        job.look_until(32)
    runner(job.store).perform(job.key)
    job.look_until(1)
    (report,) = job.reports
    in_doubt = state is ActionState.UNKNOWN
    assert (report.state, report.given_up) == (state, in_doubt)
    assert f"{told}: ZeroDivisionError: by zero" in report.message
    assert ("actionplan action set PLAN" in report.message) is in_doubt
    assert "Traceback" in caplog.text


@pytest.mark.parametrize(
    ("payload", "wrong"),
    [
        ("no JSON", "release"),
        ("[1]", "release"),
        ("{}", "release"),
        (json.dumps({**PAYLOAD, "format": "wings"}), "format"),
        (json.dumps({**PAYLOAD, "input_parameters": ["a"]}), "input_parameters"),
        (json.dumps({**PAYLOAD, "limit_s": "soon"}), "limit_s"),
    ],
)
@pytest.mark.parametrize("is_lost", [False, True], ids=["new", "lost"])
def test_a_job_whose_payload_is_damaged_ends_and_is_not_sent_again(job, payload, wrong, is_lost):
    if is_lost:
        job.take("h2:5:a", OUT_S)
        job.look_until(32)
    change(job.store, "UPDATE actionplan_worker_job SET payload = ?", payload)
    runner(job.store).perform(job.key)
    job.look_until(1)
    (report,) = job.reports
    assert report.state is (ActionState.UNKNOWN if is_lost else ActionState.FAILED)
    assert f"damaged: {wrong} " in report.message
    assert ("actionplan action set PLAN" in report.message) is is_lost


def test_a_worker_that_was_stopped_after_it_took_a_job_begins_nothing_once_it_is_lost(job):
    ran = []
    clock = Clock()

    class Frozen:
        """The record as seen by a worker that is stopped right after it took a job."""

        def take_job(self, key: AttemptKey, **given: object) -> TakenJob | None:
            taken = job.store.take_job(key, **{**given, "lease_s": OUT_S})
            if taken is not None:
                clock.now += 2 * LONG_S
                job.store.fence_jobs(key.plan)
            return taken

        def __getattr__(self, name: str) -> object:
            return getattr(job.store, name)

    runner(Frozen(), lambda *given: ran.append(given), clock=clock).perform(job.key)
    assert ran == []
    assert job.state is WorkerJobState.LOST


def test_a_job_is_verified_at_its_own_worker_while_its_lost_attempt_still_stops(job):
    """The two are told apart: the first is left, and the second is not."""
    begun, go_on = threading.Event(), threading.Event()

    def work(_parameters, _context, stop):
        begun.set()
        assert stop.wait(PATIENCE_S)
        assert go_on.wait(PATIENCE_S)
        raise ActionFailed("it was stopped")

    doing = runner(job.store, work, verified=Verified.DONE)
    first = threading.Thread(target=doing.perform, args=(job.key,))
    first.start()
    assert begun.wait(PATIENCE_S)
    job.store.renew_jobs(doing.held(), OUT_S)
    job.look_until(32)
    doing.perform(job.key)
    (held,) = doing.held()
    assert doing.stop(held, None)
    go_on.set()
    first.join(PATIENCE_S)
    job.look_until(1)
    (report,) = job.reports
    assert report.state is ActionState.SUCCEEDED


class Away:
    """A store that does not answer."""

    def renew_jobs(self, *_: object) -> None:
        raise StoreError("no route to host")


def test_a_worker_that_cannot_renew_its_leases_leaves_its_jobs_before_they_run_out(job):
    """What it stops is no result: who finds out what became of the attempt will say."""
    doing, clock = Performed(job), Clock()
    keeper = LeaseKeeper(Away(), doing.runner, WORKER, lease_s=30.0, clock=clock)
    clock.now += 26
    keeper.look()
    keeper.look_at_time()
    assert not doing.stopped.wait(0.05)
    clock.now += 2
    keeper.look_at_time()
    assert doing.is_stopped()
    assert job.state is WorkerJobState.DOING


def test_a_job_that_is_not_held_any_more_is_stopped_and_its_result_is_dropped(job):
    doing = Performed(job)
    job.store.renew_jobs(doing.runner.held(), OUT_S)
    job.store.fence_jobs(job.key.plan)
    LeaseKeeper(job.store, doing.runner, WORKER, lease_s=30.0, clock=Clock()).look()
    assert doing.is_stopped()
    assert job.state is WorkerJobState.LOST


def test_a_job_that_was_removed_is_stopped_when_it_stays_away(job):
    """Its plan has ended, and nobody will look for its commands."""
    doing = Performed(job)
    keeper = LeaseKeeper(Removed(job.store), doing.runner, WORKER, lease_s=30.0, clock=Clock())
    keeper.look()
    assert len(doing.runner.held()) == 1
    assert not doing.stopped.is_set()
    keeper.look()
    assert doing.is_stopped()


class Removed:
    """A store in which no job is left."""

    def __init__(self, store: TemporaryStore) -> None:
        self._store = store

    def held_jobs(self, _worker: str) -> list[HeldJob]:
        return []

    def jobs_of(self, _plan: str) -> list[WorkerJob]:
        return []

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


@pytest.fixture
def here(tmp_path):
    with closing(OpenMachines(place=tmp_path / "jobs")) as machines:
        yield machines


def found_by_the_next_worker(job, machines, lost, work=changed):
    """Return the report of an attempt of a command that is looked for on the machine."""
    job.follower.follow(job.key, job.offer, at_worker=True)
    job.take(lost, OUT_S)
    job.look_until(32)
    name = worker_name("h2", 7, machines.origin)
    finder = runner(job.store, work, name=name, machines=machines, runs_on=(None,))
    finder.perform(job.key)
    job.look_until(1)
    (report,) = job.reports
    return report


def test_a_worker_that_is_killed_before_it_begins_what_it_took_costs_a_second_attempt(job, here):
    report = found_by_the_next_worker(job, here, worker_name("h2", 5, here.origin))
    assert report.again
    assert "it had not begun: it runs again" in report.message


@pytest.mark.slow  # the machine is asked by a process
def test_nothing_is_proven_by_the_permits_of_another_folder_or_of_before_a_restart(job, here):
    report = found_by_the_next_worker(job, here, worker_name("h2", 5, "0a1b2c"))
    assert report.state is ActionState.UNKNOWN


@pytest.mark.slow
def test_nothing_is_proven_by_a_worker_that_was_lost_while_it_looked(job, here):
    """What counts is where the first worker wrote its permit."""
    job.follower.follow(job.key, job.offer, at_worker=True)
    job.take(worker_name("h2", 4, "0a1b2c"), OUT_S)
    job.look_until(32)
    report = found_by_the_next_worker(job, here, worker_name("h2", 5, here.origin))
    assert report.state is ActionState.UNKNOWN


def test_a_worker_begins_nothing_of_which_nobody_could_find_out_that_it_began(job, tmp_path):
    (tmp_path / "jobs").touch()
    ran = []
    with closing(OpenMachines(place=tmp_path / "jobs")) as machines:
        does = runner(
            job.store, lambda *given: ran.append(given), machines=machines, runs_on=(None,)
        )
        does.perform(job.key)
    job.look_until(1)
    (report,) = job.reports
    assert (report.state, ran) == (ActionState.FAILED, [])
    assert "its permit cannot be written" in report.message


def test_a_job_is_told_once_to_stop_and_whether_it_runs(job):
    doing = Performed(job)
    (held,) = doing.runner.held()
    assert doing.runner.stop(held, StopReason.ABORT)
    assert not doing.runner.stop(held, StopReason.ABORT)
    assert doing.is_stopped()
    assert not doing.runner.stop(held, StopReason.ABORT)


@pytest.mark.parametrize("is_lost", [True, False])
def test_the_commands_of_a_lost_job_go_on_and_those_of_a_stopped_one_do_not(job, is_lost):
    let_go = []
    attempt = SimpleNamespace(
        permit=lambda: True,
        let_go=lambda: let_go.append("commands"),
        forget=lambda: None,
        is_prechecking=False,
    )
    machines = SimpleNamespace(of_attempt=lambda *_: attempt)
    doing = Performed(job, machines=machines, runs_on=(None,))
    (held,) = doing.runner.held()
    assert doing.runner.stop(held, None if is_lost else StopReason.ABORT)
    assert doing.is_stopped()
    assert let_go == ["commands"] * is_lost


@pytest.mark.parametrize("error", [StoreError("away"), DamagedRecord("the record", ["no table"])])
def test_a_result_that_cannot_be_written_is_written_later(job, error, caplog):
    end_job, errors = job.store.end_job, [error] * 2

    def refused(*given):
        if errors:
            raise errors.pop()
        return end_job(*given)

    job.store.end_job = refused
    runner(job.store).perform(job.key)
    assert job.state is WorkerJobState.ENDED
    assert caplog.text.count("The record cannot be reached; retrying: ") == 1


def test_a_job_that_is_damaged_is_not_asked_for_again_and_again(job):
    """It would keep a place of the worker for ever."""
    change(job.store, "UPDATE actionplan_worker_job SET task = ?", "zz")
    with pytest.raises(DamagedRecord):
        runner(job.store).perform(job.key)
