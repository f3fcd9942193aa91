# SPDX-License-Identifier: Apache-2.0
"""Watcher with our engine, driven by its own client, with moves in a real Nova."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import environments
import pytest
from guarded_process import PATIENCE_S, GuardedProcess
from lab_servers import Servers
from scratch_database import run
from watcher_lab import APPLIER, DECISION_ENGINE, HOST, PROGRAMS, WatcherLab

#: The plan in the row that ``resume --follow`` writes.
FOLLOWER = "00000000-0000-0000-0000-000000000000"

pytestmark = [pytest.mark.slow, pytest.mark.server, pytest.mark.xdist_group("lab")]

OURS = {
    "watcher_applier": {"workflow_engine": "actionplan"},
    "watcher_workflow_engines.actionplan": {
        "max_workers": "4",
        "resume": "true",
        "heartbeat_interval_s": "0.5",
    },
}


@pytest.fixture(scope="module")
def lab(watcher_lab: WatcherLab) -> Iterator[WatcherLab]:
    """Return the lab with our engine; afterwards it has Watcher's own again."""
    watcher_lab.restart(APPLIER, OURS)
    yield watcher_lab
    watcher_lab.restart(APPLIER)


def command(lab: WatcherLab, *words: str) -> list[str | Path]:
    """Return a command of ``cast.py``."""
    configuration = str(lab.folder / f"{HOST}-{APPLIER}.conf")
    return [environments.WATCHER.python, str(PROGRAMS / "cast.py"), configuration, *words]


def maintenance(lab: WatcherLab, servers: Servers, count: int, **metadata: str) -> str:
    """Return a plan that empties cmp1 of new servers with some metadata."""
    servers.boot("cmp1", count)
    if metadata:
        servers.mark("cmp1", **metadata)
    parameters = {"maintenance_node": "cmp1", "backup_node": "cmp2"}
    return lab.optimize.plan("cluster_maintaining", "host_maintenance", **parameters)


def states(lab: WatcherLab, plan: str) -> dict[str, list[str]]:
    """Return the states of the actions of a plan, by type, in alphabetical order."""
    found: dict[str, list[str]] = {}
    for action in lab.optimize.actions(plan):
        found.setdefault(action["action_type"], []).append(action["state"])
    return {kind: sorted(each) for kind, each in found.items()}


@pytest.fixture
def hold(tmp_path: Path) -> Iterator[Path]:
    """Return a file: a move of a server with this ``lab_hold`` does not end before it is gone."""
    file = tmp_path / "hold"
    file.touch()
    yield file
    file.unlink(missing_ok=True)


