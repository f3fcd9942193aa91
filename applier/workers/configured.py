# SPDX-License-Identifier: Apache-2.0
"""Makes what a configuration says of workers."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from oslo_config import cfg

from applier import configuration
from applier.engines.taskflow_engine import CELERY
from applier.errors import ConfigurationError
from applier.run.worker_jobs import LocalRuns
from applier.scheduling.queue_limits import DEFAULT_QUEUE
from applier.store.worker_jobs import WorkerJobStore

#: Seconds after which a job that nobody took is sent again.
RESEND_S = 5.0

#: What addresses of brokers begin with.
BROKERS = ("amqp", "amqps", "redis", "rediss")

if TYPE_CHECKING:
    from applier.workers.runs import RemoteRuns


def release() -> str:
    """Return the release of ActionPlan."""
    return version("actionplan")


def is_wanted(engine_options: Mapping[str, Any]) -> bool:
    """Return whether the options of the engine say that actions run at workers."""
    return engine_options.get("workers") == CELERY


def check(conf: cfg.ConfigOpts, engine_options: Mapping[str, Any]) -> None:
    """Raise ConfigurationError if actions are to run at workers, and cannot."""
    if is_wanted(engine_options):
        require(conf)


def require(conf: cfg.ConfigOpts) -> None:
    """Raise ConfigurationError if no actions can be run at workers, or no jobs as a worker."""
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
    """Raise ConfigurationError if this is no address of a broker; it is secret."""
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


def runs_at(
    conf: cfg.ConfigOpts,
    engine_options: Mapping[str, Any],
    store: WorkerJobStore,
    cloud: Callable[[], str],
) -> LocalRuns | RemoteRuns:
    """Return where the actions of runs are executed; ``cloud`` returns the name of the cloud.

    Raises ConfigurationError, and what ``cloud`` raises.
    """
    if not is_wanted(engine_options):
        return LocalRuns(store)
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
