# SPDX-License-Identifier: Apache-2.0
"""A plan on ten nodes over SSH, each a server of its own, one of which is lost midway."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from command_line import wait_until
from sshd import Sshd, make_key
from temporary_store import TemporaryStore
from trials import Trial

from applier.actions.markers import Anchor, Skipped
from applier.actions.node_commands import Shell
from applier.actions.node_files import UploadFile
from applier.engines.taskflow_engine import TaskFlowEngine
from applier.machines.address import SshSettings
from applier.machines.open_machines import OpenMachines
from applier.run import resume
from applier.storage.sql_store import SqlStore
from planner.plan.model import Action, ActionPlan
from planner.plan.states import PlanState

pytest.importorskip("asyncssh", reason="the extra 'ssh' is not installed")
pytestmark = [pytest.mark.slow, pytest.mark.needs("sshd", "ssh-keygen")]

NODES = range(1, 11)
PLUGINS = {"shell": Shell, "upload_file": UploadFile, "anchor": Anchor, "skipped": Skipped}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[int, Sshd]]:
    folder = tmp_path_factory.mktemp("ten")
    make_key(folder / "id")
    with ExitStack() as stack:
        made = (Sshd(folder / str(n), f"127.0.0.{n}", folder / "id") for n in NODES)
        yield dict(zip(NODES, map(stack.enter_context, made), strict=True))


@pytest.fixture
def settings(servers, tmp_path) -> SshSettings:
    known = tmp_path / "known_hosts"
    known.write_text("".join(server.known() for server in servers.values()))
    return servers[1].settings(known_hosts=str(known), reconnect_timeout_s=0.5)


@pytest.fixture
def store() -> Iterator[SqlStore]:
    with closing(TemporaryStore()) as store:
        yield store


def plan(servers: dict[int, Sshd], folder: Path) -> ActionPlan:
    """On each node a file, a script that needs it, and after an anchor of all a last one."""
    actions = []
    for n, server in servers.items():
        where = {"node": str(n), "address": server.address}
        given = {**where, "path": str(folder / f"conf-{n}"), "data": f"node {n}\n", "mode": "0600"}
        actions.append(action(f"{n}/config", "upload_file", given, n))
        command = f"cat {folder}/conf-{n} >> {folder}/ran-{n}"
        waits = f"test ! -e {folder}/gate-{n} || {{ echo $$ > {folder}/waits; exec sleep 1000; }}"
        given = {**where, "command": f"{command}; {waits}"}
        actions.append(action(f"{n}/service", "shell", given, n, needs=(f"{n}/config",)))
    before = tuple(f"{n}/service" for n in servers)
    actions.append(action("sync/deployed", "anchor", {}, None, parents=before))
    for n, server in servers.items():
        where = {"node": str(n), "address": server.address}
        needs = (f"{n}/service",)
        more = {"needs": needs, "parents": ("sync/deployed",)}
        given = {**where, "command": f"echo last >> {folder}/ran-{n}"}
        actions.append(action(f"{n}/last", "shell", given, n, **more))
    return ActionPlan(
        uuid="deployment",
        planner="deployment",
        actions=tuple(actions),
        limits={"node:*": 1},
        state=PlanState.PENDING,
    )


def action(name: str, kind: str, given: dict, node: int | None, **links: tuple) -> Action:
    tokens = (f"node:{node}",) if node else ()
    return Action(
        uuid=name, name=name, action_type=kind, input_parameters=given, tokens=tokens, **links
    )


def trial(made: ActionPlan, settings: SshSettings, store: SqlStore) -> Trial:
    return Trial(
        made,
        TaskFlowEngine(max_workers=10),
        max_workers=10,
        inner=store,
        plugins=PLUGINS,
        machines=OpenMachines(settings),
    )


def test_ten_nodes_are_deployed_each_over_one_connection(servers, settings, store, tmp_path):
    before = {n: server.accepted for n, server in servers.items()}
    threads = set(threading.enumerate())
    made = plan(servers, tmp_path)
    store.save_plan(made)
    one = trial(made, settings, store)
    assert one.run() is PlanState.SUCCEEDED, one.messages()
    for n, server in servers.items():
        assert (tmp_path / f"ran-{n}").read_text() == f"node {n}\nlast\n"
        assert server.accepted - before[n] == 1
    assert "ssh" not in {thread.name for thread in set(threading.enumerate()) - threads}


@pytest.mark.long
def test_a_node_that_is_lost_midway_is_in_doubt_and_the_others_go_on(
    servers, settings, store, tmp_path
):
    """It comes back, the end of its command is found, and the plan goes on with what is left."""
    waits = tmp_path / "waits"
    (tmp_path / "gate-3").write_text("")
    made, lost = plan(servers, tmp_path), servers[3]
    store.save_plan(made)
    one = trial(made, settings, store)

    def lose() -> None:
        wait_until(lambda: waits.exists() and waits.read_text().endswith("\n"))
        lost.kill()
        # Nobody else ends what runs on a node that cannot be reached.
        os.kill(int(waits.read_text()), signal.SIGKILL)

    killer = threading.Thread(target=lose)
    killer.start()
    state = one.run()
    killer.join()
    assert state is PlanState.FAILED
    states = one.states()
    assert (states["3/service"], states["3/last"]) == ("UNKNOWN", "FAILED_DEPENDENCIES")
    assert "was not reached again within 0.5 s" in one.messages()["3/service"]
    ended_badly = {name for name, state in states.items() if state != "SUCCEEDED"} - {
        "sync/deployed"
    }
    assert ended_badly == {"3/service", "3/last"}

    (tmp_path / "gate-3").unlink()
    lost.start()
    resume.resume(store, made.uuid, clock=lambda: datetime.now(UTC), who="tester")
    second = trial(store.load_plan(made.uuid), settings, store)
    assert second.run() is PlanState.FAILED
    assert "ended by signal 9" in second.messages()["3/service"], "it was killed meanwhile"
    resume.resume(store, made.uuid, clock=lambda: datetime.now(UTC), who="tester")
    assert trial(store.load_plan(made.uuid), settings, store).run() is PlanState.SUCCEEDED
    for n in servers:
        again = "node 3\n" if n == 3 else ""
        assert (tmp_path / f"ran-{n}").read_text() == f"node {n}\n{again}last\n"
