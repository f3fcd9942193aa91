# SPDX-License-Identifier: Apache-2.0
"""The dashboard asks only for metrics and labels that are offered."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from applier.monitoring import serving
from applier.monitoring.measured_store import FOR_LIMITS, RunMetrics
from applier.monitoring.record_collector import RecordCollector, registry_of
from applier.store.figures import Heartbeat, Outbox, StoreFigures, WorkerFigures

DASHBOARD = Path(__file__).parents[4] / "etc" / "grafana-dashboard.json"
#: Labels that Prometheus adds when it scrapes.
SCRAPED = {"instance", "job"}


def offered() -> dict[str, set[str]]:
    """Return the labels of each metric that /metrics of either program may offer."""
    beat = Heartbeat(uuid="u", host="h", at=datetime(2026, 1, 1, tzinfo=UTC))
    figures = StoreFigures(
        plans={},
        actions={("nop", "PENDING"): 1},
        are_all_counted=True,
        oldest_pending_at=None,
        claimants=(beat,),
        services=(beat,),
        outboxes=(Outbox(subscription="ops", waiting=1, oldest_at=None, held_back=0, dead=0),),
        workers=(WorkerFigures("w", "h", running=1, places=2, draining=False, silent_s=0.0),),
    )
    runs = RunMetrics()
    runs.plan_ends.labels("FAILED")
    runs.attempts.labels("nop", "FAILED")
    runs.waits.labels(FOR_LIMITS)
    known: dict[str, set[str]] = {}
    with serving.listening() as listener:
        serving.serve_metrics(listener, runs.registry)
        texts = [generate_latest(registry_of(RecordCollector(lambda: figures)))]
        texts.append(serving.fetch_metrics(listener))
    for text in texts:
        for family in text_string_to_metric_families(text.decode()):
            assert family.documentation.endswith(".")
            for sample in family.samples:
                known.setdefault(sample.name, set()).update(sample.labels)
    return known


def expressions() -> list[str]:
    """Return all expressions of the dashboard."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel["targets"]]


def labels_of(expression: str) -> set[str]:
    """Return the labels by which an expression selects or groups."""
    selects = " ".join(re.findall(r"\{([^}]*)\}", expression))
    groups = " ".join(re.findall(r"\bby\s*\(([^)]*)\)", expression))
    return {*re.findall(r"(\w+)\s*[=!]", selects), *re.findall(r"\w+", groups)}


def test_an_expression_asks_for_what_is_offered() -> None:
    known = offered()
    for one in expressions():
        names = re.findall(r"\bactionplan_\w+", one)
        assert names, one
        for name in names:
            assert labels_of(one) - SCRAPED <= known[name], one


def test_the_dashboard_shows_every_metric() -> None:
    text = " ".join(expressions())
    shown = {re.sub("_(bucket|sum|count|total|created)$", "", name) for name in offered()}
    assert [name for name in shown if name not in text] == []
