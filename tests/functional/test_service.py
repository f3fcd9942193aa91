# SPDX-License-Identifier: Apache-2.0
"""``actionplan-applier`` as processes of its own: sharing a record, drained, killed, idle."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from scratch_database import database_for_tests
from worker_processes import PATIENCE_S, PROGRAMS, Processes, until

from applier.storage import schema_version
from applier.storage.sql import SqlStore
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ActionState, PlanState

PROGRAM = "actionplan-applier"
CONFIGURATION = """
[actionplan]
connection = {url}
simulator = {folder}/simulator.json
[watcher_applier]
workers = 3
heartbeat_interval_s = 0.2
grace_s = 30
"""


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.server)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlStore]:
    """The record that the services share, empty."""
    with ExitStack() as scratch:
        url = f"sqlite:///{tmp_path}/record.sqlite"
        if request.param == "postgresql":
            url = scratch.enter_context(database_for_tests())
            schema_version.upgrade(url)
        configuration = CONFIGURATION.format(folder=tmp_path, url=url)
        (tmp_path / "watcher.conf").write_text(configuration, encoding="utf-8")
        store = scratch.enter_context(closing(SqlStore(url)))
        yield store


@pytest.fixture
def services(tmp_path: Path, store: SqlStore) -> Iterator[Processes]:
    """Services that share the record."""
    with closing(Processes(tmp_path)) as made:
        yield made


def shell(uuid: str, command: str, *parents: str) -> Action:
    parameters = {"argv": ["/bin/sh", "-c", command]}
    return Action(
        uuid=uuid, name=uuid, action_type="shell", input_parameters=parameters, parents=parents
    )


def pending(store: SqlStore, uuid: str, *actions: Action) -> None:
    store.save_plan(
        ActionPlan(uuid=uuid, planner="weight", actions=actions, state=PlanState.PENDING)
    )


def states(store: SqlStore, uuid: str) -> list[ActionState]:
    return [action.state for action in store.load_plan(uuid).actions]


def press_ctrl_c(process: subprocess.Popen[bytes]) -> None:
    """Interrupt a service as a terminal does: the main process and its worker."""
    os.killpg(process.pid, signal.SIGINT)


@pytest.mark.parametrize(
    "tell", [subprocess.Popen.terminate, pytest.param(press_ctrl_c, marks=pytest.mark.long)]
)
def test_a_service_that_is_told_to_end_lets_another_go_on(tmp_path, store, services, tell):
    effects, go = tmp_path / "effects", tmp_path / "go"
    wait = f"echo a >> {effects}; while [ -d {tmp_path} ] && [ ! -e {go} ]; do sleep 0.05; done"
    pending(store, "plan", shell("a", wait), shell("b", f"echo b >> {effects}", "a"))
    service = services.start(PROGRAM)
    until(effects.exists)
    tell(service)
    until(lambda: "1 plans are handed back" in services.told())
    go.touch()
    assert service.wait(PATIENCE_S) == 0
    assert store.services() == []
    assert store.load_plan("plan").state is PlanState.PENDING
    assert states(store, "plan") == [ActionState.SUCCEEDED, ActionState.PENDING]
    services.start(PROGRAM)
    until(lambda: store.load_plan("plan").state is PlanState.SUCCEEDED)
    assert effects.read_text().split() == ["a", "b"]


@pytest.mark.long
@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_a_service_at_once_that_is_told_to_end(tmp_path, store, services, first):
    go = tmp_path / "go"
    pending(
        store, "plan", shell("a", f"while [ -d {tmp_path} ] && [ ! -e {go} ]; do sleep 0.05; done")
    )
    service = services.start(PROGRAM)
    until(lambda: states(store, "plan") == [ActionState.ONGOING])
    worker = store.claimant("plan")
    assert worker is not None
    service.send_signal(first)
    until(lambda: "1 plans are handed back" in services.told())
    service.send_signal(signal.SIGINT)
    assert service.wait(PATIENCE_S) == 1
    until(lambda: not Path(f"/proc/{worker.pid}").exists())
    assert store.load_plan("plan").state is PlanState.ONGOING
    go.touch()


def test_programs_refuse_a_configuration_in_a_sentence_and_know_their_help(tmp_path):
    def told(program: str, *words: str | Path) -> tuple[int, str]:
        command = [PROGRAMS / program, *words]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        return ended.returncode, ended.stdout + ended.stderr

    file = tmp_path / "watcher.conf"
    file.write_text("[watcher_actions.migrate]\nretries = often\n", encoding="utf-8")
    code, text = told("actionplan-applier", "--config-file", file)
    assert code == 1
    assert f"actionplan-applier: {file}:2: [watcher_actions.migrate] retries: " in text
    record = f"[actionplan]\nconnection = sqlite:///{tmp_path}/plans.db\n"
    file.write_text(f"{record}[workers]\nbroker = amqp://127.0.0.1//\n", encoding="utf-8")
    code, text = told("actionplan-worker", "--config-file", file)
    assert code == 1
    assert "workers need a record on a server" in text
    code, text = told("actionplan-applier", "--help")
    assert code == 0
    assert '"actionplan start" queued' in text
