# SPDX-License-Identifier: Apache-2.0
"""The example of the page "From a playbook to a plan", over a real sshd: killed, ill, resumed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from command_line import ROOT, CommandLine, wait_until
from sshd import Sshd

from planner.documents.inventory import program

pytestmark = [pytest.mark.long, pytest.mark.needs("sshd", "ssh", "ssh-keygen")]

EXAMPLE = ROOT / "doc/how-to/rolling-upgrade"
WEB = [f"web-{i}" for i in range(1, 7)]


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Sshd]:
    with Sshd(tmp_path / "node") as server:
        yield server


@pytest.fixture
def hosts(actionplan: CommandLine, node: Sshd) -> Path:
    """Return the inventory of the example, all of whose hosts are the one server."""
    inventory = yaml.safe_load((EXAMPLE / "hosts.yml").read_text())
    inventory["all"]["vars"] |= {
        "log": str(actionplan.folder / "log"),
        "ansible_host": node.host,
        "ansible_port": node.port,
        "ansible_ssh_private_key_file": str(node.key),
        "ansible_ssh_args": "-F none",
        "ansible_ssh_common_args": f"-o UserKnownHostsFile={node.known_hosts}",
        "ansible_python_interpreter": sys.executable,
        "ansible_pipelining": True,
    }
    (actionplan.folder / "hosts.yml").write_text(yaml.safe_dump(inventory, sort_keys=False))
    return actionplan.folder / "hosts.yml"


def lines(actionplan: CommandLine) -> list[str]:
    """Return what tasks have done, a line each."""
    log = actionplan.folder / "log"
    return log.read_text().splitlines() if log.exists() else []


def expected(ill: str | None = None) -> list[str]:
    """Return what tasks do, with a host that fails its check."""
    done = ["migrate on db-1", "smoke test on lb-1"]
    for host in WEB:
        done += [f"drain {host}", f"install 2.1 on {host}", f"restart on {host}"]
        done += [f"undrain {host}"] if host != ill else []
    return sorted(done)


def test_killed_twice_it_ends_as_if_it_had_not_been(actionplan, hosts):
    """The first applier dies while a batch is upgraded, the next one two batches later."""
    actionplan.good(
        "create", "--from-playbook", str(EXAMPLE / "site.yml"), "--inventory", str(hosts)
    )
    for done in (4, 18):
        with actionplan.start("apply", "last", "--yes") as applier:
            wait_until(lambda done=done: len(lines(actionplan)) >= done)
            applier.kill()
            applier.wait()
    actionplan.good("apply", "last", "--yes")
    found = lines(actionplan)
    assert sorted(found) == expected()
    assert (found[0], found[-1]) == ("migrate on db-1", "smoke test on lb-1")
    of = {host: [i for i, line in enumerate(found) if line.split()[-1] == host] for host in WEB}
    for first, second in zip(range(0, 4, 2), range(2, 6, 2), strict=True):
        ended = max(i for host in WEB[first : first + 2] for i in of[host])
        assert ended < min(i for host in WEB[second : second + 2] for i in of[host])


def test_a_host_that_fails_is_left_out_as_ansible_does_and_goes_on_alone(actionplan, hosts):
    """Ansible itself runs the same playbook on the same hosts, with the same end."""
    log = actionplan.folder / "log"
    ill = log.with_name("log.web-4-is-ill")
    ill.touch()
    argv = [program("ansible-playbook"), "-i", str(hosts), str(EXAMPLE / "site.yml")]
    home = {**os.environ, "ANSIBLE_HOME": str(actionplan.folder / "home")}
    own = subprocess.run(argv, env=home, capture_output=True, check=False)
    assert own.returncode == 2, own.stdout
    by_ansible = sorted(lines(actionplan))
    assert by_ansible == expected("web-4")
    log.unlink()

    actionplan.good(
        "create", "--from-playbook", str(EXAMPLE / "site.yml"), "--inventory", str(hosts)
    )
    ended = actionplan("apply", "last", "--yes")
    assert ended.code == 3, ended
    assert "Check its health" in ended.out
    assert sorted(lines(actionplan)) == by_ansible
    log.unlink()
    ill.unlink()
    actionplan.good("apply", "last", "--yes")
    assert sorted(lines(actionplan)) == [line for line in expected() if line.endswith("web-4")]
