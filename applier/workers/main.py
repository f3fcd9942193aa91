# SPDX-License-Identifier: Apache-2.0
"""``actionplan-worker``: carries out actions of plans that appliers on other machines run."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from warnings import filterwarnings

try:
    # Celery's relatives import eventlet wherever it is installed; it takes long and warns.
    sys.modules.setdefault("eventlet", None)  # type: ignore[arg-type]
    import celery  # noqa: F401 - so that users get a sentence instead of a traceback
except ImportError:
    raise SystemExit("actionplan-worker: install actionplan[workers], which it needs") from None
from oslo_config import cfg
from oslo_log import log

from applier import configuration
from applier.assembly import Assembly
from applier.errors import ConfigurationError
from applier.run import liveness
from applier.run.user import user
from applier.service import log_file
from applier.service.opening import opened
from applier.storage.sql import SqlStore
from applier.store.worker_jobs import Worker
from applier.wording import one_line
from applier.workers import configured
from applier.workers.finders import Finders
from applier.workers.job_runner import Capacities, JobRunner, worker_name
from applier.workers.lease_keeper import LeaseKeeper
from planner.errors import PlannerError
from planner.visible_text import visible

LOG = logging.getLogger(__name__)
NAME = "actionplan-worker"
DESCRIPTION = """
Carries out actions of plans that appliers on other machines run, of the queues that [workers]
names, with the cloud, machines, plugins and secrets of its own configuration. SIGTERM and the first
Ctrl-C let running actions end, and no more begin; the second Ctrl-C ends it at once.
"""


def _worker(assembly: Assembly, origin: str) -> Worker:
    """Return what the record tells about this worker; ``origin`` is that of its permits."""
    conf, host = assembly.conf, liveness.this_host()
    return Worker(
        name=worker_name(host, os.getpid(), origin),
        host=host,
        pid=os.getpid(),
        user=user(),
        version=configured.release(),
        queues=list(conf.workers.queues),
        types=sorted(assembly.plugins),
        places=assembly.max_workers,
        cloud=assembly.cloud_name,
    )


def run(assembly: Assembly, store: SqlStore) -> int:
    """Carry out jobs until a signal ends the worker; return its exit code.

    ``store`` is one for the leases alone.
    """
    from celery.signals import worker_shutting_down

    from applier.workers.celery_app import celery_app, on_messages, refusal

    machines = assembly.machines()
    conf, worker = assembly.conf, _worker(assembly, machines.origin)
    lease_s = conf.workers.lease_s
    capacities = Capacities(
        name=worker.name,
        host=worker.host,
        cloud=worker.cloud or "",
        release=worker.version,
        environment=replace(assembly.environment, machines=machines),
    )
    runner = JobRunner(assembly.store, capacities, lease_s=lease_s)
    finders = Finders(runner.perform)
    app = celery_app(conf.workers.broker, worker.queues, conf.workers.broker_ca_file)
    if (why := refusal(app)) is not None:
        LOG.error("[workers] broker: it refuses the user or the virtual host: %s", one_line(why))
        return 1
    # Its hint, --uid, is an option of another program; containers often run as root.
    filterwarnings("ignore", "You're running the worker with superuser")
    with (
        closing(machines),
        closing(store),
        LeaseKeeper(
            store, runner, worker, lease_s=lease_s, drain=_drain, find=finders.find
        ) as keeper,
    ):
        on_messages(app, runner.perform, lambda keys: keeper.wake_for(keys))

        def drains(**_: object) -> None:
            keeper.drains()

        # Celery keeps a weak reference, which lasts as long as this function.
        worker_shutting_down.connect(drains)
        LOG.info("%s serves the queues %s", worker.name, ", ".join(worker.queues))
        service = app.Worker(
            hostname=f"{worker.name.replace(':', '.')}@actionplan",
            pool="threads",
            concurrency=worker.places,
            loglevel="WARNING",
            quiet=True,
            without_gossip=True,
            without_mingle=True,
            without_heartbeat=True,
        )
        service.start()
        finders.end()
        runner.end()
    return int(service.exitcode or 0)


def _drain() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def _prepare(conf: cfg.ConfigOpts) -> None:
    log.register_options(conf)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the worker until it ends; return its exit code, 1 for a refused configuration."""
    given = sys.argv[1:] if arguments is None else arguments
    warnings: list[str] = []
    try:
        conf = configuration.load(
            arguments=given, description=DESCRIPTION, prepare=_prepare, warn=warnings.append
        )
        configured.require(conf)
        with closing(Assembly(conf)) as assembly:
            assembly.check()
        log_file.set_up(conf, NAME)
    except (ConfigurationError, PlannerError) as reason:
        sys.stderr.write(visible(f"{NAME}: {reason}\n"))
        return 1
    for text in warnings:
        LOG.warning("%s", text)
    with closing(Assembly(conf)) as assembly:
        never = threading.Event()
        opened(lambda: assembly.store, never)
        # A store of its own, which does not wait: a lease is renewed in time, or the next time.
        url = configuration.connection(conf)
        store = opened(lambda: SqlStore(url, patience_s=0.0), never)
        return 0 if store is None else run(assembly, store)
