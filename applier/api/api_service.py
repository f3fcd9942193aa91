# SPDX-License-Identifier: Apache-2.0
"""The API as a second process of ``actionplan-applier --with-api``."""

from __future__ import annotations

import logging
import socket
import threading
from functools import partial

from oslo_config import cfg

from applier.api import routing
from applier.api.server import Server
from applier.assembly import Assembly
from applier.backoff import delays_s
from applier.errors import ConfigurationError
from applier.monitoring import serving
from applier.service.process import ServiceProcess

LOG = logging.getLogger(__name__)

NAME = "actionplan-api"
#: The maximum of the seconds between two attempts to listen; the delays double up to it.
LONGEST_DELAY_S = 30.0


class ApiService(ServiceProcess):
    """The process that serves the HTTP API beside the process that runs plans.

    It connects to the socket ``listener`` to read the metrics of that process.
    """

    name = NAME

    def __init__(self, worker_id: int, conf: cfg.ConfigOpts, listener: socket.socket) -> None:
        super().__init__(worker_id, conf)
        self._of_runs = partial(serving.fetch_metrics, listener)
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
