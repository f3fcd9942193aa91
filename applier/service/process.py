# SPDX-License-Identifier: Apache-2.0
"""The base class of the processes of ``actionplan-applier``: how one begins and ends."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import Any, cast

import cotyledon
from oslo_config import cfg

from applier.assembly import Assembly
from applier.service import signals


class ServiceProcess(cotyledon.Service):
    """A process that works until a signal stops the service; cotyledon restarts it if it dies."""

    def __init__(self, worker_id: int, conf: cfg.ConfigOpts) -> None:
        super().__init__(cast("Any", worker_id))
        self.conf = conf
        #: Set when the service is to end; the work has ended when ``_over`` is set.
        self.ending, self._over = threading.Event(), threading.Event()
        signals.relay(signals.not_interrupted)

    def work(self, assembly: Assembly) -> None:
        """Work until ``ending`` is set."""
        raise NotImplementedError

    def run(self) -> None:
        """Call :meth:`work` with an assembly for the configuration, which is closed at the end."""
        try:
            with closing(Assembly(self.conf)) as assembly:
                self.work(assembly)
        finally:
            self._over.set()

    def terminate(self) -> None:
        """Set ``ending``, and wait until the work has ended.

        cotyledon kills the process if that takes longer than ``grace_s`` seconds.
        """
        self.ending.set()
        self._over.wait()
