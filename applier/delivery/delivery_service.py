# SPDX-License-Identifier: Apache-2.0
"""The process of ``actionplan-applier`` that delivers events; a thread for each receiver."""

from __future__ import annotations

import logging
import threading
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from oslo_config import cfg

from applier.assembly import Assembly
from applier.backoff import opened
from applier.delivery.delivery import EventDelivery
from applier.delivery.receivers import EventFile, Receiver
from applier.delivery.webhook import Webhook
from applier.errors import ConfigurationError, DamagedRecord, StoreError
from applier.extras import MissingExtra
from applier.run.this_process import this_host
from applier.service.process import ServiceProcess
from planner.making.configuration_files import place_of

if TYPE_CHECKING:
    from applier.storage.sql_store import SqlStore


LOG = logging.getLogger(__name__)

#: Seconds between two deletions of old events.
CLEAN_S = 60.0


class DeliveryService(ServiceProcess):
    """The process that delivers events. It ends when what it delivered is on record."""

    name = "actionplan-events"

    def work(self, assembly: Assembly) -> None:
        store = opened(lambda: assembly.store, self.ending)
        if store is not None:
            self._deliver(store)

    def _deliver(self, store: SqlStore) -> None:
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
            for receiver in receivers(self.conf)
        ]
        for thread in threads:
            thread.start()
        while not self.ending.wait(CLEAN_S):
            clean(store, timedelta(seconds=self.conf.events.keep_s))
        for thread in threads:
            thread.join()


def clean(store: SqlStore, keep: timedelta) -> None:
    """Delete events older than ``keep`` that were delivered to, or given up for, every receiver.

    An error of the store is logged.
    """
    now = datetime.now(UTC)
    try:
        store.delete_events(before=now - keep, now=now)
    except (StoreError, DamagedRecord) as reason:
        LOG.warning("Old events could not be deleted: %s", reason)


def receivers(conf: cfg.ConfigOpts) -> list[Receiver]:
    """Return the receivers of a configuration; raises ConfigurationError."""
    unknown = sorted(conf.events.secret_files.keys() - conf.events.webhooks.keys())
    if unknown:
        place = place_of(conf, "events", "secret_files")
        raise ConfigurationError(f"{place}: {unknown[0]}: no webhook has this name")
    found: list[Receiver] = [
        Webhook(name, address, _secret(conf, name))
        for name, address in conf.events.webhooks.items()
    ]
    if conf.events.file:
        found.append(EventFile(conf.events.file, this_host()))
    if conf.events.notifications:
        found.append(_notifications(conf))
    return found


def _notifications(conf: cfg.ConfigOpts) -> Receiver:
    try:
        from applier.delivery.messaging import Notifications
    except ImportError:
        missing = MissingExtra("[events] notifications", "notifications")
        raise ConfigurationError(str(missing)) from None
    return Notifications(conf)


def _secret(conf: cfg.ConfigOpts, name: str) -> str | None:
    path = conf.events.secret_files.get(name)
    if path is None:
        return None
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as reason:
        why = reason.strerror if isinstance(reason, OSError) else "it is not UTF-8"
        place = place_of(conf, "events", "secret_files")
        raise ConfigurationError(f"{place}: {name}: {path}: {why}") from reason
