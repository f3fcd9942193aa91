"""``actionplan-applier``: the service that runs the plans which were started."""

from __future__ import annotations

import getpass
import logging
import os
import socket
import sys
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, cast
from uuid import uuid4

try:
    import cotyledon
except ImportError:
    # A program started by hand: a sentence helps, where it came from does not.
    raise SystemExit("actionplan-applier: install actionplan[service], which it needs") from None
from oslo_config import cfg
from oslo_log import log

from applier import conf as configuration
from applier.clouds.simulated import SimulatedCloud
from applier.contracts import Claimant
from applier.errors import ConfigurationError, StoreError
from applier.run.runner import Runner
from applier.service import signals
from applier.service.worker_loop import LONGEST_DELAY_S, WorkerLoop
from applier.storage.sql import SqlStore
from applier.store import Service, Store
from planner import registry
from planner.errors import PlannerError
from planner.registry import ActionTypes

LOG = logging.getLogger(__name__)

NAME = "actionplan-applier"
DESCRIPTION = """
Runs the plans that were left to it with "actionplan start", and takes up again what a crash cut
off, until it is told to end: SIGTERM and the first Ctrl-C let what runs end, and hand the plans
back; the second Ctrl-C ends it at once.
"""


class ApplierService(cotyledon.Service):
    """One process that runs plans; cotyledon starts it anew if it dies."""

    name = NAME

    def __init__(self, worker_id: int, conf: cfg.ConfigOpts) -> None:
        super().__init__(cast("Any", worker_id))
        self._conf = conf
        self._ending, self._over = threading.Event(), threading.Event()
        signals.relay(signals.not_interrupted)

    def run(self) -> None:
        """Run plans until told to end."""
        try:
            store = opened(self._conf, self._ending)
            if store is not None:
                LOG.info("Waiting for plans")
                worker_loop_of(self._conf, store, self._ending).run()
        finally:
            self._over.set()

    def terminate(self) -> None:
        """Hand the plans back once what runs has ended; cotyledon cuts it short after a while."""
        self._ending.set()
        self._over.wait()

    def reload(self) -> None:
        """Change nothing: what configuration holds is decided when the service starts."""
        LOG.warning("The configuration is read at the start only: restart to have it read again")


def opened(conf: cfg.ConfigOpts, ending: threading.Event) -> Store | None:
    """Open the record, as often as it takes; None if ``ending`` is set before."""
    delay_s = 0.0
    while not ending.is_set():
        try:
            url = configuration.connection(conf)
            return SqlStore(url, synchronous=conf.actionplan.synchronous)
        except StoreError as reason:
            if not delay_s:
                LOG.warning("The record cannot be opened, and is tried again: %s", reason)
            delay_s = min(2 * delay_s or 1.0, LONGEST_DELAY_S)
        ending.wait(delay_s)
    return None


def worker_loop_of(conf: cfg.ConfigOpts, store: Store, ending: threading.Event) -> WorkerLoop:
    """Make what a configuration describes; raises ConfigurationError, PlannerError."""
    types: Any = ActionTypes()
    policies = configuration.policies(conf, types)
    make_engine = registry.load(registry.ENGINES, conf.watcher_applier.workflow_engine)
    max_workers = int(conf["watcher_workflow_engines.taskflow"].max_workers)
    started = datetime.now(UTC)
    service = Service(
        uuid=str(uuid4()),
        host=socket.gethostname(),
        pid=os.getpid(),
        user=_user(),
        started_at=started,
        heartbeat_at=started,
    )

    def cloud() -> SimulatedCloud:
        speed = conf.actionplan.simulator_speed
        return SimulatedCloud(configuration.simulator_path(conf), speed=speed)

    def make_runner() -> Runner:
        return Runner(
            store,
            make_engine(max_workers=max_workers),
            types,
            cloud=cloud,
            machines=configuration.machines(conf),
            claimant=Claimant(host=service.host, pid=service.pid, user=service.user),
            policies=policies,
            on_failure=conf.watcher_applier.on_failure,
            heartbeat_interval_s=conf.watcher_applier.heartbeat_interval_s,
            pace=conf.actionplan.simulator_speed,
        )

    return WorkerLoop(
        store,
        make_runner,
        service,
        ending=ending,
        workers=conf.watcher_applier.workers,
        heartbeat_interval_s=conf.watcher_applier.heartbeat_interval_s,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Start the service; returns when it has ended, or the exit code of a refusal."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        conf = configuration.load(
            arguments=given, description=DESCRIPTION, prepare=log.register_options
        )
        configuration.policies(conf, ActionTypes())
        configuration.machines(conf)
        registry.load(registry.ENGINES, conf.watcher_applier.workflow_engine)
    except (ConfigurationError, PlannerError) as reason:
        sys.stderr.write(f"{NAME}: {reason}\n")
        return 1
    log.set_defaults(default_log_levels=[*log.get_default_log_levels(), "alembic=WARN"])
    conf.set_default("use_stderr", True)
    log.setup(conf, NAME)
    manager = cotyledon.ServiceManager(graceful_shutdown_timeout=conf.watcher_applier.grace_s)
    signals.relay(signals.Interrupted(signals.end_at_once))
    manager.add(ApplierService, workers=1, args=(conf,))
    manager.run()
    return 0


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
