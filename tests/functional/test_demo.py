# SPDX-License-Identifier: Apache-2.0
"""``./demo``: run in a copy of the checkout, with this environment; then the lines it gives."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy what ``./demo`` reads. Its environment is this one, so that nothing is installed.

    The installed program is the checkout's own; the mark in ``.venv`` says which folder an
    environment belongs to, so each file of it is linked but that one.
    """
    copy = tmp_path_factory.mktemp("demo") / "check out"
    copy.mkdir()
    for name in ("demo", "tools", "etc", "setup.cfg"):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy2)(source, copy / name)
    (copy / ".venv").mkdir()
    for entry in Path(sys.prefix).iterdir():
        if entry.name != "complete":
            (copy / ".venv" / entry.name).symlink_to(entry)
    (copy / ".venv" / "complete").write_text(f"{copy}\n", encoding="utf-8")
    return copy


def test_the_demo_runs_its_commands_in_order_in_its_folder_and_its_last_three_lines_work(checkout):
    # The simulated cloud works off the file's own speed; the environment wins over it.
    environment = {**os.environ, "OS_ACTIONPLAN__SIMULATOR_SPEED": "1000", "HOME": str(checkout)}
    ended = subprocess.run(
        ["./demo"],
        cwd=checkout,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert re.findall(r"^\$ actionplan (.*)$", ended.stdout, re.MULTILINE) == [
        "simulator show",
        "create etc/examples/host-maintenance.yaml",
        "apply last --yes",
        "simulator show",
    ]
    assert "SUCCEEDED  took" in ended.stdout
    kept = {path.name for path in (checkout / "demo-out").iterdir()}
    assert {"watcher.conf", "actionplan.sqlite", "simulator.json"} <= kept
    assert not (checkout / ".local").exists()
    for line in map(str.strip, ended.stdout.splitlines()[-3:]):
        assert line.startswith(".venv/bin/actionplan ")
        told = subprocess.run(
            ["bash", "-c", line], cwd=checkout, capture_output=True, text=True, check=False
        )
        assert told.returncode == 0, told.stderr
        assert told.stdout


def test_an_argument_that_does_not_exist_is_refused(checkout):
    told = subprocess.run(
        ["./demo", "--openstak"], cwd=checkout, capture_output=True, text=True, check=False
    )
    assert (told.returncode, told.stderr) == (2, "Usage: ./demo [--openstack]\n")


CORE, EVERYTHING = "--editable .", "--editable .[test,doc,postgresql,mysql]"


@pytest.mark.parametrize(
    ("made", "asked", "installed"),
    [
        ((), "core", CORE),
        ((), "", EVERYTHING),
        (("core",), "core", None),
        (("core",), "", EVERYTHING),
        (("complete",), "core", None),
        (("complete",), "", None),
    ],
)
def test_only_what_is_missing_is_installed(tmp_path, made, asked, installed):
    """The interpreter is a script that notes its arguments."""
    for name in ("setup.cfg", "pyproject.toml"):
        shutil.copy2(ROOT / name, tmp_path)
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\n[ "$1" = -c ] || echo "$*" >>called\necho Collecting\n')
    python.chmod(0o755)
    for mark in made:
        (tmp_path / ".venv" / mark).write_text(f"{tmp_path}\n", encoding="utf-8")
    command = ["bash", "-euc", f". {shlex.quote(str(ROOT / 'tools' / 'environment'))} {asked}"]
    for run in (1, 2):
        told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (told.returncode, told.stderr) == (0, "")
        # What was made once is not made again.
        assert bool(told.stdout) == (run == 1 and installed is not None)
    called = tmp_path / "called"
    assert installed is not None or not called.exists()
    if installed is not None:
        (line,) = called.read_text().splitlines()
        assert line.endswith(installed)
