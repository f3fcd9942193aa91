# SPDX-License-Identifier: Apache-2.0
"""Actions run at ``actionplan-worker`` processes, and are done once whatever is killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import kombu
import pytest
from scratch_broker import RABBITMQ
from scratch_database import MYSQL, POSTGRESQL, database_for_tests
from worker_processes import (
    LEASE_S,
    PATIENCE_S,
    SHORT_LEASE_S,
    Fleet,
    OwnRedis,
    fleet,
    until,
)

from applier.run.resume import resume
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ActionState, Outcome, PlanState

pytestmark = pytest.mark.server
REDIS = "redis://127.0.0.1:6379/0"
DATABASES = {
    "postgresql": ("ACTIONPLAN_TEST_POSTGRESQL", POSTGRESQL),
    "mysql": ("ACTIONPLAN_TEST_MYSQL", MYSQL),
}
BROKERS = {
    "rabbitmq": ("ACTIONPLAN_TEST_RABBITMQ", RABBITMQ),
    "redis": ("ACTIONPLAN_TEST_REDIS", REDIS),
}


def broker_url(name: str) -> str:
    """Return the address of a broker, or skip the test if it is not there."""
    variable, default = BROKERS[name]
    url = os.environ.get(variable, default)
    try:
        with kombu.Connection(url, connect_timeout=5) as connection:
            connection.ensure_connection(max_retries=1, timeout=5)
    except (OSError, kombu.exceptions.OperationalError) as reason:
        say = pytest.fail if os.environ.get("CI") else pytest.skip
        say(f"{name}: {reason} (set {variable})")
    return url


@pytest.fixture
def processes(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Fleet]:
    """A fleet on the database and the broker that a test names."""
    yield from fleet_on(tmp_path, *getattr(request, "param", ("postgresql", "rabbitmq")))


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Fleet]:
    """A fleet in which a worker that was killed soon counts as lost."""
    yield from fleet_on(tmp_path, "postgresql", "rabbitmq", SHORT_LEASE_S)


def fleet_on(folder: Path, database: str, broker: str, lease_s: float = LEASE_S) -> Iterator[Fleet]:
    url = broker_url(broker)
    scratch = contextmanager(database_for_tests)
    with (
        scratch(*DATABASES[database]) as record,
        fleet(folder, record, url, lease_s=lease_s) as made,
    ):
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


def test_a_worker_and_the_applier_are_killed_and_each_action_is_done_once(mortal):
    """The commands go on; whoever comes next follows them, and starts none again."""
    first, *_ = mortal.workers(3)
    applier = mortal.start("actionplan-applier")
    plan = mortal.shells(24, 2.0)
    until(lambda: len(mortal.effects()[0]) >= 6, mortal.told)
    mortal.kill(first)
    mortal.kill(applier)
    mortal.start("actionplan-applier")
    plan = mortal.ended(plan)
    begun, ended = mortal.effects()
    assert begun == ended == Counter({action.name: 1 for action in plan.actions}), mortal.told()
    assert plan.state is PlanState.SUCCEEDED, mortal.told()
    assert mortal.store.jobs_of(plan.uuid) == []


#: A worker that is killed right after it took its first job.
KILLED = """#!{python}
import os, signal, sys
from applier.engines.tasks import ActionTask
from applier.workers.main import main
ActionTask.permit = lambda task: os.kill(os.getpid(), signal.SIGKILL)
sys.exit(main())
"""


def test_what_a_worker_took_and_did_not_begin_before_it_was_killed_runs_again(mortal):
    script = mortal.folder / "actionplan-worker-killed"
    script.write_text(KILLED.format(python=sys.executable), encoding="utf-8")
    script.chmod(0o700)
    killed = mortal.start(script)
    mortal.start("actionplan-applier")
    plan = mortal.shells(1, 0.1)
    assert killed.wait(timeout=PATIENCE_S) == -signal.SIGKILL, mortal.told()
    mortal.workers(1)
    plan = mortal.ended(plan)
    assert plan.state is PlanState.SUCCEEDED, mortal.told()
    assert mortal.effects() == (Counter(s0=1), Counter(s0=1))
    assert [action.attempts for action in plan.actions] == [2]


#: A program in which ``nop`` is work in a thread that asks for no stop signal, and that only shows
#: when it is over.
DEAF = """#!{python}
import sys, time
from pathlib import Path
from applier.actions.markers import Nop
from applier.contracts import Verified
from {module} import main
from planner.plan.states import Outcome
log, goes_on = Path("{log}"), Path("{log}.go")
def execute(self, stop):
    with log.open("a") as effects:
        effects.write("B deaf\\n")
    while not goes_on.exists():
        time.sleep(0.05)
    with log.open("a") as effects:
        effects.write("E deaf\\n")
    return Outcome.CHANGED
