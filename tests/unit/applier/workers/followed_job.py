# SPDX-License-Identifier: Apache-2.0
"""A job on record for tests: an applier that follows it, and a worker that carries it out."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime

from sample_plans import new_plan
from temporary_store import TemporaryStore
from trials import changed, plugin

from applier.contracts import Claimant, JobOffer, Report, Verified
from applier.engines.environment import ActionEnvironment
from applier.store.worker_jobs import (
    AttemptKey,
    TakenJob,
    Worker,
    WorkerJobState,
)
from applier.workers.follower import JobFollower
from applier.workers.job_runner import JobRunner
from planner.plan.model import ActionPlan
from planner.plan.states import ActionState, PlanState

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


def change(store: TemporaryStore, statement: str, *values: str) -> None:
    """Write what a store would not write."""
    file = store.path
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(statement, values)


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

    def look(self, keys: Sequence[AttemptKey]) -> None:
        pass

    def close(self) -> None:
        pass


def jobs_on_record(
    store: TemporaryStore, names: Sequence[str], offers: Sequence[JobOffer]
) -> ActionPlan:
    """Save a plan and start its actions, each with the job that is offered; return the plan."""
    plan = new_plan(*names, state=PlanState.PENDING)
    store.save_plan(plan)
    claim = store.claim_plan(plan.uuid, Claimant(host="h", pid=1, user="u"), now=NOW)
    old, new = ActionState.PENDING, ActionState.ONGOING
    starts = [
        Report(uuid=action.uuid, old=old, state=new, job=offer)
        for action, offer in zip(plan.actions, offers, strict=True)
    ]
    store.commit(plan.uuid, claim, starts, now=NOW)
    return store.load_plan(plan.uuid)


class Job:
    """A job on record that an applier follows, and the reports that it got."""

    def __init__(
        self, store: TemporaryStore, payload: dict[str, object], lease_s: float = 30.0
    ) -> None:
        self.store, self.clock, self.messages = store, Clock(), Messages()
        self.offer = JobOffer(1, "site-b", "nop", payload)
        plan = jobs_on_record(store, ["a"], [self.offer])
        self.key = AttemptKey(plan.uuid, plan.actions[0].uuid, 1)
        self.reports: list[Report] = []
        self.follower = JobFollower(
            plan.uuid,
            store,
            self.messages,
            self.reports.append,
            lease_s=lease_s,
            resend_s=-1.0,
            clock=self.clock,
        )
        self.follower.follow(self.key, self.offer)

    def take(self, worker: str, lease_s: float = LONG_S) -> None:
        assert self.store.take_job(self.key, worker=worker, token=worker, lease_s=lease_s)

    def taken_by(self, worker: str, lease_s: float = LONG_S) -> TakenJob | None:
        return self.store.take_job(self.key, worker=worker, token=worker, lease_s=lease_s)

    def look_until(self, passed_s: float, step_s: float = 1.0) -> None:
        """Look every second, as the thread of the follower does."""
        until = self.clock.now + passed_s
        while self.clock.now < until:
            self.clock.now += step_s
            self.follower.look()

    @property
    def state(self) -> WorkerJobState:
        (job,) = self.store.jobs_of(self.key.plan)
        return job.state


def runner(
    store,
    work=changed,
    *,
    verified=Verified.IN_DOUBT,
    machines=None,
    runs_on=(),
    joins=False,
    **own,
) -> JobRunner:
    kind = plugin(work)
    kind.verify, kind.JOINS_WORK = lambda _self: verified, joins
    kind.runs_on = classmethod(lambda _kind, _parameters: runs_on)
    environment = ActionEnvironment(plugins={"nop": kind}, cloud=lambda: None, machines=machines)
    clock = own.pop("clock", time.monotonic)
    worker = Worker("h2:7:b", "h2", 7, "u", "1", ["site-b"], ["nop"], 1, cloud="simulated")
    return JobRunner(store, worker._replace(**own), environment, lease_s=LONG_S, clock=clock)
