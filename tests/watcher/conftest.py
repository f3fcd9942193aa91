# SPDX-License-Identifier: Apache-2.0
"""The environments of the tests with OpenStack Watcher, and one lab for all of them."""

from __future__ import annotations

from collections.abc import Iterator

import environments
import programs
import pytest
from environments import Environment
from lab_servers import Servers
from scratch_database import database_for_tests
from watcher_lab import WatcherLab

#: Programs for the Pythons of the environments.
collect_ignore = ["lab"]


@pytest.fixture(scope="session")
def watcher_environment() -> Environment:
    """Return the environment with Watcher, its client and this product."""
    return environments.require(environments.WATCHER)


@pytest.fixture(scope="session")
def watcher_database() -> Iterator[str]:
    """Return the URL of an empty database for a lab."""
    with database_for_tests("mysql") as url:
        yield url


@pytest.fixture(scope="session")
def watcher_lab(
    watcher_database: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WatcherLab]:
    """Return a Watcher that runs, with three hosts of Nova and Watcher's own engine."""
    programs.require("rabbitmq-server", "epmd")
    for environment in (environments.WATCHER, environments.NOVA):
        environments.require(environment)
    with WatcherLab(tmp_path_factory.mktemp("watcher"), watcher_database, {}) as lab:
        yield lab


@pytest.fixture
def servers(watcher_lab: WatcherLab) -> Servers:
    """Return the servers of the lab's Nova; there is none yet, and all hosts are enabled."""
    made = Servers(watcher_lab)
    made.reset()
    return made
