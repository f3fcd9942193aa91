# SPDX-License-Identifier: Apache-2.0
"""Checks the section ``[workers]`` of a configuration, and makes the RemoteRuns from it."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.metadata import version
from typing import TYPE_CHECKING

from oslo_config import cfg

from applier import configuration
from applier.configuration import option_types
from applier.errors import ConfigurationError
from applier.extras import MissingExtra
from applier.scheduling.concurrency import DEFAULT_QUEUE
from planner.making.configuration_files import place_of

#: Seconds after which a job that no worker took is sent again.
RESEND_S = 5.0

if TYPE_CHECKING:
    from applier.storage.sql_store import SqlStore
    from applier.workers.remote_workers import RemoteRuns


def release() -> str:
    """Return the release of ActionPlan."""
    return version("actionplan")


def require(conf: cfg.ConfigOpts) -> None:
    """Raise ConfigurationError if a configuration does not allow actions to run at workers.

    It applies to the applier, which offers the jobs, and to a worker. Connects to nothing.
    """
    if configuration.connection(conf).startswith("sqlite"):
        place = place_of(conf, "actionplan", "connection")
        raise ConfigurationError(
            f"{place}: workers need a record on a server, postgresql:// or mysql://; "
            "a SQLite file has one writer at a time, and is on one machine"
        )
    try:
        option_types.broker(conf.workers.broker or "")
    except ValueError as reason:
        raise ConfigurationError(f"[workers] broker: {reason}") from None
    ca_file = conf.workers.broker_ca_file
    if ca_file and not os.access(ca_file, os.R_OK):
        raise ConfigurationError(
            f"{place_of(conf, 'workers', 'broker_ca_file')}: {ca_file} cannot be read"
        )
    if not conf.workers.queues or not all(conf.workers.queues):
        place = place_of(conf, "workers", "queues")
        raise ConfigurationError(f"{place}: name at least one queue")
    try:
        from applier.workers import celery_app  # noqa: F401
    except ImportError:
        raise ConfigurationError(str(MissingExtra("[workers]", "workers"))) from None


def remote_runs(conf: cfg.ConfigOpts, store: SqlStore, cloud: Callable[[], str]) -> RemoteRuns:
    """Return the RemoteRuns of a configuration; ``cloud`` returns the name of the cloud.

    Raises ConfigurationError, and any error that ``cloud`` raises.
    """
    require(conf)
    from applier.workers.celery_app import CeleryDelivery, celery_app
    from applier.workers.remote_workers import RemoteRuns

    app = celery_app(conf.workers.broker, [DEFAULT_QUEUE], conf.workers.broker_ca_file)
    return RemoteRuns(
        store,
        CeleryDelivery(app),
        lease_s=conf.workers.lease_s,
        resend_s=RESEND_S,
        route=tuple(conf.workers.route),
        cloud=cloud(),
        release=release(),
    )
