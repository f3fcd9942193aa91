# SPDX-License-Identifier: Apache-2.0
"""A command on a node is found from every host, whatever became of connection and applier."""

from __future__ import annotations

import getpass
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from command_line import CommandLine, wait_until
from sshd import Sshd

from applier.machines.job_names import REMOVED

pytest.importorskip("asyncssh", reason="the extra 'ssh' is not installed")
pytestmark = pytest.mark.needs("sshd", "ssh-keygen")

#: The log of sshd has it once for each session.
SESSION = "Starting session: "
COMMAND = """\
cd {folder}; echo begin >> effects; echo first
while [ -d {folder} ] && [ ! -e go ]; do sleep 0.02; done
echo end >> effects; echo last; exit 7
"""


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Sshd]:
    with Sshd(tmp_path / "node") as server:
        yield server


def address_of(node: Sshd, actionplan: CommandLine) -> str:
    """Let the command line connect to the node; return its address."""
    actionplan.configure(ssh=node.options())
    return f"{getpass.getuser()}@{node.address}"


def test_what_an_interrupted_removal_has_left_on_a_node_is_removed(actionplan, node):
    """Also if the node has no leftover besides."""
    address = address_of(node, actionplan)
    jobs = node.jobs
    (jobs / f"{REMOVED}0-1-2").mkdir(parents=True)
    assert actionplan.good("job", "clean", address) == "0 leftovers removed, 0 kept.\n"
    assert list(jobs.iterdir()) == []


@pytest.mark.long
def test_another_host_follows_a_command_on_a_node_through_a_restart_of_its_sshd(actionplan, node):
    folder, address = actionplan.folder, address_of(node, actionplan)
    given = {
        "node": "1",
        "address": address,
        "command": COMMAND.format(folder=folder),
        "changed_exit_codes": [7],
    }
    long = {"name": "long", "action_type": "shell", "input_parameters": given}
    actionplan.document("plan.yaml", long)
    with actionplan.start("apply", "plan.yaml", "--yes") as applier:
        wait_until((folder / "effects").exists)
        node.kill()
        node.start()
        applier.kill()
        applier.communicate()
    listed = actionplan.good("job", "list", address, "-f", "value", "-c", "state")
    assert listed == "runs\n"
    actionplan.good("resume", "last")
    _move_to_another_host(actionplan)
    assert node.accepted
    sessions = node.told(SESSION)
    with actionplan.start("apply", "last", "--yes") as taker:
        # The first session looks for the command, which fails if it is cut off; others follow it.
        wait_until(lambda: node.told(SESSION) >= sessions + 2)
        node.end_sessions()
        (folder / "go").touch()
        out, err = taker.communicate()
        assert taker.returncode == 0, out + err
    assert (folder / "effects").read_text() == "begin\nend\n"
    (action,) = actionplan.plan().actions
    assert (action.state, action.outcome, action.attempts) == ("SUCCEEDED", "changed", 1)
    shown = actionplan.good("action", "show", "last", "long").splitlines()
    assert shown[-2:] == ["  | first", "  | last"]
    # In the background: the end of a run waits two seconds for it, and no longer.
    place = node.jobs
    wait_until(lambda: list(place.iterdir()) == [])


def _move_to_another_host(actionplan: CommandLine) -> None:
    """Let the record say that another host ran the plan, and leave nothing of it on this one."""
    shutil.rmtree(actionplan.record.parent / "jobs", ignore_errors=True)
    with closing(sqlite3.connect(actionplan.record)) as record, record:
        record.execute("UPDATE actionplan_plan SET claimant_host = 'another'")
