# SPDX-License-Identifier: Apache-2.0
"""Makes the receivers that the section ``[events]`` names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from oslo_config import cfg

from applier.delivery.event_file import EventFile
from applier.delivery.receivers import Receiver
from applier.delivery.webhook import Webhook
from applier.errors import ConfigurationError
from applier.extras import MissingExtra
from applier.run.this_process import this_host
from planner.configuration_files import place_of


def receivers(conf: cfg.ConfigOpts) -> list[Receiver]:
    """Return the receivers of a configuration; raises ConfigurationError."""
    unknown = sorted(conf.events.secret_files.keys() - conf.events.webhooks.keys())
    if unknown:
        place = place_of(conf, "events", "secret_files")
        raise ConfigurationError(f"{place}: {unknown[0]}: no webhook has this name")
    return list(_receivers(conf))


def _receivers(conf: cfg.ConfigOpts) -> Iterator[Receiver]:
    for name, address in conf.events.webhooks.items():
        yield Webhook(name, address, _secret(conf, name))
    if conf.events.file:
        yield EventFile(conf.events.file, this_host())
    if conf.events.notifications:
        yield _notifications(conf)


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
