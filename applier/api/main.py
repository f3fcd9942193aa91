# SPDX-License-Identifier: Apache-2.0
"""The process that serves the HTTP API: ``actionplan-api``, or one of ``actionplan-applier``."""

from __future__ import annotations

import gc
import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from typing import Any

from applier.extras import MissingExtra

try:
    # futurist and taskflow import eventlet wherever it is installed; it takes long and warns.
    sys.modules.setdefault("eventlet", None)  # type: ignore[arg-type]
    import falcon  # noqa: F401
    from cheroot import wsgi  # noqa: F401
    from oslo_policy import policy  # noqa: F401
    from prometheus_client import registry  # noqa: F401
except ImportError:
    raise MissingExtra("actionplan-api", "api") from None
from oslo_config import cfg
from oslo_log import log

from applier import configuration
from applier.api import routing
from applier.api.server import Server
from applier.assembly import Assembly
from applier.backoff import delays_s
from applier.errors import ConfigurationError, StoreError
from applier.monitoring import metrics_server
from applier.service import log_file
from applier.service.process import ServiceProcess
from planner.errors import PlannerError
from planner.safe_text import visible

LOG = logging.getLogger(__name__)

NAME = "actionplan-api"
#: The number of new objects after which the garbage collector runs; Python's default is 700.
_COLLECT_AFTER = 50_000
DESCRIPTION = """
Answers requests about plans over HTTP: under /v1 as OpenStack Watcher does, under /v2 with what the
command line can do. It runs no plan: actionplan-applier does. SIGTERM and Ctrl-C end it once the
requests that have arrived are answered.
"""


def configured(arguments: Sequence[str], warn: Callable[[str], None]) -> cfg.ConfigOpts:
    """Read and check the configuration; raises ConfigurationError."""
    return configuration.load(
        arguments=arguments, description=DESCRIPTION, prepare=log.register_options, warn=warn
    )


def configured_application() -> Callable[..., Any]:
    """Return the WSGI application for a server such as gunicorn; raises ConfigurationError."""
    conf = configured((), LOG.warning)
    log_file.set_up(conf, NAME)
    return routing.make(Assembly(conf))


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT; return 0, or 1 after an error, which is written to stderr."""
    given = sys.argv[1:] if arguments is None else arguments
    warnings: list[str] = []
    try:
        conf = configured(given, warnings.append)
        log_file.set_up(conf, NAME)
        for text in warnings:
            LOG.warning("%s", text)
        with closing(Assembly(conf)) as assembly:
            serve(assembly)
    except (ConfigurationError, PlannerError, StoreError) as reason:
        sys.stderr.write(visible(f"{NAME}: {reason}\n"))
        return 1
    return 0


def serve(assembly: Assembly) -> None:
    """Serve until SIGTERM or SIGINT; raises ConfigurationError."""
    server = Server(assembly.conf, routing.make(assembly))
    server.open()

    def end(_number: int, _frame: Any) -> None:
        # The server ends in a thread of its own: a handler of signals must not wait.
        threading.Thread(target=server.end, name="end").start()

    # All objects made so far live until the process ends: the garbage collector need not scan them.
    # It runs seldom, because a plan of 1,000 actions has tens of thousands of objects, no cycles.
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    LOG.info("Listening on %s, authentication: %s", server.url, assembly.conf.api.auth_strategy)
    server.serve()


#: The maximum of the seconds between two attempts to listen; the delays double up to it.
LONGEST_DELAY_S = 30.0


class ApiService(ServiceProcess):
    """The process that serves the HTTP API beside the process that runs plans.

    It connects to the socket ``listener`` to read the metrics of that process.
    """

    name = NAME

    def __init__(self, worker_id: int, conf: cfg.ConfigOpts, listener: socket.socket) -> None:
        super().__init__(worker_id, conf)
        self._of_runs = partial(metrics_server.fetch_metrics, listener)
        self._server: Server | None = None

    def work(self, assembly: Assembly) -> None:
        """Listen, with retries, and answer requests until :meth:`terminate`."""
        server = Server(self.conf, routing.make(assembly, of_runs=self._of_runs))
        if opened(server, self.ending):
            self._server = server
            LOG.info("Listening on %s", server.url)
            server.serve()

    def terminate(self) -> None:
        """Stop the server, and return when the requests that have arrived are answered."""
        self.ending.set()
        if self._server is not None:
            self._server.end()
        super().terminate()


def opened(server: Server, ending: threading.Event) -> bool:
    """Listen, with retries until it works; return False if ``ending`` is set before that."""
    for delay_s in delays_s(1.0, LONGEST_DELAY_S):
        if ending.is_set():
            return False
        try:
            server.open()
        except ConfigurationError as reason:
            LOG.error("The API does not listen; retrying: %s", reason)
            ending.wait(delay_s)
        else:
            return True
    raise AssertionError  # the sequence of delays is infinite


def check(assembly: Assembly) -> None:
    """Raise ConfigurationError if the options of the API are not valid."""
    Server(assembly.conf, routing.make(assembly))
