# SPDX-License-Identifier: Apache-2.0
"""The dashboard asks only for metrics and labels that are offered."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from applier.monitoring import serving
from applier.monitoring.measured_store import FOR_LIMITS, RunMetrics
from applier.monitoring.record_collector import RecordCollector, registry_of
from applier.store.figures import Heartbeat, Outbox, StoreFigures, WorkerFigures

DASHBOARD = Path(__file__).parents[4] / "etc" / "grafana-dashboard.json"
#: Labels that Prometheus adds when it scrapes.
SCRAPED = {"instance", "job"}
FUNCTIONS = {"sum", "max", "min", "rate", "histogram_quantile", "by"}

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABELS = re.compile(r"(?:\{([^}]*)\}|\bby\s*\(([^)]*)\))")


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


def wrong(expression: str, known: dict[str, set[str]]) -> Iterator[str]:
    """List what an expression names that is not offered."""
    text = _STRING.sub('""', expression)
    if text.count("(") != text.count(")") or text.count("{") != text.count("}"):
        yield "its brackets do not match"
    labels = {
        label
        for matched, grouped in _LABELS.findall(text)
        for label in _NAME.findall(f"{matched} {grouped}")
    }
    rest = re.sub(r"\[[0-9]+[smhd]\]", "", _LABELS.sub(" ", text))
    metrics = set(_NAME.findall(rest)) - FUNCTIONS
    yield from (f"no metric {name}" for name in metrics - set(known))
    if not metrics:
        yield "no metric at all"
    for name in metrics & set(known):
        yield from (f"{name} has no label {label}" for label in labels - known[name] - SCRAPED)


def expressions() -> list[str]:
    """Return all expressions of the dashboard."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel["targets"]]


def test_an_expression_asks_for_what_is_offered() -> None:
    known = offered()
    assert not [(one, found) for one in expressions() if (found := list(wrong(one, known)))]


def test_the_dashboard_shows_every_metric() -> None:
    text = " ".join(expressions())
    shown = {re.sub("_(bucket|sum|count|total|created)$", "", name) for name in offered()}
    assert [name for name in shown if name not in text] == []


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        ("sum(actionplan_plan)", "no metric actionplan_plan"),
        ('actionplan_plans{status="PENDING"}', "actionplan_plans has no label status"),
        ("sum by (host) (actionplan_plans)", "actionplan_plans has no label host"),
        ("sum(actionplan_plans", "its brackets do not match"),
        ("sum(rate([5m]))", "no metric at all"),
    ],
)
def test_a_wrong_expression_is_found(expression: str, sentence: str) -> None:
    assert sentence in list(wrong(expression, offered()))
