# SPDX-License-Identifier: Apache-2.0
"""The engine keeps its contract if its actions run at workers, which only the record connects."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace

import pytest
from engine_checks.engine_setting import PATIENCE_S, pair
from engine_suite import EngineContract
from trials import Trial, changed

from applier.engines.taskflow_engine import TaskFlowEngine
from applier.errors import StoreError
from applier.run.interrupted_actions import jobs_of
from applier.store.worker_jobs import Worker
from applier.workers.job_runner import JobRunner
from applier.workers.lease_keeper import LeaseKeeper
from applier.workers.remote_workers import RemoteRuns
from planner.plan.states import ActionState, Outcome

LEASE_S = 30.0


class NearDelivery:
    """Brings messages to a worker in this process."""

    def __init__(self, runner: JobRunner, keeper: LeaseKeeper, pool: ThreadPoolExecutor) -> None:
        self._runner, self._keeper, self._pool = runner, keeper, pool

    def send(self, _queue, key):
        self._pool.submit(self._runner.perform, key)

    def look(self, keys):
        self._keeper.wake_for(keys)

    def close(self):
        pass


@contextmanager
def near_workers(store, environment, *, places=16) -> Iterator[RemoteRuns]:
    """Yield what makes runs whose actions a worker in this process carries out."""
    worker = Worker("here:1:a", "here", 1, "u", "1", ["default"], ["nop"], places)
    worker = worker._replace(cloud="simulated")
    runner = JobRunner(store, worker, environment, lease_s=LEASE_S)
    pool = ThreadPoolExecutor(places)
    try:
        with LeaseKeeper(store, runner, worker, lease_s=LEASE_S) as keeper:
            yield RemoteRuns(
                store,
                NearDelivery(runner, keeper, pool),
                lease_s=LEASE_S,
                resend_s=0.5,
                cloud="simulated",
                release="1",
            )
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


class TestWorkers(EngineContract):
    """The engine ``taskflow``, with workers."""

    def make_engine(self, max_workers):
        return TaskFlowEngine(max_workers=max_workers)

    @pytest.fixture(autouse=True)
    def _end_workers(self) -> Iterator[None]:
        with ExitStack() as self._near:
            yield

    def trial(self, plan, work=changed, *, max_workers=4, **options) -> Trial:
        made: list[RemoteRuns] = []
        trial = super().trial(
            plan,
            work,
            max_workers=max_workers,
            runs_at=SimpleNamespace(
                executor_of=lambda plan, known, tell: made[0].executor_of(plan, known, tell),
                queue_limits=lambda plan, without: made[0].queue_limits(plan, without),
            ),
            jobs_of=lambda plan: jobs_of(made[0]._store, plan),
            **options,
        )
        environment = trial.runner.environment.of_plan(plan)
        made.append(self._near.enter_context(near_workers(trial._inner, environment)))
        return trial

    @pytest.mark.slow
    def test_random_plans_end_as_the_rules_say(self) -> None:
        """Each action ends as it would if all ran one after another; it takes seconds."""
        super().test_random_plans_end_as_the_rules_say()

    def test_a_store_that_fails_lets_nothing_new_start(self) -> None:
        """What runs goes on at its worker, and is left to the next applier."""
        trial, ended = self.trial(pair(), max_workers=2), threading.Event()

        def work(parameters, _context, stop):
            if parameters["uuid"] == "a":
                assert ended.wait(PATIENCE_S)
                assert not stop.is_set()
            return Outcome.CHANGED

        def break_down(reports):
            if any(r.uuid == "b" and r.old is ActionState.ONGOING for r in reports):
                raise error

        error = StoreError("disk full")
        trial.work, trial.store.before_commit = work, break_down
        assert trial.broken() is error
        assert {job.key.action for job in trial._inner.jobs_of("plan")} == {"a", "b"}
        ended.set()
