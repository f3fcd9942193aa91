# SPDX-License-Identifier: Apache-2.0
"""The endpoints for monitoring: metrics, and whether the process and its database respond."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from applier.api.monitoring.health import Health, Readiness
from applier.api.monitoring.metrics import Metrics
from applier.api.monitoring.shared_call import SharedCall
from applier.api.parts import Parts
from applier.monitoring.record_collector import RecordCollector, registry_of

#: The maximum seconds for reading the figures of the database; Prometheus waits for 10.
FIGURES_S = 8.0


def routes(parts: Parts) -> Mapping[str, Any]:
    """Return the resource of each path. Each call makes a metrics registry of its own."""
    assembly = parts.assembly
    figures = SharedCall(lambda: assembly.store.figures(), FIGURES_S)

    return {
        "/metrics": Metrics(registry_of(RecordCollector(figures)), parts.of_runs),
        "/healthz": Health(),
        "/readyz": Readiness(lambda: assembly.store.ping()),
    }
