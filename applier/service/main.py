# SPDX-License-Identifier: Apache-2.0
"""``actionplan-applier``: the service that runs queued plans."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import uuid4

from applier.extras import MissingExtra

try:
    # futurist and taskflow import eventlet wherever it is installed; it takes long and warns.
    sys.modules.setdefault("eventlet", None)  # type: ignore[arg-type]
    import cotyledon
except ImportError:
    raise MissingExtra("actionplan-applier", "service") from None
from oslo_config import cfg
from oslo_log import log

from applier import configuration
from applier.assembly import Assembly
from applier.backoff import opened
from applier.delivery import delivery_service
from applier.errors import ConfigurationError, shortage_in
from applier.run import rolling_back
from applier.service import log_file
from applier.service.plan_loop import PlanLoop
from applier.service.process import Interrupted, ServiceProcess, end_at_once, relay
from applier.store import Service
from planner.errors import PlannerError
from planner.safe_text import visible

LOG = logging.getLogger(__name__)

NAME = "actionplan-applier"
#: As many pipes as a process needs descriptors for pipes and the record.
PIPES = 8
DESCRIPTION = """
Runs the plans that "actionplan start" queued, and resumes plans that a crash interrupted. SIGTERM
and the first Ctrl-C let running actions end and hand the plans back to the queue; the second
Ctrl-C ends the service at once.
"""


class ApplierService(ServiceProcess):
    """The process that runs plans; when it ends, it hands unfinished plans back to the queue.

    ``listener`` is the socket at which the API requests the metrics of runs; None without an API.
    """

    name = NAME

    def __init__(
        self, worker_id: int, conf: cfg.ConfigOpts, listener: socket.socket | None
    ) -> None:
        super().__init__(worker_id, conf)
        self._listener = listener

    def work(self, assembly: Assembly) -> None:
        if opened(lambda: assembly.store, self.ending) is not None:
            LOG.info("Waiting for plans of the cloud %s", assembly.cloud().name)
            with measured(assembly, self._listener), assembly.traced():
                plan_loop_of(assembly, self.ending).run()

    def reload(self) -> None:
        """Log that the configuration is read only when the service starts."""
        LOG.warning("The configuration is read at the start only: restart to have it read again")


def measured(assembly: Assembly, listener: socket.socket | None) -> AbstractContextManager[object]:
    """Return a context in which metrics of runs are offered at metrics_port and to ``listener``.

    It does nothing if neither is set, or if a library is not installed.
    """
    port = assembly.conf.watcher_applier.metrics_port
    if port is None and listener is None:
        return nullcontext()
    try:
        from applier.monitoring import metrics_server, run_metrics
    except ImportError:
        LOG.error("%s", MissingExtra("[watcher_applier] metrics_port", "api"))
        return nullcontext()
    metrics = run_metrics.RunMetrics()
    assembly.measured = lambda store: run_metrics.measured(store, metrics)
    if listener is not None:
        metrics_server.serve_metrics(listener, metrics.registry)
    return nullcontext() if port is None else metrics_server.offered(metrics.registry, port)


def plan_loop_of(assembly: Assembly, ending: threading.Event) -> PlanLoop:
    """Return a new plan loop, with its service; raises ConfigurationError, PlannerError."""
    assembly.engine()
    claimant, started = assembly.claimant, datetime.now(UTC)
    service = Service(
        uuid=str(uuid4()),
        host=claimant.host,
        pid=claimant.pid,
        user=claimant.user,
        started_at=started,
        heartbeat_at=started,
        cloud=assembly.cloud().name,
    )
    options = assembly.conf.watcher_applier
    return PlanLoop(
        assembly.store,
        partial(assembly.runner, in_service=True),
        service,
        ending=ending,
        workers=options.workers,
        heartbeat_interval_s=options.heartbeat_interval_s,
        failed=partial(rolling_back.start_undoing, assembly, who=claimant.user),
    )


def _prepare(conf: cfg.ConfigOpts) -> None:
    log.register_options(conf)
    text = "also answer requests over HTTP, as actionplan-api does"
    conf.register_cli_opt(cfg.BoolOpt("with-api", default=False, help=text))


def _check_api(assembly: Assembly) -> None:
    """Raise ConfigurationError if the API is not installed, or cannot answer as configured."""
    try:
        from applier.api import main as api
    except ImportError:
        raise ConfigurationError(str(MissingExtra("--with-api", "api"))) from None
    api.check(assembly)


def _listening() -> AbstractContextManager[socket.socket]:
    """Return the context of the socket at which the API asks for the metrics of runs."""
    from applier.monitoring import metrics_server

    return metrics_server.listening()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the service until it ends; return its exit code, 1 for a refused configuration."""
    given = sys.argv[1:] if arguments is None else arguments
    warnings: list[str] = []
    try:
        conf = configuration.load(
            arguments=given,
            description=DESCRIPTION,
            prepare=_prepare,
            warn=warnings.append,
        )
        with closing(Assembly(conf)) as assembly:
            assembly.check()
            if conf.with_api:
                _check_api(assembly)
            delivers = bool(delivery_service.receivers(conf))
        _require_descriptors()
        log_file.set_up(conf, NAME)
    except (ConfigurationError, PlannerError) as reason:
        sys.stderr.write(visible(f"{NAME}: {reason}\n"))
        return 1
    for text in warnings:
        LOG.warning("%s", text)
    with _listening() if conf.with_api else nullcontext() as listener:
        _serve(conf, listener, delivers=delivers)
    return 0


def _require_descriptors() -> None:
    """Raise ConfigurationError if a process of the service could open no files and pipes.

    It would be started again and again.
    """
    with ExitStack() as held:
        try:
            for _ in range(PIPES):
                for end in os.pipe():
                    held.callback(os.close, end)
        except OSError as reason:
            raise ConfigurationError(
                f"it cannot start its processes: {reason.strerror}"
            ) from reason


def _end_without_processes(
    main: int, otherwise: Callable[[threading.ExceptHookArgs], Any], died: threading.ExceptHookArgs
) -> None:
    """End the service with exit code 1 if the thread that starts its processes has died.

    ``main`` is the process of that thread. Otherwise it would go on without doing anything.
    """
    if os.getpid() != main or died.exc_value is None or shortage_in(died.exc_value) is None:
        otherwise(died)
        return
    LOG.critical("A process of the service cannot be started: %s", died.exc_value)
    end_at_once()


def _serve(conf: cfg.ConfigOpts, listener: socket.socket | None, *, delivers: bool) -> None:
    """Run all processes of the service until a signal ends them."""
    manager = cotyledon.ServiceManager(graceful_shutdown_timeout=conf.watcher_applier.grace_s)
    threading.excepthook = partial(_end_without_processes, os.getpid(), threading.excepthook)
    relay(Interrupted(end_at_once))
    manager.add(ApplierService, workers=1, args=(conf, listener))
    if delivers:
        manager.add(delivery_service.DeliveryService, workers=1, args=(conf,))
    if conf.with_api:
        from applier.api import main as api

        manager.add(api.ApiService, workers=1, args=(conf, listener))
    try:
        manager.run()
    finally:
        # cotyledon sets an alarm for the grace period and leaves it running. While Python ends,
        # nothing handles it, and it would kill this process.
        signal.alarm(0)