def wait_until(holds: Callable[[], bool]) -> None:
    """Return once something holds."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.2)


def wait_for_a_move(servers: Servers) -> None:
    """Return while Nova moves a server."""
    wait_until(lambda: any(status == "running" for _, status in servers.moves()))


def ended(lab: WatcherLab, plan: str) -> dict[str, Any]:
    """Return a plan when it has ended."""
    return lab.optimize.wait("action_plans", plan)


def test_host_maintenance_empties_a_host_of_eight_servers(
    lab: WatcherLab, servers: Servers
) -> None:
    plan = maintenance(lab, servers, 8)
    lab.optimize.start(plan)
    assert ended(lab, plan)["state"] == "SUCCEEDED"
    assert {server["host"] for server in servers.show()["servers"]} == {"cmp2"}
    assert states(lab, plan)["migrate"] == ["SUCCEEDED"] * 8


def test_a_cancel_waits_for_the_moves_that_run(
    lab: WatcherLab, servers: Servers, hold: Path
) -> None:
    plan = maintenance(lab, servers, 4, lab_hold=str(hold))
    lab.optimize.start(plan)
    wait_for_a_move(servers)
    lab.optimize.cancel(plan)
    wait_until(lambda: "CANCELLED" in states(lab, plan)["migrate"])
    hold.unlink()
    assert ended(lab, plan)["state"] == "CANCELLED"
    found = states(lab, plan)
    assert set(found["migrate"]) == {"CANCELLED", "SUCCEEDED"}
    done = [server for server in servers.show()["servers"] if server["host"] == "cmp2"]
    assert len(done) == found["migrate"].count("SUCCEEDED")


def test_moves_that_fail_end_the_plan(lab: WatcherLab, servers: Servers) -> None:
    plan = maintenance(lab, servers, 2, lab_lm="fail")
    lab.optimize.start(plan)
    found = ended(lab, plan)
    assert (found["state"], states(lab, plan)["migrate"]) == ("FAILED", ["FAILED"] * 2)
    assert found["status_message"] == "1 succeeded, 2 failed"


def test_a_plan_goes_on_after_its_applier_was_killed(
    lab: WatcherLab, servers: Servers, tmp_path: Path, hold: Path, watcher_database: str
) -> None:
    plan = maintenance(lab, servers, 3, lab_hold=str(hold))
    output = tmp_path / "follow.out"
    program = environments.WATCHER.program("actionplan-watcher")
    configuration = lab.folder / f"{HOST}-{APPLIER}.conf"
    words = [program, "--config-file", configuration, "resume", "--follow"]
    follow = GuardedProcess(words, output, lab.environment)
    try:
        wait_until(lambda: run_by_our_engine(watcher_database, FOLLOWER) != set())
        lab.optimize.start(plan)
        wait_for_a_move(servers)
        lab.kill(APPLIER)
        assert lab.optimize.get(f"action_plans/{plan}")["state"] == "ONGOING"
        lab.start_service(APPLIER, OURS)
        hold.unlink()
        assert ended(lab, plan)["state"] == "SUCCEEDED", follow.last_output()
        assert f"plan {plan}: process" in follow.last_output()
        follow.terminate()
        assert follow.has_ended
    finally:
        follow.kill()
    assert {server["host"] for server in servers.show()["servers"]} == {"cmp2"}
    assert servers.ended_moves() == ["completed"] * 3


def test_two_appliers_that_get_one_plan_run_it_once(lab: WatcherLab, servers: Servers) -> None:
    plan = maintenance(lab, servers, 4, lab_lm_seconds="3")
    lab.start_service(APPLIER, OURS, host="second")
    try:
        subprocess.run(
            command(lab, plan, "4"),
            check=True,
            stdin=subprocess.DEVNULL,
            env=lab.environment,
        )
        assert ended(lab, plan)["state"] == "SUCCEEDED"
    finally:
        lab.kill(APPLIER, "second")
    assert servers.ended_moves() == ["completed"] * 4


def test_a_plan_goes_on_while_the_broker_restarts(
    lab: WatcherLab, servers: Servers, hold: Path
) -> None:
    plan = maintenance(lab, servers, 3, lab_hold=str(hold))
    lab.optimize.start(plan)
    wait_for_a_move(servers)
    lab.broker.kill()
    hold.unlink()
    lab.broker.start()
    lab.broker.wait()
    assert ended(lab, plan)["state"] == "SUCCEEDED"
    assert servers.ended_moves() == ["completed"] * 3
    # A service connects again after pauses that become longer; until then the API has no answer.
    for program in (DECISION_ENGINE, APPLIER):
        lab.wait(program)


def test_watcher_goes_back_to_its_own_engine_by_one_line(
    lab: WatcherLab, servers: Servers, watcher_database: str
) -> None:
    ours = maintenance(lab, servers, 1)
    lab.optimize.start(ours)
    assert ended(lab, ours)["state"] == "SUCCEEDED"
    servers.reset()
    waits = maintenance(lab, servers, 2)
    lab.restart(APPLIER)
    try:
        lab.optimize.start(waits)
        assert ended(lab, waits)["state"] == "SUCCEEDED"
    finally:
        lab.restart(APPLIER, OURS)
    assert [server["host"] for server in servers.show()["servers"]] == ["cmp2"] * 2
    assert run_by_our_engine(watcher_database, ours, waits) == {ours}


def run_by_our_engine(database: str, *plans: str) -> set[str]:
    """Return which plans our engine has claimed."""
    claimed = run(database, "SELECT plan_uuid FROM actionplan_watcher_run")
    return set(plans) & set(claimed)
