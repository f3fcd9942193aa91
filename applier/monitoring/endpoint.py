# SPDX-License-Identifier: Apache-2.0
"""The HTTP port on which a process that runs plans serves its metrics, on this machine only."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, start_http_server

LOG = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"


@contextmanager
def offered(registry: CollectorRegistry, port: int) -> Iterator[WSGIServer | None]:
    """Serve the metrics of a registry at http://127.0.0.1:PORT/metrics while the block runs.

    Yields the server. If the port cannot be used, this is logged, and None is yielded.
    """
    try:
        server, _ = start_http_server(port, addr=LOOPBACK, registry=registry)
    except OSError as reason:
        LOG.error(
            "[watcher_applier] metrics_port %d cannot be used, no metrics are shown: %s",
            port,
            reason.strerror,
        )
        yield None
        return
    LOG.info("Metrics are on http://%s:%d/metrics", LOOPBACK, server.server_port)
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
