# SPDX-License-Identifier: Apache-2.0
"""Clients of the API in this process, with an empty record."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from api_client import WatcherClient, closed_client, configured
from command_line import CommandLine

from applier import configuration
from applier.assembly import Assembly


@pytest.fixture
def actionplan(tmp_path: Path) -> CommandLine:
    """Return a command line with a home of its own, in which simulated work takes no time."""
    return CommandLine(tmp_path, tmp_path / "cache")


@pytest.fixture
def api(actionplan: CommandLine) -> Iterator[Any]:
    """Return a client of the API."""
    with closed_client(configured(actionplan)) as client:
        yield client


@pytest.fixture
def v1(actionplan: CommandLine) -> Iterator[Any]:
    """Return a client of Watcher's API."""
    conf = configuration.load([str(configured(actionplan).configuration)])
    with closing(Assembly(conf)) as assembly:
        yield WatcherClient(assembly)
