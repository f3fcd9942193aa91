# SPDX-License-Identifier: Apache-2.0
"""``/metrics``: the figures of the database, and those of the process that runs plans, if any."""

from __future__ import annotations

from collections.abc import Callable

import falcon
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest


class Metrics:
    """The resource ``/metrics``, in the text format of Prometheus.

    ``of_runs`` returns the metrics of the process that runs plans in this format; None to leave
    them out.
    """

    RULES = {"GET": "metrics:read"}

    def __init__(self, registry: CollectorRegistry, of_runs: Callable[[], bytes] | None) -> None:
        self._registry, self._of_runs = registry, of_runs

    def on_get(self, _request: falcon.Request, response: falcon.Response) -> None:
        """Return all metrics."""
        response.content_type = CONTENT_TYPE_LATEST
        response.data = generate_latest(self._registry)
        if self._of_runs is not None:
            response.data += self._of_runs()
