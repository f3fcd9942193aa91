# SPDX-License-Identifier: Apache-2.0
"""Which machine an address means, and what is said when it cannot be reached at all."""

from __future__ import annotations

import os
import sys
import threading

import pytest

from applier.errors import ActionFailed, JobLost
from applier.machines import found_jobs
from applier.machines.address import Address, host_of, parse
from applier.machines.local_machine import Local
from applier.machines.open_machines import OpenMachines

STOP = threading.Event()


def test_without_an_address_it_is_this_machine():
    assert isinstance(OpenMachines().machine(None, STOP), Local)


def test_without_the_extra_the_refusal_names_it(monkeypatch):
    for name in [n for n in sys.modules if n.startswith("applier.machines.connections")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "asyncssh", None)
    with pytest.raises(ActionFailed, match=r"extra 'ssh'"):
        OpenMachines().machine("10.0.0.3", STOP)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("10.0.0.3", Address("10.0.0.3")),
        ("root@node-3", Address("node-3", "root")),
        ("a.b@node-3.example.org:2222", Address("node-3.example.org", "a.b", 2222)),
        ("[::1]", Address("::1")),
        ("root@[fe80::1%eth0]:22", Address("fe80::1%eth0", "root", 22)),
    ],
)
def test_an_address_has_three_parts(text, address):
    assert parse(text) == address
    assert host_of(text) == address.host


@pytest.mark.parametrize(
    "text",
    ["", "a b", "a:0", "a:65536", "a:b", "::1", "@a", "a@", "-a", "-u@a", "u@-a", "a:1:2", "a\n"],
)
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ActionFailed, match="accepted is"):
        OpenMachines().machine(text, STOP)
    assert host_of(text) is None


def test_nothing_is_left_when_none_was_reached():
    machines = OpenMachines()
    machines.close()
    machines.close()


@pytest.mark.slow
def test_a_search_here_whose_shell_is_killed_does_not_say_that_no_command_runs(
    tmp_path, monkeypatch
):
    shell = tmp_path / "shell"
    shell.write_text("#!/bin/sh\nkill -KILL $$\n")
    shell.chmod(0o755)
    (tmp_path / "p.a.1.1").mkdir()
    monkeypatch.setattr(found_jobs, "SHELL", str(shell))
    machines = OpenMachines(place=tmp_path)
    for ask in (lambda: machines.find(None), lambda: machines.end(None, "p.a.1.1", "p/a/1")):
        with pytest.raises(JobLost, match="has failed: exit code -9") as lost:
            ask()
        assert not lost.value.is_over


@pytest.mark.slow
def test_an_interrupt_from_the_keyboard_does_not_reach_a_shell_that_ends_commands():
    """It goes to all processes of the session that has the terminal."""
    assert int(found_jobs.shell(b"ps -o sid= -p $$")) != os.getsid(0)
