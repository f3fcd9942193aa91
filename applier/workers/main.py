# SPDX-License-Identifier: Apache-2.0
"""``actionplan-worker``: carries out actions of plans that appliers on other machines run."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any
from warnings import filterwarnings

from applier.extras import MissingExtra
from applier.store.worker_jobs import AttemptKey

try:
    # Libraries of Celery import eventlet where it is installed; that is slow, and logs a warning.
    sys.modules.setdefault("eventlet", None)  # type: ignore[arg-type]
    import celery  # noqa: F401 - so that users get a sentence instead of a traceback
except ImportError:
    raise MissingExtra("actionplan-worker", "workers") from None
from oslo_log import log

from applier import configuration
from applier.assembly import Assembly
from applier.backoff import opened
from applier.engines.attempts_in_progress import within_room
from applier.errors import ConfigurationError
from applier.run.this_process import this_host, user
from applier.service import log_file
from applier.storage.sql_store import SqlStore
from applier.store.worker_jobs import Worker
from applier.wording import one_line
from applier.workers import workers_section
from applier.workers.job_runner import JobRunner, worker_name
from applier.workers.lease_keeper import LeaseKeeper
from planner.errors import PlannerError
from planner.safe_text import visible

LOG = logging.getLogger(__name__)
NAME = "actionplan-worker"
DESCRIPTION = """
Carries out actions of plans that appliers on other machines run, of the queues that [workers]
names, with the cloud, machines, plugins and secrets of its own configuration. SIGTERM and the first
Ctrl-C let running actions end, and no more begin; the second Ctrl-C ends it at once.
"""


def _worker(assembly: Assembly, origin: str) -> Worker:
    """Return the registration of this worker.

    ``origin`` is that of its permits (see :func:`applier.machines.attempt_jobs.origin`).
    """
    conf, host = assembly.conf, this_host()
    return Worker(
        name=worker_name(host, os.getpid(), origin),
        host=host,
        pid=os.getpid(),
        user=user(),
        version=workers_section.release(),
        queues=list(conf.workers.queues),
        types=sorted(assembly.plugins),
        places=within_room(assembly.max_workers),
        cloud=assembly.cloud_name,
    )


def run(assembly: Assembly, store: SqlStore) -> int:
    """Carry out jobs until a signal ends the worker; return its exit code.

    It is 1 if the broker rejects the user. ``store`` is used only for leases and registration.
    """
    from celery.signals import setup_logging, worker_shutting_down

    from applier.workers.celery_app import celery_app, leave_log, on_messages, refusal

    machines = assembly.machines()
    conf, worker = assembly.conf, _worker(assembly, machines.origin)
    lease_s = conf.workers.lease_s
    environment = replace(assembly.environment, machines=machines)
    runner = JobRunner(assembly.store, worker, environment, lease_s=lease_s)
    finders = LostJobThreads(runner.perform)
    app = celery_app(conf.workers.broker, worker.queues, conf.workers.broker_ca_file)
    if (why := refusal(app)) is not None:
        LOG.error("[workers] broker: it refuses the user or the virtual host: %s", one_line(why))
        return 1
    # Its hint, --uid, is an option of another program; containers often run as root.
    filterwarnings("ignore", "You're running the worker with superuser")
    keeper = LeaseKeeper(store, runner, worker, lease_s=lease_s, drain=_drain, find=finders.find)
    on_messages(app, runner.perform, keeper.wake_for)

    def drains(**_: object) -> None:
        keeper.request_drain()

    # Celery keeps only a weak reference to it; this function keeps it alive until the end.
    worker_shutting_down.connect(drains)
    # A receiver of this signal keeps Celery from changing the handlers and the level of the log.
    setup_logging.connect(leave_log, weak=False)
    service = _service(app, worker)
    with closing(machines), closing(store), keeper:
        LOG.info("%s serves the queues %s", worker.name, ", ".join(worker.queues))
        service.start()
        finders.end()
        runner.end()
    return int(service.exitcode or 0)


def _service(app: Any, worker: Worker) -> Any:
    """Return the worker of Celery; must be called before any thread that uses a database starts.

    Making it sets environment variables. The process may crash if another thread reads one at that
    moment, as the libraries of databases do: getenv(3) is not safe while setenv(3) runs.
    """
    return app.Worker(
        hostname=f"{worker.name.replace(':', '.')}@actionplan",
        pool="threads",
        concurrency=worker.places,
        quiet=True,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    )


def _drain() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the worker until it ends; return its exit code, 1 for a refused configuration."""
    given = sys.argv[1:] if arguments is None else arguments
    warnings: list[str] = []
    try:
        conf = configuration.load(
            arguments=given,
            description=DESCRIPTION,
            prepare=log.register_options,
            warn=warnings.append,
        )
        workers_section.require(conf)
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
        # A second store, without retries: a renewal that fails is repeated at the next look.
        url = configuration.connection(conf)
        store = opened(lambda: SqlStore(url, patience_s=0.0), never)
        return 0 if store is None else run(assembly, store)


class LostJobThreads:
    """Carries out lost jobs, each in a thread that does not count against the worker's places.

    The command of a lost job may still run on this machine, where it takes up a place already.
    """

    def __init__(self, perform: Callable[[AttemptKey], None]) -> None:
        self._perform = perform
        self._threads: dict[AttemptKey, threading.Thread] = {}
        self._lock = threading.Lock()
        self._is_over = False

    def find(self, key: AttemptKey) -> None:
        """Start a thread that performs a job, unless one for it runs or :meth:`end` was called."""
        with self._lock:
            self._threads = {k: t for k, t in self._threads.items() if t.is_alive()}
            if self._is_over or key in self._threads:
                return
            name = f"job-finder-{key.action}"
            thread = threading.Thread(target=self._perform, args=(key,), name=name, daemon=True)
            try:
                thread.start()
            except RuntimeError as reason:  # the next renewal tries again
                LOG.warning("The lost job of action %s is not looked for: %s", key.action, reason)
            else:
                self._threads[key] = thread

    def end(self) -> None:
        """Start no more threads, and wait without a time limit until those that run have ended."""
        with self._lock:
            self._is_over = True
        for thread in self._threads.values():
            thread.join()
