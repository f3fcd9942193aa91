# SPDX-License-Identifier: Apache-2.0
"""One real Nova for all tests of a process, and the cloud ``openstack`` on it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import environments
import pytest
from command_line import CommandLine, RealCommandLine
from nova_lab import NovaLab

from applier.clouds.openstack.cloud import OpenStackCloud


@pytest.fixture(scope="session")
def nova_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NovaLab]:
    """Return a Nova that runs, with three hosts."""
    environments.require(environments.NOVA)
    with NovaLab(tmp_path_factory.mktemp("nova"), computes=3) as lab:
        yield lab


@pytest.fixture
def lab(nova_lab: NovaLab, monkeypatch: pytest.MonkeyPatch) -> NovaLab:
    """Return the lab: there is no server yet, and all hosts are enabled."""
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(nova_lab.clouds_yaml))
    nova_lab.reset()
    return nova_lab


@pytest.fixture
def cloud(lab: NovaLab) -> Iterator[OpenStackCloud]:
    """Return the cloud of the lab."""
    made = OpenStackCloud(cloud=lab.NAME)
    yield made
    made.close()


@pytest.fixture
def command_line_on(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Path], CommandLine]:
    """Return a function that makes a command line whose cloud is the one of a clouds.yaml."""

    def made(clouds_yaml: Path) -> CommandLine:
        command = RealCommandLine(tmp_path, tmp_path_factory.getbasetemp() / "cache")
        # openstacksdk deprecates some of what it calls itself.
        warnings = command.environment["PYTHONWARNINGS"] + ",ignore::PendingDeprecationWarning"
        command.environment |= {
            "OS_CLIENT_CONFIG_FILE": str(clouds_yaml),
            "PYTHONWARNINGS": warnings,
        }
        command.configure(
            actionplan={"cloud": "openstack"},
            openstack={"cloud": NovaLab.NAME},
            watcher_applier={"heartbeat_interval_s": 0.5},
            watcher_workflow_engines__taskflow={"max_workers": 3},
        )
        return command

    return made


@pytest.fixture
def on_lab(lab: NovaLab, command_line_on: Callable[[Path], CommandLine]) -> CommandLine:
    """Return a command line whose cloud is the lab."""
    return command_line_on(lab.clouds_yaml)


@pytest.fixture
def hold(tmp_path: Path) -> Iterator[Path]:
    """Return a path for ``lab_hold``; files that a test leaves there, or at hold-*, are removed."""
    yield tmp_path / "hold"
    for left in tmp_path.glob("hold*"):
        left.unlink()


@pytest.fixture
def stop() -> threading.Event:
    """Return a stop signal."""
    return threading.Event()
