# SPDX-License-Identifier: Apache-2.0
"""The process of ``actionplan-applier`` that delivers events; a thread for each receiver."""

from __future__ import annotations

import logging
import threading
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, cast
from uuid import uuid4

import cotyledon
from oslo_config import cfg

from applier.assembly import Assembly
from applier.delivery import configured
from applier.delivery.delivery import Delivery
from applier.errors import DamagedRecord, StoreError
from applier.service import signals
from applier.service.opening import opened
from applier.store import Store

LOG = logging.getLogger(__name__)

#: Seconds between two looks for events that nobody needs any more.
CLEAN_S = 60.0


class DeliveryService(cotyledon.Service):
    """A process that delivers events; cotyledon restarts it if it dies."""

    name = "actionplan-events"

    def __init__(self, worker_id: int, conf: cfg.ConfigOpts) -> None:
        super().__init__(cast("Any", worker_id))
        self._conf = conf
        self._ending, self._over = threading.Event(), threading.Event()
        signals.relay(signals.not_interrupted)

    def run(self) -> None:
        """Deliver events until the service is stopped by a signal."""
        try:
            with closing(Assembly(self._conf)) as assembly:
                store = opened(lambda: assembly.store, self._ending)
                if store is not None:
                    self._deliver(store)
        finally:
            self._over.set()

    def terminate(self) -> None:
        """Return when the events that are being delivered are on record."""
        self._ending.set()
        self._over.wait()

    def _deliver(self, store: Store) -> None:
        holder = str(uuid4())
        threads = [
            threading.Thread(
                target=Delivery(
                    store,
                    receiver,
                    holder=holder,
                    give_up_s=self._conf.events.give_up_after_s,
                    clock=partial(datetime.now, UTC),
                    ending=self._ending,
                ).run,
                name=receiver.name,
            )
            for receiver in configured.receivers(self._conf)
        ]
        for thread in threads:
            thread.start()
        while not self._ending.wait(CLEAN_S):
            clean(store, timedelta(seconds=self._conf.events.keep_s))
        for thread in threads:
            thread.join()


def clean(store: Store, keep: timedelta) -> None:
    """Delete events that every receiver has got and that are older than ``keep``."""
    now = datetime.now(UTC)
    try:
        store.delete_events(before=now - keep, now=now)
    except (StoreError, DamagedRecord) as reason:
        LOG.warning("Old events could not be deleted: %s", reason)
