# SPDX-License-Identifier: Apache-2.0
"""A run is measured by what is committed."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pytest
from store_checks.running_plans import ME, NOW, retries, starts, succeeds

from applier.errors import PlanConflict
from applier.monitoring.measured_store import MeasuredStore, RunMetrics, measured
from applier.monitoring.record_collector import RecordCollector
from applier.store.figures import StoreFigures
from applier.testing.sample_plans import new_plan
from applier.testing.temporary_store import TemporaryStore
from planner.plan.states import PlanState


def test_durations_waits_and_commits_of_a_run() -> None:
    now, metrics, plan = [0.0], RunMetrics(), new_plan("a", "b")
    a, b = plan.actions

    def value(name: str, **labels: str) -> float | None:
        return metrics.registry.get_sample_value(f"actionplan_{name}", labels)

    with closing(TemporaryStore()) as store:
        store.save_plan(replace(plan, state=PlanState.PENDING))
        run = MeasuredStore(store, metrics, clock=lambda: now[0])
        metrics.add(run)
        run.load_plan(plan.uuid)
        claim = run.claim_plan(plan.uuid, ME, now=NOW)

        def commit(at: float, *reports: object) -> None:
            now[0] = at
            run.commit(plan.uuid, claim, reports, now=NOW)

        commit(1, starts(a))
        assert (value("running_plans"), value("workers_busy")) == (1, 1)
        commit(4, retries(a))
        commit(6, starts(a))
        commit(16, succeeds(a))
        commit(21, starts(b))
        commit(22, succeeds(b))
        with pytest.raises(PlanConflict):
            run.commit(plan.uuid, "another", [starts(a)], now=NOW)
        run.move_claimed(plan.uuid, claim, PlanState.SUCCEEDED, now=NOW)
    assert value("attempt_seconds_sum", action_type="nop", state="PENDING") == 3
    assert value("attempt_seconds_sum", action_type="nop", state="SUCCEEDED") == 11
    assert value("action_wait_seconds_sum", reason="retry") == 2
    assert value("action_wait_seconds_sum", reason="actions") == 16
    assert value("action_wait_seconds_sum", reason="limits") == 1 + 5
    assert value("commit_seconds_count") == 6
    assert value("commit_failures_total") == 1
    assert value("plan_runs_total", state="SUCCEEDED") == 1
    assert (value("running_plans"), value("workers_busy")) == (0, 0)


def test_a_run_that_broke_off_is_forgotten() -> None:
    metrics = RunMetrics()
    with closing(TemporaryStore()) as store:
        run = measured(store, metrics)
        plan = new_plan("a")
        store.save_plan(replace(plan, state=PlanState.PENDING))
        run.claim_plan(plan.uuid, ME, now=NOW)
        assert metrics.registry.get_sample_value("actionplan_running_plans") == 1
        del run
    assert metrics.registry.get_sample_value("actionplan_running_plans") == 0


def test_many_scrapers_cost_one_query() -> None:
    now, asked = [0.0], []

    def read() -> StoreFigures:
        asked.append(now[0])
        raise TimeoutError

    collector = RecordCollector(read, kept_s=5.0, clock=lambda: now[0])
    for now[0] in (0.0, 1.0, 4.0, 5.0, 6.0):
        list(collector.collect())
    assert asked == [0.0, 5.0]
