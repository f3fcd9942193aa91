# SPDX-License-Identifier: Apache-2.0
"""Checks the section ``[workers]`` of a configuration, and makes the RemoteRuns from it."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.metadata import version
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from oslo_config import cfg

from applier import configuration
from applier.errors import ConfigurationError
from applier.scheduling.queue_limits import DEFAULT_QUEUE
from applier.store.worker_jobs import WorkerJobStore

#: Seconds after which a job that no worker took is sent again.
RESEND_S = 5.0

#: The accepted schemes of the URLs of brokers.
BROKERS = ("amqp", "amqps", "redis", "rediss")

if TYPE_CHECKING:
    from applier.workers.runs import RemoteRuns


def release() -> str:
    """Return the release of ActionPlan."""
    return version("actionplan")


def require(conf: cfg.ConfigOpts) -> None:
    """Raise ConfigurationError if a configuration does not allow actions to run at workers.

    It applies to the applier, which offers the jobs, and to a worker. Connects to nothing.
    """
    if configuration.connection(conf).startswith("sqlite"):
        raise ConfigurationError(
            "[actionplan] connection: workers need a record on a server, postgresql:// or "
            "mysql://; a SQLite file has one writer at a time, and is on one machine"
        )
    _require_address(conf.workers.broker)
    ca_file = conf.workers.broker_ca_file
    if ca_file and not os.access(ca_file, os.R_OK):
        raise ConfigurationError(f"[workers] broker_ca_file: {ca_file} cannot be read")
    if not conf.workers.queues or not all(conf.workers.queues):
        raise ConfigurationError("[workers] queues: name at least one queue")
    _celery()


def _require_address(broker: str | None) -> None:
    """Raise ConfigurationError if this is not the URL of a broker.

    The error does not contain the URL, which may contain a password.
    """
    try:
        parts = urlsplit(broker or "")
        if parts.scheme in BROKERS and parts.hostname and parts.port != 0:
            return
    except ValueError:  # of a port
        pass
    raise ConfigurationError(
        "[workers] broker: name the message broker, as amqp://USER:PASSWORD@HOST// or "
        "redis://HOST, or amqps:// and rediss:// for TLS"
    )


def _celery() -> object:
    try:
        from applier.workers import celery_app
    except ImportError:
        text = "[workers]: install actionplan[workers], which it needs"
        raise ConfigurationError(text) from None
    return celery_app


def remote_runs(
    conf: cfg.ConfigOpts, store: WorkerJobStore, cloud: Callable[[], str]
) -> RemoteRuns:
    """Return the RemoteRuns of a configuration; ``cloud`` returns the name of the cloud.

    Raises ConfigurationError, and any error that ``cloud`` raises.
    """
    require(conf)
    from applier.workers.celery_app import CeleryDelivery, celery_app
    from applier.workers.remote import RemoteSettings
    from applier.workers.runs import RemoteRuns

    settings = RemoteSettings(
        lease_s=conf.workers.lease_s,
        resend_s=RESEND_S,
        route=tuple(conf.workers.route),
        cloud=cloud(),
        release=release(),
    )
    app = celery_app(conf.workers.broker, [DEFAULT_QUEUE], conf.workers.broker_ca_file)
    return RemoteRuns(store, CeleryDelivery(app), settings)
