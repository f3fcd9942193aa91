# SPDX-License-Identifier: Apache-2.0
"""What monitoring asks: metrics, and whether the service and its record answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from applier.api.monitoring.health import Health, Readiness
from applier.api.monitoring.metrics import Metrics
from applier.api.monitoring.one_look import OneLook
from applier.api.parts import Parts
from applier.monitoring.record_collector import RecordCollector, registry_of

#: The most seconds that the figures of the record may take; Prometheus waits for 10.
FIGURES_S = 8.0


def routes(parts: Parts) -> Mapping[str, Any]:
    """Return the resource of each path; the registry of metrics belongs to the application."""
    assembly = parts.assembly
    figures = OneLook(lambda: assembly.store.figures(), FIGURES_S)

    return {
        "/metrics": Metrics(registry_of(RecordCollector(figures)), parts.of_runs),
        "/healthz": Health(),
        "/readyz": Readiness(lambda: assembly.store.ping()),
    }
