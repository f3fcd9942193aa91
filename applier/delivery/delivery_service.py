# SPDX-License-Identifier: Apache-2.0
"""The process of ``actionplan-applier`` that delivers events; a thread for each receiver."""

from __future__ import annotations

import logging
import threading
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import uuid4

from applier.assembly import Assembly
from applier.delivery import configured_receivers
from applier.delivery.delivery import EventDelivery
from applier.errors import DamagedRecord, StoreError
from applier.service.opening import opened
from applier.service.process import ServiceProcess
from applier.store import Store

LOG = logging.getLogger(__name__)

#: Seconds between two deletions of old events.
CLEAN_S = 60.0


class DeliveryService(ServiceProcess):
    """The process that delivers events. It ends when what it delivered is on record."""

    name = "actionplan-events"

    def work(self, assembly: Assembly) -> None:
        """Deliver events until ``ending`` is set; wait for the store as long as it takes."""
        store = opened(lambda: assembly.store, self.ending)
        if store is not None:
            self._deliver(store)

    def _deliver(self, store: Store) -> None:
        holder = str(uuid4())
        threads = [
            threading.Thread(
                target=EventDelivery(
                    store,
                    receiver,
                    holder=holder,
                    give_up_s=self.conf.events.give_up_after_s,
                    clock=partial(datetime.now, UTC),
                    ending=self.ending,
                ).run,
                name=receiver.name,
            )
            for receiver in configured_receivers.receivers(self.conf)
        ]
        for thread in threads:
            thread.start()
        while not self.ending.wait(CLEAN_S):
            clean(store, timedelta(seconds=self.conf.events.keep_s))
        for thread in threads:
            thread.join()


def clean(store: Store, keep: timedelta) -> None:
    """Delete events older than ``keep`` that were delivered to, or given up for, every receiver.

    An error of the store is logged.
    """
    now = datetime.now(UTC)
    try:
        store.delete_events(before=now - keep, now=now)
    except (StoreError, DamagedRecord) as reason:
        LOG.warning("Old events could not be deleted: %s", reason)
