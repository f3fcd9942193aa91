# SPDX-License-Identifier: Apache-2.0
"""Serves the metrics of runs: on a port of this machine, or through the process of the API.

In ``actionplan-applier --with-api``, the parent of both processes listens at a Unix socket in a
folder that only its user may open. The process that runs plans inherits the socket, and sends its
metrics to each connection. A process that replaces a dead one inherits the same socket.
"""

from __future__ import annotations

import logging
import platform
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from wsgiref.simple_server import WSGIServer

from prometheus_client import (
    CollectorRegistry,
    Info,
    ProcessCollector,
    generate_latest,
    start_http_server,
)

#: The seconds after which either side stops waiting for the other.
LIMIT_S = 1.0


@contextmanager
def listening() -> Iterator[socket.socket]:
    """Yield a listening Unix socket; the end of the block closes it and removes its folder."""
    folder = Path(tempfile.mkdtemp(prefix="actionplan-"))
    try:
        with closing(socket.socket(socket.AF_UNIX)) as listener:
            listener.bind(str(folder / "metrics"))
            listener.listen()
            yield listener
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def serve_metrics(listener: socket.socket, registry: CollectorRegistry) -> None:
    """Start a daemon thread that sends the metrics of a registry to each connection.

    It ends when the listener is closed.
    """

    def loop() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                if listener.fileno() < 0:
                    return  # it was closed
                continue
            # The other side may have closed the connection after its time limit.
            with closing(connection), suppress(OSError):
                connection.settimeout(LIMIT_S)
                connection.sendall(generate_latest(registry))

    threading.Thread(target=loop, name="metrics", daemon=True).start()


def fetch_metrics(listener: socket.socket) -> bytes:
    """Return the metrics of the process that runs plans, in the text format of Prometheus.

    If it does not answer within :data:`LIMIT_S`, they are only ``actionplan_runs_up``, which is 0.
    """
    found = b""
    with closing(socket.socket(socket.AF_UNIX)) as connection, suppress(OSError):
        connection.settimeout(LIMIT_S)
        connection.connect(listener.getsockname())
        with connection.makefile("rb") as answered:
            found = answered.read()
    up = "1 if the process that runs plans answered in time, else 0."
    name = "actionplan_runs_up"
    head = f"# HELP {name} {up}\n# TYPE {name} gauge\n{name} {float(bool(found))}\n"
    return head.encode() + found


def describe_process(registry: CollectorRegistry) -> None:
    """Add what any program tells of itself: ``process_...`` and ``actionplan_build_info``."""
    ProcessCollector(registry=registry)
    built = Info("actionplan_build", "The version of ActionPlan and of Python.", registry=registry)
    built.info({"version": version("actionplan"), "python": platform.python_version()})


LOG = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"


@contextmanager
def offered(registry: CollectorRegistry, port: int) -> Iterator[WSGIServer | None]:
    """Serve the metrics of a registry and of this process at http://127.0.0.1:PORT/metrics.

    It does so while the block runs. Yields the server. If the port cannot be used, this is logged,
    and None is yielded.
    """
    describe_process(registry)
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
