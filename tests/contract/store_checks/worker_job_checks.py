# SPDX-License-Identifier: Apache-2.0
"""Checks the jobs of workers: offered and removed with starts and ends, taken once, fenced."""

# Tests are assertions. The tokens are no secrets.
# ruff: noqa: S106

from __future__ import annotations

from typing import Any

import pytest
from sample_plans import new_plan

from applier.contracts import HistoryEntry, JobOffer, Report
from applier.errors import PlanConflict
from applier.storage.sql_store import SqlStore
from applier.store.entries import NO_PLAN, WorkerFigures
from applier.store.worker_jobs import (
    OVER,
    AttemptKey,
    HeldJob,
    JobTask,
    Served,
    StopReason,
    TakenJob,
    Worker,
    WorkerJobState,
)
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ActionState, PlanState
from store_checks.running_plans import (
    LATER,
    NOW,
    at_once,
    claimed,
    ends,
    retries,
    starts,
    succeeds,
)

OFFER = JobOffer(1, "site-b", "nop", {"name": "ä", "parameters": {"deep": [1, None, "\0"]}})
RESULT = {"state": "SUCCEEDED", "outcome": "changed", "output": "one\ntwo\0"}
LONG_S, OUT_S = 600.0, -600.0


class WorkerJobChecks:
    """Checks of the jobs of workers, from their offer to their removal, and of workers."""

    def test_a_job_is_offered_with_its_start_and_removed_with_its_end(
        self, store: SqlStore
    ) -> None:
        """A refused commit offers no job; the end of an action removes only its own job."""
        plan = new_plan("a", "b")
        claim = claimed(store, plan)
        offered = [_offered(action) for action in plan.actions]
        with pytest.raises(PlanConflict):
            store.commit(plan.uuid, "not this claim", offered, now=NOW)
        assert store.jobs_of(plan.uuid) == []
        store.commit(plan.uuid, claim, offered, now=NOW)
        found = store.jobs_of(plan.uuid)
        assert {job.key for job in found} == {_key(plan, 0), _key(plan, 1)}
        assert store.figures().jobs == {"todo": 2}
        job = found[0]
        assert (job.queue, job.action_type, job.task) == ("site-b", "nop", JobTask.ACT)
        assert (job.state, job.worker, job.stop, job.result) == ("todo", None, None, None)
        assert -60 < job.age_s < 60
        end = succeeds(plan.actions[0])._replace(job=OFFER)
        store.commit(plan.uuid, claim, [end], now=LATER)
        assert [job.key for job in store.jobs_of(plan.uuid)] == [_key(plan, 1)]

    def test_an_attempt_keeps_the_worker_that_took_its_job_last(self, store: SqlStore) -> None:
        """Each attempt has its own worker; None if the applier itself ran it."""
        plan = new_plan("a", "b")
        claim, (remote, local) = claimed(store, plan), plan.actions
        store.commit(plan.uuid, claim, [_offered(remote), starts(local)], now=NOW)
        _take(store, plan, "one")
        first = [retries(remote)._replace(job=OFFER), succeeds(local)]
        store.commit(plan.uuid, claim, first, now=LATER)
        second = OFFER._replace(attempt=2)
        store.commit(plan.uuid, claim, [starts(remote)._replace(job=second)], now=LATER)
        key = AttemptKey(plan.uuid, remote.uuid, 2)
        store.take_job(key, worker="w2", token="two", lease_s=LONG_S)
        store.commit(plan.uuid, claim, [succeeds(remote)._replace(job=second)], now=LATER)
        assert [one.worker for one in store.attempts(plan.uuid, remote.uuid)] == ["w1", "w2"]
        found = store.all_attempts(plan.uuid, most=0)
        assert [one.worker for one in found[remote.uuid]] == ["w1", "w2"]
        assert [one.worker for one in found[local.uuid]] == [None]

    def test_a_start_and_an_end_without_a_job_touch_none(self, store: SqlStore) -> None:
        """Reports without a job, as of actions that run in threads, change no jobs."""
        plan = new_plan("a", "b")
        claim = claimed(store, plan)
        first, second = plan.actions
        store.commit(plan.uuid, claim, [_offered(first), starts(second)], now=NOW)
        store.commit(plan.uuid, claim, [succeeds(second)], now=LATER)
        assert [job.key for job in store.jobs_of(plan.uuid)] == [_key(plan, 0)]

    def test_each_attempt_has_a_job_of_its_own(self, store: SqlStore) -> None:
        """A retry is offered again under its own number."""
        plan, claim = _running(store)
        (action,) = plan.actions
        store.commit(plan.uuid, claim, [retries(action)._replace(job=OFFER)], now=NOW)
        again = starts(action)._replace(job=OFFER._replace(attempt=2))
        store.commit(plan.uuid, claim, [again], now=LATER)
        assert [job.key.attempt for job in store.jobs_of(plan.uuid)] == [2]

    def test_no_job_is_left_when_a_plan_has_ended(self, store: SqlStore) -> None:
        """The jobs of a plan that is paused or resumed stay, for its next claimant."""
        plan, claim = _running(store)
        store.commit(plan.uuid, claim, [ends(plan.actions[0], ActionState.UNKNOWN)], now=NOW)
        store.move_claimed(plan.uuid, claim, PlanState.PAUSED, now=NOW)
        assert len(store.jobs_of(plan.uuid)) == 1
        store.resume_plan(plan.uuid, [], now=LATER)
        assert len(store.jobs_of(plan.uuid)) == 1
        store.move_plan(plan.uuid, PlanState.CANCELLED, now=LATER)
        assert store.jobs_of(plan.uuid) == []

    def test_of_several_workers_exactly_one_takes_a_job(self, store: SqlStore) -> None:
        """For the others, ``take_job`` returns None."""
        plan, _ = _running(store)

        def take(number: int) -> Any:
            return _take(store, plan, str(number), worker=f"w{number}")

        found = at_once(4, take)
        (winner,) = [number for number, taken in enumerate(found) if taken is not None]
        assert found[winner] == TakenJob(JobTask.ACT, OFFER.payload)
        (job,) = store.jobs_of(plan.uuid)
        assert (job.state, job.worker) == (WorkerJobState.DOING, f"w{winner}")

    def test_who_took_a_job_may_take_it_again_because_the_answer_may_be_lost(
        self, store: SqlStore
    ) -> None:
        """The same token takes it again; another token, or an unknown key, returns None."""
        plan, _ = _running(store)
        assert _take(store, plan, "mine") == _take(store, plan, "mine") is not None
        assert _take(store, plan, "other") is None
        missing = _key(plan)._replace(attempt=2)
        assert store.take_job(missing, worker="w", token="t", lease_s=LONG_S) is None

    def test_a_job_is_ended_only_by_who_holds_it_and_as_often_as_they_ask(
        self, store: SqlStore
    ) -> None:
        """``end_job`` returns whether the token holds it, and stores the result unchanged."""
        plan, _ = _running(store)
        assert not store.end_job(_key(plan), "mine", RESULT)
        _take(store, plan, "mine")
        assert not store.end_job(_key(plan), "other", RESULT)
        assert store.jobs_of(plan.uuid, OVER) == []
        assert store.end_job(_key(plan), "mine", RESULT)
        assert store.end_job(_key(plan), "mine", RESULT)
        (job,) = store.jobs_of(plan.uuid, OVER)
        assert (job.state, job.result) == (WorkerJobState.ENDED, RESULT)
        assert _take(store, plan, "mine") is None

    def test_a_lease_that_ran_out_is_fenced_and_one_that_is_renewed_is_not(
        self, store: SqlStore
    ) -> None:
        """A LOST job cannot be ended, renewed or taken. Jobs of other plans are not fenced."""
        plan, _ = _running(store)
        other, _ = _running(store)
        _take(store, plan, "mine", lease_s=LONG_S)
        _take(store, other, "its", lease_s=OUT_S)
        store.fence_jobs(plan.uuid)
        assert [job.state for job in store.jobs_of(plan.uuid)] == [WorkerJobState.DOING]
        store.renew_jobs([HeldJob(_key(plan), "other")], OUT_S)
        store.fence_jobs(plan.uuid)
        assert [job.state for job in store.jobs_of(plan.uuid)] == [WorkerJobState.DOING]
        store.renew_jobs([HeldJob(_key(plan), "mine")], OUT_S)
        store.fence_jobs(plan.uuid)
        assert [job.state for job in store.jobs_of(plan.uuid)] == [WorkerJobState.LOST]
        assert [job.state for job in store.jobs_of(other.uuid)] == [WorkerJobState.DOING]
        store.renew_jobs([HeldJob(_key(plan), "mine")], LONG_S)
        assert not store.end_job(_key(plan), "mine", RESULT)
        assert _take(store, plan, "mine") is None
        assert set(store.held_jobs("w1")) == {
            HeldJob(_key(other), "its"),
            HeldJob(_key(plan), None),
        }

    def test_a_lost_job_is_offered_again_only_to_be_verified(self, store: SqlStore) -> None:
        """The next worker gets the name of the first one, which cannot end the job any more."""
        plan, _ = _running(store)
        assert not store.verify_job(_key(plan))
        _take(store, plan, "first", lease_s=OUT_S)
        store.fence_jobs(plan.uuid)
        assert store.verify_job(_key(plan))
        assert not store.verify_job(_key(plan))
        taken = _take(store, plan, "second", worker="w2")
        assert taken == TakenJob(JobTask.VERIFY, OFFER.payload, None, "w1")
        assert _take(store, plan, "second", worker="w2") == taken
        assert not store.end_job(_key(plan), "first", RESULT)
        assert store.end_job(_key(plan), "second", RESULT)

    def test_a_lost_job_is_found_only_by_a_worker_on_the_same_machine(
        self, store: SqlStore
    ) -> None:
        """Once it is offered to be verified, a worker on any machine may take it."""
        plan, _ = _running(store)
        key = _key(plan)
        _take(store, plan, "first", worker="h_1:5:a", lease_s=OUT_S)
        assert not store.verify_job(key, JobTask.FIND)
        store.fence_jobs(plan.uuid)
        assert store.verify_job(key, JobTask.FIND)
        assert not store.verify_job(key, JobTask.FIND)
        # The name of the machine is not a pattern, and has to match as a whole.
        for elsewhere in ("hx1:5:b", "h_:5:b", "h_11:5:b"):
            assert _take(store, plan, "other", worker=elsewhere) is None
            assert store.jobs_to_find(elsewhere, ["site-b"]) == {}
        assert store.jobs_to_find("h_1:6:c", ["site-a"]) == {}
        assert list(store.jobs_to_find("h_1:6:c", ["site-a", "site-b"])) == [key]
        taken = _take(store, plan, "second", worker="h_1:6:c", lease_s=OUT_S)
        assert taken == TakenJob(JobTask.FIND, OFFER.payload, None, "h_1:5:a")
        assert store.jobs_to_find("h_1:6:c", ["site-b"]) == {}
        assert not store.verify_job(key)
        assert store.held_jobs("h_1:5:a") == []
        store.fence_jobs(plan.uuid)
        assert store.verify_job(key, JobTask.FIND)
        assert store.verify_job(key)
        taken = _take(store, plan, "third", worker="h_2:1:d")
        assert taken == TakenJob(JobTask.VERIFY, OFFER.payload, None, "h_1:5:a")

    def test_a_lost_job_is_told_to_stop_and_cancelled_if_nobody_takes_it(
        self, store: SqlStore
    ) -> None:
        """The worker that takes it to verify it gets the reason of the stop."""
        plan, _ = _running(store)
        key = _key(plan)
        _take(store, plan, "first", lease_s=OUT_S)
        store.fence_jobs(plan.uuid)
        store.stop_jobs([key], StopReason.TIMEOUT)
        (job,) = store.jobs_of(plan.uuid)
        assert (job.state, job.stop) == (WorkerJobState.LOST, StopReason.TIMEOUT)
        assert store.verify_job(key)
        taken = _take(store, plan, "second", worker="w2", lease_s=OUT_S)
        assert taken == TakenJob(JobTask.VERIFY, OFFER.payload, StopReason.TIMEOUT, "w1")
        store.fence_jobs(plan.uuid)
        assert store.verify_job(key)
        store.stop_jobs([key], StopReason.ABORT)
        (job,) = store.jobs_of(plan.uuid, OVER)
        assert (job.state, job.stop) == (WorkerJobState.CANCELLED, StopReason.TIMEOUT)

    def test_a_job_that_nobody_took_is_cancelled_by_a_stop_and_another_is_told(
        self, store: SqlStore
    ) -> None:
        """A second stop does not change the reason."""
        plan, claim = _running(store)
        store.stop_jobs([_key(plan)], StopReason.ABORT)
        (job,) = store.jobs_of(plan.uuid, OVER)
        assert (job.state, job.stop) == (WorkerJobState.CANCELLED, StopReason.ABORT)
        assert _take(store, plan, "mine") is None
        (action,) = plan.actions
        store.commit(plan.uuid, claim, [retries(action)._replace(job=OFFER)], now=NOW)
        offer = OFFER._replace(attempt=2)
        store.commit(plan.uuid, claim, [starts(action)._replace(job=offer)], now=LATER)
        key = _key(plan)._replace(attempt=2)
        assert store.take_job(key, worker="w1", token="mine", lease_s=LONG_S)
        assert store.held_jobs("w1") == [HeldJob(key, "mine")]
        store.stop_jobs([key], StopReason.TIMEOUT)
        store.stop_jobs([key], StopReason.ABORT)
        assert store.held_jobs("w1") == [HeldJob(key, "mine", StopReason.TIMEOUT)]
        assert store.held_jobs("w2") == []
        taken = store.take_job(key, worker="w1", token="mine", lease_s=LONG_S)
        assert taken == TakenJob(JobTask.ACT, OFFER.payload, StopReason.TIMEOUT)
        assert store.end_job(key, "mine", RESULT)

    def test_jobs_that_nobody_took_are_listed_to_be_sent_again(self, store: SqlStore) -> None:
        """A job that was listed counts as sent now. A job that was taken is not listed."""
        plan, _ = _running(store)
        assert store.unsent_jobs(plan.uuid, LONG_S) == []
        assert [job.key for job in store.unsent_jobs(plan.uuid, -LONG_S)] == [_key(plan)]
        assert store.unsent_jobs(plan.uuid, LONG_S) == []
        _take(store, plan, "mine")
        assert store.unsent_jobs(plan.uuid, -LONG_S) == []

    def test_workers_are_listed_until_removed_and_told_to_drain(self, store: SqlStore) -> None:
        """The first report registers a worker; later ones change only the number of its jobs."""
        known: dict[str, Any] = {"host": "h", "user": "u", "version": "1", "places": 4}
        second = Worker("w2", pid=2, queues=["a", "b"], types=["nop"], cloud="east", **known)
        first = Worker("w1", pid=1, queues=[], types=[], **known)
        assert not store.report_worker(second)
        assert not store.report_worker(first)
        assert not store.report_worker(second._replace(running=3))
        drained = HistoryEntry(verb="worker drain", who="ada", at=NOW, why="w2")
        assert not store.drain_worker("w3", history=drained)
        assert store.drain_worker("w2", history=drained)
        assert store.drain_worker("w2", history=drained)
        assert [(e.verb, e.who, e.why) for e in store.history(NO_PLAN)] == [
            ("worker drain", "ada", "w2")
        ]
        assert store.report_worker(second._replace(running=2))
        found = store.workers()
        assert [worker.name for worker in found] == ["w1", "w2"]
        shown = found[1]._replace(started_at=None, silent_s=0.0)
        assert shown == second._replace(running=2, draining=True)
        assert -60 < found[1].silent_s < 60
        counted = {worker.name: worker for worker in store.figures().workers}
        assert counted["w2"]._replace(silent_s=0.0) == WorkerFigures(
            name="w2",
            host=second.host,
            running=2,
            places=second.places,
            draining=True,
            silent_s=0.0,
        )
        assert not counted["w1"].draining
        store.remove_worker("w2")
        store.remove_worker("w2")
        assert [worker.name for worker in store.workers()] == ["w1"]

    def test_a_worker_that_drains_by_itself_is_listed_so_and_serves_no_queue(
        self, store: SqlStore
    ) -> None:
        """``started_at`` stays. A later report without ``draining`` does not end the drain."""
        known: dict[str, Any] = {"host": "h", "user": "u", "version": "1", "types": ["nop"]}
        first = Worker("w1", pid=1, queues=["a", "b"], places=4, **known)
        second = Worker("w2", pid=2, queues=["b"], places=3, **known)
        for worker in (first, second, second):
            assert not store.report_worker(worker)
        assert store.served_queues() == {"a": Served(1, 4), "b": Served(2, 7)}
        began = store.workers()[0].started_at
        assert store.report_worker(first._replace(running=1, draining=True))
        assert store.report_worker(first._replace(running=1, draining=True))
        assert store.report_worker(first)
        found, _ = store.workers()
        assert found.started_at == began
        assert found.draining
        assert store.served_queues() == {"b": Served(1, 3)}
        assert store.drain_worker("w2")
        assert store.served_queues() == {}


def _offered(action: Action) -> Report:
    return starts(action)._replace(job=OFFER)


def _running(store: SqlStore) -> tuple[ActionPlan, str]:
    """Return a plan whose only action is offered to workers, and its claim."""
    plan = new_plan("a")
    claim = claimed(store, plan)
    store.commit(plan.uuid, claim, [_offered(plan.actions[0])], now=NOW)
    return plan, claim


def _key(plan: ActionPlan, number: int = 0) -> AttemptKey:
    return AttemptKey(plan.uuid, plan.actions[number].uuid, 1)


def _take(
    store: SqlStore, plan: ActionPlan, token: str, *, worker: str = "w1", lease_s: float = LONG_S
) -> TakenJob | None:
    return store.take_job(_key(plan), worker=worker, token=token, lease_s=lease_s)
