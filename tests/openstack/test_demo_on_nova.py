# SPDX-License-Identifier: Apache-2.0
"""``./demo --openstack``: run to its end, interrupted, and where Nova cannot be installed."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import demo_on_nova
import environments
import pytest
import yaml

PROGRAM = [sys.executable, str(Path(demo_on_nova.__file__))]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    environments.require(environments.NOVA)
    return tmp_path / "demo-out"


def is_served(folder: Path) -> bool:
    """Return whether anything listens where the cloud of the demo was."""
    clouds = yaml.safe_load((folder / "nova" / "clouds.yaml").read_text(encoding="utf-8"))
    address = urlsplit(clouds["clouds"]["lab"]["auth"]["auth_url"])
    with socket.socket() as probe:
        return probe.connect_ex((address.hostname, address.port)) == 0


@pytest.mark.slow
def test_the_demo_empties_the_host_and_says_so(folder: Path) -> None:
    ended = subprocess.run([*PROGRAM, folder], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert re.findall(r"^\$ (.*)$", ended.stdout, re.MULTILINE) == [
        "actionplan drain cmp1 | actionplan create - --set migrate.parallelization=4",
        "actionplan apply last --yes",
        "actionplan show last --node cmp1",
    ]
    assert re.findall(r"^  cmp1 +(\w+) +(\d+)", ended.stdout, re.MULTILINE) == [
        ("enabled", "12"),
        ("disabled", "0"),
    ]
    assert "Safe to power off: yes" in ended.stdout
    assert not is_served(folder)
    told = [line.strip() for line in ended.stdout.splitlines() if line.startswith("  ")]
    export, *lines = told[-3:]
    for line in lines:
        shown = subprocess.run(
            ["bash", "-c", f"{export}; {line}"], capture_output=True, text=True, check=False
        )
        assert (shown.returncode, shown.stderr) == (0, "")
        assert "move-web-01" in shown.stdout


@pytest.mark.slow
def test_ctrl_c_pauses_the_plan_and_ends_the_cloud(folder: Path) -> None:
    with subprocess.Popen(
        [*PROGRAM, folder], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as demo:
        assert demo.stdout is not None
        next(line for line in demo.stdout if re.search(r"start +move-", line))
        os.killpg(demo.pid, signal.SIGINT)
        rest = demo.stdout.read()
    assert demo.returncode == 5
    assert "PAUSED" in rest
    assert not is_served(folder)


def test_where_nova_cannot_be_installed_a_sentence_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: environments.Environment) -> None:
        raise environments.NotMade("pip ended with 1")

    monkeypatch.setattr(environments, "is_made", lambda _: False)
    monkeypatch.setattr(environments, "make", fail)
    assert demo_on_nova.main(tmp_path / "demo-out") == 1
    told = capsys.readouterr()
    assert told.out.startswith("Making .venv-nova")
    assert told.err.startswith("demo: ")
    assert told.err.endswith(": pip ended with 1\n")
    assert not (tmp_path / "demo-out").exists()
