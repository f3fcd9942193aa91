# SPDX-License-Identifier: Apache-2.0
"""Plans whose actions work on nodes, from the command line: over SSH, and simulated."""

from __future__ import annotations

import getpass
from pathlib import Path

import pytest
from command_line import CommandLine
from sshd import Sshd, make_key

from planner.states import ActionState


@pytest.fixture
def simulated(actionplan: CommandLine) -> CommandLine:
    """Make a plan of four tasks on simulated nodes, of which one fails."""
    tasks = [("1", "ntp"), ("1", "api"), ("2", "ntp"), ("3", "ntp")]
    actions = [
        {
            "name": f"{node}/{task}",
            "action_type": "puppet",
            "input_parameters": {"node": node, "duration_s": 60},
        }
        for node, task in tasks
    ]
    actionplan.document("plan.yaml", *actions, options={"parallelization": {"puppet": 4}})
    actionplan.configure(
        actionplan={"simulator_speed": 10_000},
        simulated_nodes={"failures": "1/n*,*/nosuch", "log": actionplan.folder / "nodes.log"},
    )
    return actionplan


def test_simulated_nodes_fail_as_configured_and_write_their_own_log(simulated):
    ended = simulated("apply", "plan.yaml", "--yes")
    assert ended.code == 3, ended
    states = {a.name: a.state for a in simulated.plan().actions}
    assert states == {
        **dict.fromkeys(["1/api", "2/ntp", "3/ntp"], ActionState.SUCCEEDED),
        "1/ntp": ActionState.FAILED,
    }
    lines = [line.split()[1:] for line in (simulated.folder / "nodes.log").read_text().splitlines()]
    assert sorted(map(" ".join, lines)) == sorted(
        [f"start {task}" for task in ("1 ntp", "1 api", "2 ntp", "3 ntp")]
        + [f"changed {task}" for task in ("1 api", "2 ntp", "3 ntp")]
        + ["failed 1 ntp"]
    )


def test_a_forecast_takes_the_time_of_the_simulated_nodes(simulated):
    assert "1m00s" in simulated.good("simulate", "plan.yaml", "--set", "max_workers=4")


@pytest.mark.long
@pytest.mark.needs("sshd", "ssh-keygen")
def test_a_node_is_reached_as_configured(actionplan: CommandLine, tmp_path: Path):
    pytest.importorskip("asyncssh", reason="the extra 'ssh' is not installed")
    make_key(tmp_path / "id")
    with Sshd(tmp_path / "sshd", tmp_path / "id") as server:
        (tmp_path / "known").write_text(server.known())
        actionplan.configure(ssh={"known_hosts": tmp_path / "known", "key_files": tmp_path / "id"})
        address = f"{getpass.getuser()}@{server.address}"
        given = {"address": address, "command": "echo $SSH_CONNECTION", "node": "3"}
        task = {"name": "hello", "action_type": "shell", "input_parameters": given}
        actionplan.document("plan.yaml", task)
        ended = actionplan("apply", "plan.yaml", "--yes")
        assert ended.code == 0, ended.out
        assert server.accepted == 1
        shown = actionplan.good("action", "show", "last", "hello")
        assert f"127.0.0.1 {server.port}" in shown
        assert "node:3" in shown
