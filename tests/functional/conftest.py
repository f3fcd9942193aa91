# SPDX-License-Identifier: Apache-2.0
"""What tests of the command line share."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import programs
import pytest
from command_line import CommandLine, Gate, RealCommandLine


@pytest.fixture(scope="session")
def entry_point_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return one cache of entry points to all: to look for them anew in each home takes long."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def actionplan(
    tmp_path: Path, entry_point_cache: Path, request: pytest.FixtureRequest
) -> CommandLine:
    """Return a command line with a home of its own, in which simulated work takes no time.

    Long tests and those with servers start the program itself.
    """
    real = any(request.node.get_closest_marker(mark) for mark in ("long", "server"))
    return (RealCommandLine if real else CommandLine)(tmp_path, entry_point_cache)


@pytest.fixture
def api(actionplan: CommandLine) -> Iterator[Any]:
    """Return a client of the API with an empty record."""
    from api_client import closed_client, configured

    with closed_client(configured(actionplan)) as client:
        yield client


@pytest.fixture
def gate(actionplan: CommandLine) -> Iterator[Gate]:
    """Return what the first action waits for."""
    made = Gate(actionplan.folder)
    yield made
    made.leave_open()


@pytest.fixture
def running(actionplan: CommandLine, gate: Gate) -> Iterator[subprocess.Popen[str]]:
    """Run a plan whose first action waits at the gate, then three others one after another."""
    options = {"weights": {"shell": 90}}
    others = (
        {"name": name, "action_type": "nop", "touches": [f"node:{name}"]}
        for name in ("second", "third", "fourth")
    )
    actionplan.document("plan.yaml", gate.action("first"), *others, options=options)
    with actionplan.start("apply", "plan.yaml", "--yes") as process:
        gate.wait()
        yield process
        process.kill()


@pytest.fixture(scope="session")
def chromium_of_process() -> Iterator[Any]:
    """Start a browser for all tests of a process; skip where Chromium is missing, fail under CI."""
    programs.require("chromium", "chromedriver")
    from browsers import chromium

    with chromium() as driver:
        yield driver


@pytest.fixture
def browser(chromium_of_process: Any) -> Any:
    """Return the browser, with no page open and without what it complained of earlier."""
    from browsers import complaints

    chromium_of_process.get("about:blank")
    complaints(chromium_of_process)
    return chromium_of_process
