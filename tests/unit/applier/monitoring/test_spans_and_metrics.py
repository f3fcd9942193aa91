# SPDX-License-Identifier: Apache-2.0
"""The way of spans to a collector holds up no run, and a run is measured by what is committed."""

from __future__ import annotations

import logging
import sys
import threading
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace

import pytest
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from sample_plans import new_plan
from store_checks.running_plans import ME, NOW, retries, starts, succeeds
from temporary_store import TemporaryStore

from applier.assembly import Assembly
from applier.errors import PlanConflict
from applier.monitoring import traces
from applier.monitoring.record_metrics import RecordCollector
from applier.monitoring.run_metrics import MeasuredStore, RunMetrics, measured
from applier.store.entries import StoreFigures
from planner.plan.states import PlanState

PATIENCE_S = 120.0


class Collector(SpanExporter):
    """Stands for the exporter: hangs while ``answers`` is not set."""

    def __init__(self) -> None:
        self.answers, self.asked, self.took = threading.Event(), threading.Event(), []

    def export(self, spans):
        self.asked.set()
        assert self.answers.wait(PATIENCE_S)
        self.took += [span.name for span in spans]
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Go on."""


@pytest.fixture
def collector(monkeypatch):
    """Return what takes the spans in place of the exporter of the SDK."""
    made = Collector()
    monkeypatch.setattr(traces, "OTLPSpanExporter", lambda: made)
    yield made
    made.answers.set()


def test_what_ended_is_sent_before_the_block_is_left(collector):
    collector.answers.set()
    with traces.sent() as tracer:
        tracer.start_span("plan").end()
    assert collector.took == ["plan"]


def test_a_collector_that_hangs_holds_up_nothing(collector, monkeypatch, caplog):
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "4")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "2")
    monkeypatch.setattr(traces, "LAST_BATCHES_S", 0.01)
    with traces.sent() as tracer:
        tracer.start_span("plan").end()
        assert collector.asked.wait(PATIENCE_S)
        for _ in range(1000):
            tracer.start_span("attempt").end()
    assert collector.took == []
    (only,) = [r.getMessage() for r in caplog.records if r.name == traces.LOG.name]
    assert "Queue " in only


def test_the_end_tells_what_was_not_taken(collector, monkeypatch, caplog):
    monkeypatch.setattr(traces, "LAST_BATCHES_S", 0.01)
    with traces.sent() as tracer:
        tracer.start_span("plan").end()
    assert "no answer within 0.01 s" in caplog.text


def test_troubles_are_told_once_and_their_end_too(collector, caplog):
    caplog.set_level(logging.INFO)
    collector.answers.set()
    with traces.sent() as tracer:
        for code in (503, 502):
            traces.SDK_LOG.getChild("exporter").error("Failed, code: %s", code)
        tracer.start_span("plan").end()
    traces.SDK_LOG.error("of another")
    trouble, end, other = (record.getMessage() for record in caplog.records)
    assert trouble.endswith("Failed, code: 503")
    assert (end, other) == ("Traces are sent again", "of another")


def test_a_wrong_variable_stops_nothing(monkeypatch, caplog):
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "0")
    with traces.sent() as tracer:
        assert tracer is None
    assert "[watcher_applier] traces: " in caplog.text
    assert "max_queue_size" in caplog.text


def test_a_malformed_header_is_not_told(monkeypatch, caplog):
    """It is the exporter that reads it: nothing is sent here, and nobody listens."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "swordfish")
    with traces.sent() as tracer:
        assert tracer is not None
    assert "a variable of headers is malformed" in caplog.text
    assert "swordfish" not in caplog.text


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({}, "actionplan"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "service.name=night"}, "night"),
        ({"OTEL_SERVICE_NAME": "day"}, "day"),
    ],
)
def test_the_variables_may_name_the_service(collector, monkeypatch, variables, name):
    for key, value in variables.items():
        monkeypatch.setenv(key, value)
    collector.answers.set()
    with traces.sent() as tracer:
        assert tracer.start_span("plan").resource.attributes["service.name"] == name


@pytest.fixture
def assembly():
    """Return the parts of a configuration that asks for traces."""
    return Assembly(SimpleNamespace(watcher_applier=SimpleNamespace(traces=True)))


def test_a_missing_extra_is_a_sentence(assembly, monkeypatch, caplog):
    monkeypatch.delitem(sys.modules, traces.__name__)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with assembly.traced():
        pass
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert "'traces'" in record.getMessage()


# A run is measured by what is committed.


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
