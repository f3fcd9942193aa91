# SPDX-License-Identifier: Apache-2.0
"""The API as a second process of ``actionplan-applier --with-api``."""

from __future__ import annotations

import logging
import threading
from contextlib import closing
from typing import Any, cast

import cotyledon
from oslo_config import cfg

from applier.api import routing
from applier.api.server import Server
from applier.assembly import Assembly
from applier.backoff import delays_s
from applier.errors import ConfigurationError
from applier.service import signals

LOG = logging.getLogger(__name__)

NAME = "actionplan-api"
#: The maximum of the seconds between two attempts to listen; the delays double up to it.
LONGEST_DELAY_S = 30.0


class ApiService(cotyledon.Service):
    """A process that answers requests; cotyledon restarts it if it dies."""

    name = NAME

    def __init__(self, worker_id: int, conf: cfg.ConfigOpts) -> None:
        super().__init__(cast("Any", worker_id))
        self._conf = conf
        self._ending, self._over = threading.Event(), threading.Event()
        self._server: Server | None = None
        signals.relay(signals.not_interrupted)

    def run(self) -> None:
        """Answer requests until the service is stopped by a signal."""
        try:
            with closing(Assembly(self._conf)) as assembly:
                server = Server(self._conf, routing.make(assembly))
                if opened(server, self._ending):
                    self._server = server
                    LOG.info("Listening on %s", server.url)
                    server.serve()
        finally:
            self._over.set()

    def terminate(self) -> None:
        """Return when the requests that have arrived are answered."""
        self._ending.set()
        if self._server is not None:
            self._server.end()
        self._over.wait()


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
