# SPDX-License-Identifier: Apache-2.0
"""What is known of a command on a node over SSH whose answers are cut off: nothing is guessed."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sshd import Sshd

from applier.actions.node_commands import Puppet
from applier.engines.environment import ActionEnvironment
from applier.errors import ActionFailed, JobLost
from applier.machines.job_names import AttemptName
from applier.machines.open_machines import OpenMachines
from applier.run.interrupted_actions import InterruptedActions
from planner.plan.model import Action
from planner.plan.states import ActionState

pytest.importorskip("asyncssh", reason="the extra 'ssh' is not installed")
pytestmark = [pytest.mark.slow, pytest.mark.needs("sshd", "ssh-keygen")]


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Sshd]:
    with Sshd(tmp_path / "node") as server:
        yield server


Open = Callable[[Sshd], OpenMachines]


@pytest.fixture
def opened() -> Iterator[Open]:
    """Open the machines of a run that knows the host key of a node; patience is short."""
    made = []

    def open_to(node: Sshd) -> OpenMachines:
        made.append(OpenMachines(node.settings(reconnect_timeout_s=0.2)))
        return made[-1]

    yield open_to
    for machines in made:
        machines.close()


@contextmanager
def forced(folder: Path, line: str) -> Iterator[Sshd]:
    """A node that runs a line of shell instead of what it is given, which is on its input."""
    (folder / "force").write_text(f"#!/bin/sh\n{line}\n")
    (folder / "force").chmod(0o755)
    with Sshd(folder / "node", more=f"ForceCommand {folder / 'force'}") as node:
        yield node


def left_running(node: Sshd, pid: int) -> None:
    """Let a process be the shell of the first command of attempt 1 of the action "a"."""
    jobs = node.jobs
    folder = jobs / AttemptName("p", "a", 1).job(1).folder
    folder.mkdir(parents=True)
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    start = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[19]
    (folder / "pid").write_text(f"{pid} {start} {boot} 1.0\n")
    (folder / "out").touch()


def action_on(node: Sshd) -> Action:
    """An action that is ONGOING on a node, and may run twice."""
    given = {"address": node.address, "manifest": "/site.pp"}
    return Action(
        uuid="a",
        action_type="puppet",
        state=ActionState.ONGOING,
        attempts=1,
        input_parameters=given,
    )


def interrupted(machines: OpenMachines) -> InterruptedActions:
    environment = ActionEnvironment(
        plugins={"puppet": Puppet}, cloud=lambda: None, machines=machines, plan="p"
    )
    return InterruptedActions(environment=environment)


@pytest.mark.long
@pytest.mark.parametrize(
    ("cut", "why"),
    [
        ("kill -KILL $$", "the answer was cut off"),
        ("kill -KILL $PPID", "the answer was cut off"),
        ("exit 3", "its shell has failed with exit code 3"),
    ],
)
def test_a_search_that_is_cut_off_does_not_say_that_no_command_runs(tmp_path, opened, cut, why):
    with forced(tmp_path, cut) as node:
        left_running(node, os.getpid())
        found = interrupted(opened(node)).verify([action_on(node)])
    (report,) = (one.report for one in found)
    assert report.state is ActionState.UNKNOWN
    assert f"{why}; its command may still run there" in report.message
    assert [one.uuid for one in found if one.given_up] == ["a"]


def test_a_command_is_found_after_a_greeting_without_an_end_of_line(tmp_path, opened):
    with forced(tmp_path, "printf welcome; exec /bin/sh -s") as node:
        left_running(node, os.getpid())
        (job,) = opened(node).find(node.address)
    assert job.is_running


@pytest.mark.long
@pytest.mark.parametrize("cut_off", [2, 3, 4])
def test_a_cancel_of_which_an_answer_is_cut_off_does_not_say_that_the_command_was_ended(
    tmp_path, opened, cut_off
):
    """The sessions of a cancel are: look, look, end, look."""
    line = f"echo >> {tmp_path}/sessions\n[ $(wc -l < {tmp_path}/sessions) -lt {cut_off} ] "
    with (
        forced(tmp_path, f"{line} || kill -KILL $$\nexec /bin/sh -s") as node,
        subprocess.Popen(["sleep", "1000"], start_new_session=True) as command,
    ):
        left_running(node, command.pid)
        (report,) = interrupted(opened(node)).end_commands([action_on(node)])
        command.kill()
    assert report.state is ActionState.UNKNOWN
    assert "the answer was cut off" in report.message


@pytest.mark.long
def test_a_node_whose_shell_hangs_holds_nobody_up(tmp_path, opened, monkeypatch):
    monkeypatch.setattr("applier.machines.connections.ANSWER_S", 0.2)
    with forced(tmp_path, "exec tail -f /dev/null --pid=$PPID") as node:
        machines = opened(node)
        (report,) = interrupted(machines).end_commands([action_on(node)])
        assert "its shell does not answer within 0.2 s" in report.message
        with pytest.raises(ConnectionError, match=r"does not answer within 0\.2 s"):
            machines.listed(node.address)
        with pytest.raises(ActionFailed, match=r"does not answer within 0\.2 s"):
            machines.remove(node.address, [], wait=True)


@pytest.mark.long
def test_a_command_that_was_taken_over_is_in_doubt_if_its_node_is_not_reached(node, opened):
    left_running(node, os.getpid())
    attempt = opened(node).of_attempt("p", "a", 1)
    assert attempt.find([node.address])
    node.kill()
    with pytest.raises(JobLost, match="the command may still run there") as lost:
        attempt.machine(node.address, threading.Event()).run(["true"], output=print)
    assert not lost.value.is_over
