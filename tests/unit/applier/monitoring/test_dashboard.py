# SPDX-License-Identifier: Apache-2.0
"""The dashboard and the alerts ask only for metrics and labels that are offered."""

from __future__ import annotations

import json
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import programs
import pytest
import yaml
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from applier.api.monitoring import Requests
from applier.monitoring import metrics_server
from applier.monitoring.record_metrics import RecordCollector
from applier.monitoring.run_metrics import FOR_LIMITS, RunMetrics
from applier.store.entries import Heartbeat, Outbox, StoreFigures, WorkerFigures

ALERTS = Path(__file__).parents[4] / "etc" / "prometheus-alerts.yaml"
#: What Prometheus sees, and what it is to tell of it, in the form of promtool.
CASES = Path(__file__).parent / "alert_cases.yaml"
DASHBOARD = Path(__file__).parents[4] / "etc" / "grafana-dashboard.json"
#: Labels that Prometheus adds when it scrapes.
SCRAPED = {"instance", "job"}


def offered() -> dict[str, set[str]]:
    """Return the labels of each metric that /metrics of either program may offer."""
    beat = Heartbeat(uuid="u", host="h", at=datetime(2026, 1, 1, tzinfo=UTC))
    figures = StoreFigures(
        plans={},
        in_doubt=0,
        actions={("nop", "PENDING"): 1},
        are_all_counted=True,
        oldest_pending_at=None,
        claimants=(beat,),
        services=(beat,),
        outboxes=(Outbox(subscription="ops", waiting=1, oldest_at=None, held_back=0, dead=0),),
        workers=(WorkerFigures("w", "h", running=1, places=2, draining=False, silent_s=0.0),),
    )
    registry = CollectorRegistry()
    registry.register(RecordCollector(lambda: figures))
    metrics_server.describe_process(registry)
    answered = Requests(registry)
    request: Any = SimpleNamespace(
        method="GET", uri_template="/v2", context=SimpleNamespace(), env={}
    )
    answered.process_request(request, cast("Any", None))
    answered.process_response(request, cast("Any", SimpleNamespace(status_code=200)), None, True)
    runs = RunMetrics()
    runs.plan_ends.labels("FAILED")
    runs.attempts.labels("nop", "FAILED")
    runs.waits.labels(FOR_LIMITS)
    known: dict[str, set[str]] = {}
    with metrics_server.listening() as listener:
        metrics_server.serve_metrics(listener, runs.registry)
        texts = [generate_latest(registry), metrics_server.fetch_metrics(listener)]
    for text in texts:
        for family in text_string_to_metric_families(text.decode()):
            assert family.documentation.endswith("."), family.name
            for sample in family.samples:
                known.setdefault(sample.name, set()).update(sample.labels)
    return known


def shown() -> list[str]:
    """Return all expressions of the dashboard."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel["targets"]]


def alerts() -> list[dict[str, Any]]:
    """Return all alerts."""
    [group] = yaml.safe_load(ALERTS.read_text())["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


def labels_of(expression: str) -> set[str]:
    """Return the labels by which an expression selects or groups."""
    selects = " ".join(re.findall(r"\{([^}]*)\}", expression))
    groups = " ".join(re.findall(r"\bby\s*\(([^)]*)\)", expression))
    return {*re.findall(r"(\w+)\s*[=!]", selects), *re.findall(r"\w+", groups)}


def test_an_expression_asks_for_what_is_offered() -> None:
    known = offered()
    for one in (*shown(), *(alert["expr"] for alert in alerts())):
        names = re.findall(r"\b(?:actionplan|process)_\w+", one)
        assert names, one
        for name in names:
            assert labels_of(one) - SCRAPED <= known[name], one


def test_the_dashboard_shows_every_metric() -> None:
    text = " ".join(shown())
    names = {re.sub("_(bucket|sum|count|total|created)$", "", name) for name in offered()}
    assert [n for n in names if n not in text and not n.startswith("process_")] == []


def test_no_label_has_a_value_that_is_new_for_each_plan_or_process() -> None:
    bounded = {"action_type", "state", "reason", "le", "host", "subscription"}
    bounded |= {"method", "route", "status", "version", "python"}
    assert set().union(*offered().values()) <= bounded


def test_an_alert_says_what_is_and_what_to_do() -> None:
    names = [alert["alert"] for alert in alerts()]
    assert len(names) == len(set(names)) > 10
    for alert in alerts():
        assert alert["annotations"].keys() == {"summary", "description"}, alert
        assert alert["labels"]["severity"] in ("info", "warning", "critical"), alert
        said = " ".join(alert["annotations"].values())
        assert set(re.findall(r"\$labels\.(\w+)", said)) <= labels_of(alert["expr"]), alert


def test_no_applier_at_all_is_told_as_well() -> None:
    """An applier that ends removes its heartbeat, and with it the series."""
    [one] = [alert["expr"] for alert in alerts() if alert["alert"] == "ActionPlanNoApplier"]
    assert "absent(actionplan_service_heartbeat_age_seconds)" in one


@pytest.mark.needs("promtool")
@pytest.mark.slow
def test_promtool_accepts_the_alerts_and_finds_that_they_come_when_they_should() -> None:
    checker = str(programs.find("promtool"))
    for words in (["check", "rules", str(ALERTS)], ["test", "rules", str(CASES)]):
        ran = subprocess.run([checker, *words], capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr
