# SPDX-License-Identifier: Apache-2.0
"""Actions run at ``actionplan-worker`` processes, and are done once whatever is killed."""

from __future__ import annotations

import signal
from collections import Counter
from dataclasses import replace
from uuid import uuid4

import pytest
from scratch_database import database_for_tests, run
from worker_processes import PATIENCE_S, SHORT_LEASE_S, OwnRedis, fleet, fleet_for_tests, until

from planner.plan.states import PlanState

pytestmark = pytest.mark.server


@pytest.fixture(params=[("postgresql", "rabbitmq")], ids="-".join)
def processes(request, tmp_path):
    """A fleet on the database and the broker that a test names."""
    with fleet_for_tests(tmp_path, *request.param) as made:
        yield made


@pytest.mark.parametrize(
    "processes", [("postgresql", "rabbitmq"), ("mysql", "redis")], indirect=True, ids="-".join
)
def test_several_workers_do_each_action_of_a_plan_once(processes):
    processes.workers(2)
    processes.start("actionplan-applier")
    plan = processes.ended(processes.shells(16, 0.2))
    assert plan.state is PlanState.SUCCEEDED
    once = Counter({action.name: 1 for action in plan.actions})
    assert processes.effects() == (once, once)
    assert processes.store.jobs_of(plan.uuid) == []
    assert all(action.attempts == 1 for action in plan.actions)
    attempts = processes.store.all_attempts(plan.uuid, most=0)
    at = {one.worker for tried in attempts.values() for one in tried}
    assert at
    assert at <= {worker.name for worker in processes.store.workers()}


@pytest.mark.needs("redis-server")
def test_a_worker_the_applier_and_the_broker_are_killed_and_each_action_is_done_once(tmp_path):
    """The commands go on; whoever comes next follows them, and starts none again."""
    broker = OwnRedis(tmp_path)
    broker.start()
    try:
        with (
            database_for_tests() as record,
            fleet(tmp_path, record, broker.url, lease_s=SHORT_LEASE_S) as mortal,
        ):
            first, *_ = mortal.workers(3)
            applier = mortal.start("actionplan-applier")
            plan = mortal.shells(24, 2.0)
            until(lambda: len(mortal.effects()[0]) >= 6, mortal.told)
            mortal.kill(first)
            mortal.kill(applier)
            broker.kill()
            broker.start()
            mortal.start("actionplan-applier")
            plan = mortal.ended(plan)
            begun, ended = mortal.effects()
            once = Counter({action.name: 1 for action in plan.actions})
            assert begun == ended == once, mortal.told()
            assert plan.state is PlanState.SUCCEEDED, mortal.told()
            assert mortal.store.jobs_of(plan.uuid) == []
    finally:
        broker.kill()


def test_a_worker_that_is_told_to_end_ends_what_it_has_begun_and_takes_no_more(processes):
    first, _ = processes.workers(2)
    processes.start("actionplan-applier")
    plan = processes.shells(24, 0.5)
    until(lambda: len(processes.effects()[0]) >= 4, processes.told)
    first.send_signal(signal.SIGTERM)
    assert first.wait(timeout=PATIENCE_S) == 0, processes.told()
    plan = processes.ended(plan)
    assert plan.state is PlanState.SUCCEEDED
    assert [action.attempts for action in plan.actions] == [1] * 24
    assert len(processes.store.workers()) == 1


def test_a_secret_is_read_at_the_worker_and_is_nowhere_else(processes):
    """Not in the row of the job, not in a log, and not in the output of its action."""
    secret, own = f"tell-nobody-{uuid4().hex}", processes.folder / "own"
    processes.workers(1, SITE_PASSWORD=secret)
    processes.start("actionplan-applier")
    go, action = processes.folder / "go", processes.shell("s0", 0)
    command = f'echo "got $PW"; echo "$PW" > {own}; while [ ! -e {go} ]; do sleep 0.1; done'
    given = {"command": command, "env": {"PW": {"secret": "env SITE_PASSWORD"}}}
    plan = processes.pending([replace(action, input_parameters=given)])
    until(own.exists, processes.told)
    [payload] = run(processes.url, "SELECT payload FROM actionplan_worker_job")
    assert "env SITE_PASSWORD" in payload
    go.touch()
    plan = processes.ended(plan)
    assert plan.state is PlanState.SUCCEEDED, processes.told()
    assert own.read_text().strip() == secret
    [action] = plan.actions
    said = f"{payload}{action}{processes.store.output(plan.uuid, action.uuid)}{processes.told()}"
    assert secret not in said
