# SPDX-License-Identifier: Apache-2.0
"""Creates the parts that a configuration describes: store, cloud, plugins, engine, runner.

Each part is imported when it is first used. Most verbs of the command line need only some of the
parts, and importing all of them takes longer than running such a verb.
"""

from __future__ import annotations

import getpass
import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from oslo_config import cfg

    from applier.cloud_contracts import Cloud
    from applier.clouds.simulated import SimulatedCloud
    from applier.configuration.plugin_options import ActionOptions
    from applier.contracts import ActionPlugin, Claimant, Listener
    from applier.engines import Engine
    from applier.machines import OpenMachines
    from applier.monitoring.run_metrics import RunMetrics
    from applier.run.runner import Runner
    from applier.scheduling.type_policy import TypePolicy
    from applier.store import Store
    from planner.model import ActionPlan
    from planner.registry import ActionTypes

#: The log of all that is monitored.
MONITORING_LOG = logging.getLogger("applier.monitoring")

Answer = TypeVar("Answer")


class Assembly:
    """The parts that a configuration describes; each is created when it is first used."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self.conf = conf
        self._cloud: Cloud | None = None
        self._making_cloud = threading.Lock()
        #: If set, the runs of this process are measured.
        self.run_metrics: RunMetrics | None = None
        #: If set, makes one more listener for each run of this process.
        self._listener_of: Callable[[ActionPlan], AbstractContextManager[Listener]] | None = None

    def close(self) -> None:
        """Close the cloud, if it was used."""
        with self._making_cloud:
            if self._cloud is not None:
                self._cloud.close()
                self._cloud = None

    @cached_property
    def store(self) -> Store:
        """The store; raises StoreError, after which it may be tried again."""
        from applier import configuration
        from applier.storage.sql import SqlStore

        url = configuration.connection(self.conf)
        return SqlStore(url, synchronous=self.conf.actionplan.synchronous)

    @cached_property
    def action_types(self) -> ActionTypes:
        """The installed action plugins by name, each loaded when it is first used."""
        from planner.registry import ActionTypes

        return ActionTypes()

    @property
    def plugins(self) -> Mapping[str, type[ActionPlugin]]:
        """The installed action plugins by name, with the interface that the applier uses."""
        return cast("Mapping[str, type[ActionPlugin]]", self.action_types)

    @cached_property
    def policies(self) -> Mapping[str, TypePolicy]:
        """The policy of each installed action type; raises ConfigurationError."""
        from applier.configuration import plugin_options

        return plugin_options.policies(self.conf, self.action_types)

    @cached_property
    def options(self) -> ActionOptions:
        """The values of the options that action types declare; a section is read on first use."""
        from applier.configuration.plugin_options import ActionOptions

        return ActionOptions(self.conf, self.plugins)

    def cloud(self) -> Cloud:
        """Return the configured cloud: one object, for any number of threads.

        It is created at the first call. Raises ConfigurationError, PlannerError.
        """
        with self._making_cloud:
            if self._cloud is None:
                self._cloud = self._new_cloud()
            return self._cloud

    def ask_cloud(self, call: Callable[[Cloud], Answer]) -> Answer:
        """Return the answer of the cloud; raises ActionFailed, also if it cannot be reached."""
        from applier.errors import ActionFailed

        try:
            return call(self.cloud())
        except ConnectionError as reason:
            raise ActionFailed(str(reason)) from reason

    def facts(self) -> Mapping[str, Any]:
        """Read the whole cloud; raises what :meth:`ask_cloud` raises."""
        return self.ask_cloud(lambda cloud: cloud.facts())

    @property
    def cloud_name(self) -> str:
        """The name of the configured cloud; the simulated one is not created for it.

        Raises the errors of :meth:`cloud`.
        """
        from applier.plan_cloud import SIMULATED

        is_simulated = self.conf.actionplan.cloud == SIMULATED
        return SIMULATED if is_simulated else self.cloud().name

    def _new_cloud(self) -> Cloud:
        from applier.configuration import plugin_options
        from applier.plan_cloud import SIMULATED
        from planner import registry
        from planner.errors import BrokenPlugin

        name = self.conf.actionplan.cloud
        if name == SIMULATED:
            return self.simulated_cloud()
        make = registry.load(registry.CLOUDS, name)
        cloud: Cloud = make(**plugin_options.cloud_options(self.conf, name, make))
        if cloud.name in ("", SIMULATED):
            raise BrokenPlugin("cloud", name, f"it calls itself {cloud.name!r}")
        return cloud

    def simulated_cloud(self) -> SimulatedCloud:
        """Return the simulated cloud, whichever is configured."""
        from applier import configuration
        from applier.clouds.simulated import SimulatedCloud

        return SimulatedCloud(
            configuration.simulator_path(self.conf), speed=self.conf.actionplan.simulator_speed
        )

    def machines(self) -> OpenMachines:
        """Return the machines for the tasks of one run, without connecting to any.

        The caller has to close them. Raises ConfigurationError.
        """
        from applier import configuration
        from applier.machines import OpenMachines
        from applier.machines.settings import SimulationSettings, SshSettings

        ssh, simulated = self.conf.ssh, self.conf.simulated_nodes
        return OpenMachines(
            SshSettings(
                known_hosts=ssh.known_hosts,
                keys=tuple(ssh.key_files),
                connect_timeout_s=ssh.connect_timeout_s,
                reconnect_timeout_s=ssh.reconnect_timeout_s,
            ),
            SimulationSettings(
                speed=self.conf.actionplan.simulator_speed,
                failures=tuple(simulated.failures),
                seed=simulated.seed,
                log=simulated.log,
            ),
            configuration.jobs_path(self.conf),
        )

    @property
    def max_workers(self) -> int:
        """The configured number of actions that may run at once; raises as :meth:`engine`."""
        return int(self._engine[1]["max_workers"])

    def check(self) -> None:
        """Check what :func:`applier.configuration.load` leaves unchecked: machines, engine, cloud.

        No connection is made. Raises ConfigurationError, PlannerError.
        """
        self.machines()
        self.engine()
        self.cloud()

    def engine(self, max_workers: int | None = None) -> Engine:
        """Create the configured workflow engine, with the options of its section.

        Raises ConfigurationError, UnknownPlugin, BrokenPlugin.
        """
        make, options = self._engine
        engine: Engine = make(**{**options, "max_workers": max_workers or self.max_workers})
        return engine

    @cached_property
    def _engine(self) -> tuple[type[Engine], Mapping[str, Any]]:
        """The class of the configured engine, and its options."""
        from applier.configuration import plugin_options
        from applier.configuration.options import DEFAULT_ENGINE
        from planner import options as planning_options
        from planner import registry

        name = self.conf.watcher_applier.workflow_engine
        if name == planning_options.IN_WATCHER:
            name = DEFAULT_ENGINE
        found = registry.load(registry.ENGINES, name)
        return found, plugin_options.engine_options(self.conf, name, found)

    @property
    def _pace(self) -> float:
        """The simulated seconds per second in pauses and sleeps: one beside a real cloud."""
        from applier.plan_cloud import SIMULATED

        if self.conf.actionplan.cloud != SIMULATED and self.cloud().IS_REAL:
            return 1.0
        return float(self.conf.actionplan.simulator_speed)

    @property
    def claimant(self) -> Claimant:
        """The claimant as which this process runs plans."""
        from applier.contracts import Claimant
        from applier.run import liveness

        return Claimant(host=liveness.this_host(), pid=os.getpid(), user=user())

    @contextmanager
    def traced(self) -> Iterator[None]:
        """Send traces of the runs in a block, if the option ``traces`` is set."""
        if not self.conf.watcher_applier.traces:
            yield
            return
        try:
            from applier.monitoring.span_export import sent
            from applier.monitoring.traces import TracedRun
        except ImportError:
            text = "[watcher_applier] traces: install actionplan[traces], which it needs"
            MONITORING_LOG.error(text)
            yield
            return
        with sent() as tracer:
            self._listener_of = partial(TracedRun, tracer) if tracer else None
            yield

    def runner(
        self,
        *,
        listeners: Sequence[Listener] = (),
        on_failure: str | None = None,
        max_workers: int | None = None,
    ) -> Runner:
        """Create the runner of one plan; arguments take precedence over the configuration.

        Raises StoreError, ConfigurationError, PlannerError.
        """
        from applier.engines.environment import ActionEnvironment
        from applier.run.runner import Runner
        from applier.run.setup import RunSetup
        from applier.scheduling.verdict import OnFailure

        environment = ActionEnvironment(
            plugins=self.plugins,
            cloud=self.cloud,
            open_machines=self.machines,
            options=self.options,
            policies=self.policies,
            pace=self._pace,
        )
        return Runner(
            RunSetup(
                store=self.run_metrics.of(self.store) if self.run_metrics else self.store,
                engine=self.engine(max_workers),
                environment=environment,
                claimant=self.claimant,
                on_failure=OnFailure(on_failure or self.conf.watcher_applier.on_failure),
                listeners=tuple(listeners),
                listener_of=self._listener_of,
                heartbeat_interval_s=self.conf.watcher_applier.heartbeat_interval_s,
            )
        )


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def user() -> str:
    """Return the name of the user of this process, as it is recorded."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
