# SPDX-License-Identifier: Apache-2.0
"""No program changes its environment while it has threads.

A process crashes if one thread changes the environment while another reads it, as the libraries of
databases do when they connect (getenv(3)).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from api_client import api_process, configured
from command_line import EXAMPLE
from worker_processes import fleet_for_tests

from planner.plan.states import PlanState

WATCH = Path(__file__).parents[1] / "environment_changes"


def watched(folder: Path) -> dict[str, str]:
    """Return the environment of a program whose changes are written down."""
    return {"PYTHONPATH": str(WATCH), "ENVIRONMENT_CHANGES": str(folder / "changes")}


def changes(folder: Path, *programs: str) -> list[str]:
    """Return what was written down; each of these programs was watched."""
    found = (folder / "changes").read_text(encoding="utf-8").splitlines()
    for program in programs:
        assert f"{program} starts" in found
    return [line for line in found if not line.endswith(" starts")]


@pytest.mark.server
def test_a_worker_and_an_applier(tmp_path):
    """Celery sets variables when a worker starts."""
    with fleet_for_tests(tmp_path, broker="redis") as processes:
        processes.workers(1, **watched(tmp_path))
        processes.start("actionplan-applier", **watched(tmp_path))
        plan = processes.ended(processes.shells(4, 0.1))
    assert plan.state is PlanState.SUCCEEDED
    found = changes(tmp_path, "actionplan-worker", "actionplan-applier")
    assert any(line.startswith("actionplan-worker b'CELERY_LOG_LEVEL'") for line in found)
    assert [line for line in found if not line.endswith(" beside nothing")] == []


@pytest.mark.long
def test_a_command_and_the_api(actionplan):
    configured(actionplan, port=0)
    actionplan.environment |= watched(actionplan.folder)
    assert actionplan("apply", str(EXAMPLE), "--yes").code == 0
    with api_process(actionplan) as api:
        assert api("/v2/plans").json["plans"][0]["state"] == "SUCCEEDED"
    found = changes(actionplan.folder, "actionplan", "actionplan-api")
    assert [line for line in found if not line.endswith(" beside nothing")] == []