def verify(self):
    return Verified.DONE if "E deaf" in log.read_text() else Verified.NOT_DONE
Nop.execute, Nop.verify, Nop.JOINS_WORK = execute, verify, False
sys.exit(main())
"""


def test_what_a_frozen_worker_is_in_the_middle_of_is_begun_at_no_other(mortal):
    """Nobody can tell it from work that was never done, until the worker is back."""

    def deaf(name: str, module: str) -> subprocess.Popen[bytes]:
        script = mortal.folder / name
        text = DEAF.format(python=sys.executable, module=module, log=mortal.log)
        script.write_text(text, encoding="utf-8")
        script.chmod(0o700)
        return mortal.start(script)

    frozen = deaf("actionplan-worker-deaf", "applier.workers.main")
    deaf("actionplan-applier-deaf", "applier.service.main")
    action = Action(
        uuid=str(uuid4()), name="deaf", action_type="nop", tokens=(f"region:{mortal.site}",)
    )
    plan = mortal.pending([action])
    until(lambda: mortal.effects()[0]["deaf"] == 1, mortal.told)
    frozen.send_signal(signal.SIGSTOP)
    deaf("actionplan-worker-second", "applier.workers.main")
    ended = mortal.ended(plan)
    assert [one.state for one in ended.actions] == [ActionState.UNKNOWN], mortal.told()
    frozen.send_signal(signal.SIGCONT)
    Path(f"{mortal.log}.go").touch()
    until(lambda: mortal.effects()[1]["deaf"] == 1, mortal.told)
    resume(mortal.store, plan.uuid, clock=lambda: datetime.now(UTC), who="ann")
    assert mortal.ended(plan).state is PlanState.SUCCEEDED, mortal.told()
    assert mortal.effects() == (Counter(deaf=1), Counter(deaf=1))


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
    [payload] = processes.selected("SELECT payload FROM actionplan_worker_job")
    assert "env SITE_PASSWORD" in payload
    go.touch()
    plan = processes.ended(plan)
    assert plan.state is PlanState.SUCCEEDED, processes.told()
    assert own.read_text().strip() == secret
    [action] = plan.actions
    said = f"{payload}{action}{processes.store.output(plan.uuid, action.uuid)}{processes.told()}"
    assert secret not in said


def lost_with_their_worker(processes: Fleet, plan: ActionPlan) -> set[str]:
    """Return the tasks of a worker that was killed, as they are in the log of the nodes."""
    logs = "".join(log.read_text() for log in processes.folder.glob("actionplan-applier-*.log"))
    uuids = set(re.findall("Action (.+): its worker .+ was not heard of for its lease", logs))
    lost = [action.name for action in plan.actions if action.uuid in uuids]
    return {f"{name.rpartition('/')[2]} {name}" for name in lost}


@pytest.mark.needs("redis-server")
def test_a_deployment_of_100_nodes_ends_although_broker_worker_and_applier_are_killed(tmp_path):
    """A task is done once, unless its worker was killed.

    A simulated node does not remember a task that was done but is not on record yet.
    """
    broker = OwnRedis(tmp_path)
    broker.start()
    scratch = contextmanager(database_for_tests)
    try:
        with (
            scratch("ACTIONPLAN_TEST_POSTGRESQL", POSTGRESQL) as record,
            fleet(tmp_path, record, broker.url, lease_s=3.0) as processes,
        ):
            first, *_ = processes.workers(3)
            applier = processes.start("actionplan-applier")
            planned = processes.nodes(100, 0.3)
            until(lambda: len(processes.done_on_nodes()) >= 20, processes.told)
            processes.kill(first)
            until(lambda: len(processes.done_on_nodes()) >= 50, processes.told)
            broker.kill()
            processes.kill(applier)
            broker.start()
            processes.start("actionplan-applier")
            plan = processes.ended(planned)
            assert plan.state is PlanState.SUCCEEDED, processes.told()
            assert {a.outcome for a in plan.actions} == {Outcome.CHANGED}
            done = Counter(processes.done_on_nodes())
            assert len(done) == 200
            more_than_once = {task for task, times in done.items() if times > 1}
            assert more_than_once <= lost_with_their_worker(processes, plan), processes.told()
            assert processes.store.jobs_of(plan.uuid) == []
    finally:
        broker.kill()
