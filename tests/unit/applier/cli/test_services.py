# SPDX-License-Identifier: Apache-2.0
"""Services on record: listed, and named when a plan is left to them."""

from __future__ import annotations

import socket
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from sample_plans import new_plan

from applier.storage.sql_store import SqlStore
from applier.store import Service

from .conftest import Run


def reported(
    store: SqlStore, host: str = "control-1", pid: int = 4711, cloud: str = "simulated"
) -> None:
    """Let a service report."""
    at = datetime.now(UTC)
    service = Service(
        uuid="12345678-service",
        host=host,
        pid=pid,
        user="watcher",
        started_at=at,
        heartbeat_at=at,
        plans=2,
        cloud=cloud,
    )
    store.report_service(service)


def test_a_service_is_listed_with_when_it_was_heard_of(run: Run, store: SqlStore) -> None:
    reported(store)
    code, out, err = run("service", "list")
    assert (code, err) == (0, "")
    row = out.splitlines()[2].split()
    assert row[:5] == ["12345678", "control-1", "4711", "watcher", "2"]
    assert row[-1] == "ago"


def test_a_service_of_this_host_whose_process_is_gone_runs_nothing(
    run: Run, store: SqlStore
) -> None:
    reported(store, host=socket.gethostname(), pid=2**22 + 1)
    _, out, _ = run("service", "list")
    assert out.splitlines()[2].endswith("ago, gone")
    plan = new_plan("a")
    store.save_plan(plan)
    _, out, _ = run("start", plan.uuid)
    assert "No applier service reports" in out


def test_a_plan_is_left_to_the_service(run: Run, store: SqlStore) -> None:
    reported(store)
    plan = new_plan("a")
    store.save_plan(plan)
    code, out, _ = run("start", plan.uuid)
    assert code == 0
    assert "waits for an applier service." in out
    assert "watcher on control-1, process 4711." in out
    assert f"Follow it with: actionplan watch {plan.uuid[:8]}" in out


@pytest.mark.parametrize(
    ("kind", "waits"), [("migrate", False), ("nop", True)], ids=["its cloud", "any cloud"]
)
def test_a_service_of_another_cloud_is_none_for_a_plan_that_needs_its_own(
    run: Run, store: SqlStore, kind: str, waits: bool
) -> None:
    reported(store, cloud="toy")
    plan = new_plan("a")
    plan = replace(plan, actions=(replace(plan.actions[0], action_type=kind),))
    store.save_plan(plan)
    _, out, _ = run("start", plan.uuid, "--accept-drift")
    assert ("and waits for an applier service." in out) is waits
    assert ("No applier service for its cloud reports" in out) is not waits


def test_the_clouds_of_services_are_listed_where_they_are_not_simulated(
    run: Run, store: SqlStore
) -> None:
    reported(store, cloud="simulated")
    assert "simulated" not in run("service", "list")[1]
    reported(store, cloud="toy")
    _, out, _ = run("service", "list")
    assert out.splitlines()[0].endswith("cloud")
    assert out.splitlines()[2].endswith("toy")
