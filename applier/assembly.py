# SPDX-License-Identifier: Apache-2.0
"""Creates the parts that a configuration describes: store, cloud, plugins, engine, runner.

Each part is imported when it is first used. Most verbs of the command line need only some of the
parts, and importing all of them takes longer than running such a verb.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from oslo_config import cfg

    from applier.clouds.simulated import SimulatedCloud
    from applier.configuration.plugin_options import ActionOptions
    from applier.contracts import ActionPlugin, Claimant, Listener
    from applier.contracts.clouds import Cloud
    from applier.engines import Engine
    from applier.engines.environment import ActionEnvironment
    from applier.guarding.guard import Guard
    from applier.guarding.open_times import OpenTimes
    from applier.machines import OpenMachines
    from applier.run.runner import Runner
    from applier.run.setup import Pause
    from applier.run.worker_jobs import LocalRuns
    from applier.scheduling.holding import Breaker, Holding
    from applier.scheduling.type_policy import TypePolicy
    from applier.store import RunStore, Store
    from applier.workers.runs import RemoteRuns
    from planner.model import Action, ActionPlan
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
        #: Returns the store of a run of this process; another one may measure it.
        self.measured: Callable[[Store], RunStore] = lambda store: store
        #: If set, makes one more listener for each run of this process.
        self._listener_of: Callable[[ActionPlan], AbstractContextManager[Listener]] | None = None

    def close(self) -> None:
        """Close the store and the cloud, as far as they were used."""
        if (runs := self.__dict__.pop("runs_at", None)) is not None:
            runs.close()
        store = self.__dict__.pop("store", None)
        if store is not None:
            store.close()
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

    @cached_property
    def guard(self) -> Guard:
        """What the configuration demands of plans before they may run."""
        from applier.configuration import guard_options

        return guard_options.guard_of(self.conf)

    def require_allowed(self, plan: ActionPlan, *, in_service: bool = False) -> None:
        """Raise GuardRefusal if a plan may not run, by what it and the configuration demand.

        In a service, a plan may not run while it waits for a window.
        """
        if not self._is_guarded(plan):
            return
        self.guard.require(plan, self.store, now())
        if self.guard.demanded(plan).windows:
            from applier.guarding import windows

            times, expected_s = self.open_times(plan), self._expected_s()
            windows.require(plan, times, expected_s, now(), has_to_be_open=in_service)

    def _is_guarded(self, plan: ActionPlan) -> bool:
        from applier.configuration.guard_options import GUARD_OPTIONS
        from planner.guards import NO_GUARDS

        options = self.conf.watcher_applier
        return plan.guards != NO_GUARDS or any(options[opt.name] for opt in GUARD_OPTIONS)

    def open_times(self, plan: ActionPlan) -> OpenTimes | None:
        """Return when actions of a plan may start; None if they always may."""
        if not (plan.guards.windows or self.conf.watcher_applier.windows):
            return None
        from applier.guarding.open_times import OpenTimes

        return OpenTimes(self.guard.demanded(plan).windows)

    def _expected_s(self) -> Callable[[Action], float]:
        """Return a function for the seconds within which 9 in 10 actions like one end."""
        from applier.run.durations import CAUTIOUS, PastDurations, estimates

        past = PastDurations(self.store.durations, estimates(self.policies))
        return lambda action: past.expected(action, CAUTIOUS)

    def waits_for(self, plan: ActionPlan) -> Callable[[Action], str | None]:
        """Return a function for the window that an action waits for if it could start otherwise."""
        times = self.open_times(plan)
        if times is None:
            return lambda _: None
        from applier.guarding import windows

        expected_s, at = self._expected_s(), now()
        return lambda action: windows.waiting(action, times, expected_s, at)

    def _holding(
        self,
        plan: ActionPlan,
        pause: Pause,
        *,
        tell: Callable[[str], None],
        in_service: bool,
    ) -> Holding | None:
        """Return what holds actions of a plan back, if anything does."""
        times, probe = self.open_times(plan), self.conf.watcher_applier.health_probe
        if times is None and not probe:
            return None
        from applier.run import holding

        held = holding.by_windows(times, self._expected_s, now, tell, hands_back=in_service)
        return holding.of_all([*held, *holding.by_probe(probe, pause)])

    def _budget(self, plan: ActionPlan) -> Breaker | None:
        """Return what pauses a plan after failures, if anything does."""
        if not (plan.guards.failure_budget or self.conf.watcher_applier.failure_budget):
            return None
        from applier.guarding.failure_budget import FailureBudget, earlier

        before = earlier(plan.actions, self.store.history(plan.uuid), now())
        budgets = self.guard.demanded(plan).failure_budget
        return FailureBudget(budgets, plan.actions, time.monotonic, before)

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
        from applier.configuration import machine_options

        return machine_options.open_machines(self.conf)

    @property
    def max_workers(self) -> int:
        """The configured number of actions that may run at once; raises as :meth:`engine`."""
        return int(self._engine[1]["max_workers"])

    @property
    def route(self) -> Sequence[str] | None:
        """The kinds of tokens that name queues; None if no actions run at workers elsewhere."""
        from applier.workers import configured

        return self.conf.workers.route if configured.is_wanted(self._engine[1]) else None

    def check(self) -> None:
        """Check what :func:`applier.configuration.load` leaves unchecked: machines, engine, cloud.

        No connection is made. Raises ConfigurationError, PlannerError.
        """
        from applier.workers import configured

        self.machines()
        self.engine()
        configured.check(self.conf, self._engine[1])
        self.cloud()

    @cached_property
    def runs_at(self) -> LocalRuns | RemoteRuns:
        """Where the actions of runs are executed; raises StoreError, ConfigurationError."""
        from applier.workers import configured

        return configured.runs_at(self.conf, self._engine[1], self.store, lambda: self.cloud_name)

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
        from applier.run.user import user

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

    @property
    def environment(self) -> ActionEnvironment:
        """The environment of actions, as configured; raises ConfigurationError, PlannerError."""
        from applier.engines.environment import ActionEnvironment

        return ActionEnvironment(
            plugins=self.plugins,
            cloud=self.cloud,
            open_machines=self.machines,
            options=self.options,
            policies=self.policies,
            pace=self._pace,
        )

    def runner(
        self,
        *,
        listeners: Sequence[Listener] = (),
        on_failure: str | None = None,
        max_workers: int | None = None,
        tell: Callable[[str], None] = lambda _: None,
        in_service: bool = False,
    ) -> Runner:
        """Create the runner of one plan; arguments take precedence over the configuration.

        ``tell`` is called with what actions wait for that could start. In a service, a plan that
        waits for a window is handed back, so that others can run.

        Raises StoreError, ConfigurationError, PlannerError.
        """
        from applier.run.runner import Runner
        from applier.run.setup import RunSetup
        from applier.scheduling.verdict import OnFailure

        return Runner(
            RunSetup(
                store=self.measured(self.store),
                engine=self.engine(max_workers),
                environment=self.environment,
                claimant=self.claimant,
                on_failure=OnFailure(on_failure or self.conf.watcher_applier.on_failure),
                listeners=tuple(listeners),
                listener_of=self._listener_of,
                heartbeat_interval_s=self.conf.watcher_applier.heartbeat_interval_s,
                require_allowed=partial(self.require_allowed, in_service=in_service),
                holding_of=partial(self._holding, tell=tell, in_service=in_service),
                budget_of=self._budget,
                runs_at=self.runs_at,
                tell=tell,
            )
        )


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)
