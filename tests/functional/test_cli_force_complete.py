# SPDX-License-Identifier: Apache-2.0
"""``action force-complete``: what can be completed at once, and by which cloud."""

from __future__ import annotations

import pytest
from command_line import CommandLine

from applier.clouds.simulated import SimulatedCloud


@pytest.fixture
def cloud(actionplan: CommandLine) -> SimulatedCloud:
    """Return the cloud that the command line works on."""
    return SimulatedCloud(actionplan.simulator, speed=1000)


def test_only_running_migrations_can_be_completed_at_once(actionplan: CommandLine) -> None:
    actionplan.good("create", "-", stdin=actionplan.good("drain", "compute-1"))
    ended = actionplan("action", "force-complete", "last", "move-web-1")
    assert ended.code == 1
    assert "move-web-1 (migrate) is PENDING: only ONGOING migrations" in ended.err


@pytest.mark.slow
def test_a_cloud_that_cannot_complete_a_migration_says_so(
    actionplan: CommandLine, cloud: SimulatedCloud
) -> None:
    actionplan.good("create", "-", stdin=actionplan.good("drain", "compute-1"))
    cloud.inject({"operation": "migrate", "kind": "hang"})
    with actionplan.start("apply", "last", "--yes") as process:
        for line in process.stdout:
            if "start" in line and "move-web-1" in line:
                break
        ended = actionplan("action", "force-complete", "last", "move-web-1")
        process.kill()
    assert ended.code == 1
    assert ended.err == ("Refused: the cloud simulated cannot complete a migration at once\n")
