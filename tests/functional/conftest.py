"""What tests of the command line share."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import CommandLine


@pytest.fixture(scope="session")
def entry_point_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give one cache of entry points to all: to look for them anew in each home takes long."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def actionplan(tmp_path: Path, entry_point_cache: Path) -> CommandLine:
    """Give a command line with a home of its own, in which simulated work takes no time."""
    return CommandLine(tmp_path, entry_point_cache)
