# SPDX-License-Identifier: Apache-2.0
"""Creates the parts that a configuration describes: store, cloud, plugins, engine, runner.

Each part is imported when it is first used. Most verbs of the command line need only some of the
parts, and importing all of them takes longer than running such a verb.
"""

from __future__ import annotations

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
    from applier.contracts import ActionPlugin, Claimant, Listener
    from applier.contracts.clouds import Cloud
    from applier.engines.engine import Engine
    from applier.engines.environment import ActionEnvironment
    from applier.guarding.guard import Guard
    from applier.guarding.open_times import OpenTimes
    from applier.guarding.windows import NodeWork
    from applier.machines.open_machines import OpenMachines
    from applier.run.runner import Pause, Runner
    from applier.scheduling.decisions import Breaker, Holding
    from applier.scheduling.failures import TypePolicy
    from applier.storage.sql_store import SqlStore
    from applier.store import PlanStore, RunStore
    from applier.workers.remote_workers import RemoteRuns
    from planner.making.registry import ActionTypes
    from planner.plan.model import Action, ActionPlan

Answer = TypeVar("Answer")


class Assembly:
    """The parts that a configuration describes; each is created when it is first used."""

    def __init__(self, conf: cfg.ConfigOpts | None = None) -> None:
        self._conf = conf
        self._cloud: Cloud | None = None
        self._making_cloud = threading.Lock()
        #: Wraps the store of each run; the service replaces it, to measure the commits.
        self.measured: Callable[[SqlStore], RunStore] = lambda store: store
        #: Makes the listener that traces a run; set only within :meth:`traced`.
        self._listener_of: Callable[[ActionPlan], AbstractContextManager[Listener]] | None = None

    @property
    def conf(self) -> cfg.ConfigOpts:
        """The configuration; a session of a command line reads it when it is first used."""
        assert self._conf is not None  # noqa: S101
        return self._conf

    def close(self) -> None:
        """Close the store, the cloud and the link to the workers; a later use opens them again."""
        if (runs := self.__dict__.pop("_runs_at", None)) is not None:
            runs.close()
        if (store := self.__dict__.pop("store", None)) is not None:
            store.close()
        with self._making_cloud:
            if self._cloud is not None:
                self._cloud.close()
                self._cloud = None

    @cached_property
    def store(self) -> SqlStore:
        """The store, opened at the first use; raises StoreError, and the next use tries again."""
        from applier import configuration
        from applier.run import plan_cloud
        from applier.storage.sql_store import SqlStore

        url = configuration.connection(self.conf)
        return SqlStore(url, overview_of=plan_cloud.overview_and_waves)

    @property
    def plans(self) -> PlanStore:
        """The plans that verbs show and explain: those of the store; raises StoreError."""
        return self.store

    @cached_property
    def action_types(self) -> ActionTypes:
        """The installed action plugins by name, each loaded when it is first used."""
        from planner.making.registry import ActionTypes

        return ActionTypes()

    @property
    def plugins(self) -> Mapping[str, type[ActionPlugin]]:
        """The installed action plugins by name, with the interface that the applier uses."""
        return cast("Mapping[str, type[ActionPlugin]]", self.action_types)

    @cached_property
    def policies(self) -> Mapping[str, TypePolicy]:
        """The policy of each installed action type; a section is read on first use."""
        from applier.configuration import plugin_options

        return plugin_options.policies(self.conf, self.action_types)

    @cached_property
    def options(self) -> Mapping[str, Mapping[str, Any]]:
        """The values of the options that action types declare; a section is read on first use."""
        from applier.configuration import plugin_options

        return plugin_options.action_options(self.conf, self.plugins)

    @cached_property
    def guard(self) -> Guard:
        """The guard, which checks plans against the demands of the configuration."""
        from applier.configuration import guard_options

        return guard_options.guard_of(self.conf)

    def require_allowed(self, plan: ActionPlan, *, in_service: bool = False) -> None:
        """Raise GuardRefusal if a plan fails its own demands or those of the configuration.

        With ``in_service``, also if none of its actions can start now and end in an open window.
        """
        if not self._is_guarded(plan):
            return
        self.guard.require(plan, self.store.approvals, now())
        if self.guard.demanded(plan).windows:
            from applier.guarding import windows

            times, work = self.open_times(plan), self._node_work(plan)
            windows.require(plan, times, work, now(), has_to_be_open=in_service)

    def _is_guarded(self, plan: ActionPlan) -> bool:
        from applier.configuration.guard_options import GUARD_OPTIONS
        from planner.guards import NO_GUARDS

        options = self.conf.watcher_applier
        configured = [options[opt.name] for opt in GUARD_OPTIONS]
        return plan.guards != NO_GUARDS or any(configured)

    def open_times(self, plan: ActionPlan) -> OpenTimes | None:
        """Return the times at which actions of a plan may start; None if it has no windows."""
        if not (plan.guards.windows or self.conf.watcher_applier.windows):
            return None
        from applier.guarding.open_times import OpenTimes

        return OpenTimes(self.guard.demanded(plan).windows)

    def _node_work(self, plan: ActionPlan) -> NodeWork:
        """Return how long windows must be open for the actions of a plan, by earlier runs."""
        from applier.run.holdings import node_work

        return node_work(plan.actions, self.store.durations, self.policies)

    def waits_for(self, plan: ActionPlan) -> Callable[[Action], str | None]:
        """Return a function of an action: a text about the window for which it waits, or None."""
        times = self.open_times(plan)
        if times is None:
            return lambda _: None
        from applier.guarding import windows

        work, at = self._node_work(plan), now()
        return lambda action: windows.waiting(action, times, work, at)

    def _holding(
        self, plan: ActionPlan, pause: Pause, *, tell: Callable[[str], None], in_service: bool
    ) -> Holding | None:
        """Return the windows, the health probe or both, which delay actions; None without them."""
        times, probe = self.open_times(plan), self.conf.watcher_applier.health_probe
        if times is None and not probe:
            return None
        from applier.guarding.windows import WindowHolding
        from applier.run.holdings import CombinedHolding, HealthProbe, asked

        held: list[Holding] = [HealthProbe(partial(asked, probe), pause)] if probe else []
        if times is not None:
            work = self._node_work(plan)
            held.append(WindowHolding(times, work, now, tell=tell, hands_back=in_service))
        return CombinedHolding(held)

    def _budget(self, plan: ActionPlan) -> Breaker | None:
        """Return the failure budget that pauses a plan after failures; None if none is set."""
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
        """Return the result of a call to the cloud; raise ActionFailed for a ConnectionError."""
        from applier.errors import ActionFailed

        try:
            return call(self.cloud())
        except ConnectionError as reason:
            raise ActionFailed(str(reason)) from reason

    def facts(self) -> Mapping[str, Any]:
        """Return the facts of the whole cloud; raises the errors of :meth:`ask_cloud`."""
        return self.ask_cloud(lambda cloud: cloud.facts())

    @property
    def cloud_name(self) -> str:
        """The name of the configured cloud, which is created first unless it is the simulated one.

        Raises the errors of :meth:`cloud`.
        """
        from applier.run.plan_cloud import SIMULATED

        return SIMULATED if self.conf.actionplan.cloud == SIMULATED else self.cloud().name

    def _new_cloud(self) -> Cloud:
        from applier.configuration import plugin_options
        from applier.run.plan_cloud import SIMULATED

        if self.conf.actionplan.cloud == SIMULATED:
            return self.simulated_cloud()
        return plugin_options.new_cloud(self.conf)

    def simulated_cloud(self) -> SimulatedCloud:
        """Create the simulated cloud, even if another cloud is configured."""
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

        return configuration.open_machines(self.conf)

    @property
    def max_workers(self) -> int:
        """The configured number of actions that may run at once; raises as :meth:`engine`."""
        return int(self._engine[2]["max_workers"])

    @property
    def route(self) -> Sequence[str] | None:
        """The kinds of tokens that select the queue of an action; None without remote workers."""
        return self.conf.workers.route if self._at_workers else None

    def check(self) -> None:
        """Check the options of machines, engine, workers and cloud, which loading does not check.

        No connection is made. Raises ConfigurationError, PlannerError.
        """
        self.machines()
        self.engine()
        if self._at_workers:
            from applier.workers import workers_section

            workers_section.require(self.conf)
        self.cloud()

    @property
    def _at_workers(self) -> bool:
        """Whether actions run at workers, and not in threads of this process."""
        from applier.engines.taskflow_engine import CELERY

        return self._engine[2].get("workers") == CELERY

    @cached_property
    def _runs_at(self) -> RemoteRuns | None:
        """The workers that execute the actions of runs; None: threads of this process do.

        Raises StoreError, ConfigurationError, and the errors of :meth:`cloud`.
        """
        if not self._at_workers:
            return None
        from applier.workers import workers_section

        return workers_section.remote_runs(self.conf, self.store, lambda: self.cloud_name)

    def engine(self, max_workers: int | None = None) -> Engine:
        """Create the configured workflow engine, with the options of its section.

        Raises ConfigurationError, UnknownPlugin, BrokenPlugin.
        """
        from applier.configuration import plugin_options

        name, make, options = self._engine
        options = {**options, "max_workers": max_workers or self.max_workers}
        engine: Engine = plugin_options.create("workflow engine", name, make, options)
        return engine

    @cached_property
    def _engine(self) -> tuple[str, type[Engine], Mapping[str, Any]]:
        """The name and the class of the configured engine, and its options."""
        from applier.configuration import plugin_options

        return plugin_options.engine(self.conf)

    @property
    def _pace(self) -> float:
        """The simulated seconds in one second of a pause or sleep; 1 with a real cloud."""
        from applier.run.plan_cloud import SIMULATED

        if self.conf.actionplan.cloud != SIMULATED and self.cloud().IS_REAL:
            return 1.0
        return float(self.conf.actionplan.simulator_speed)

    @property
    def claimant(self) -> Claimant:
        """The claimant as which this process runs plans."""
        from applier import configuration
        from applier.run import this_process

        return this_process.claimant(configuration.jobs_path(self.conf))

    @contextmanager
    def traced(self) -> Iterator[None]:
        """Send traces of the runs inside a ``with`` block, if the option ``traces`` is set."""
        if not self.conf.watcher_applier.traces:
            yield
            return
        from applier.monitoring import traced_runs

        with traced_runs.listeners() as self._listener_of:
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
        reason: str | None = None,
        tell: Callable[[str], None] = lambda _: None,
        in_service: bool = False,
    ) -> Runner:
        """Create the runner of one plan; arguments take precedence over the configuration.

        ``tell`` gets sentences about what actions wait for: windows, workers, other plans. With
        ``in_service``, a plan that only waits for a window is handed back, so that others can run.

        Raises StoreError, ConfigurationError, PlannerError.
        """
        from applier.configuration import plugin_options
        from applier.run.interrupted_actions import jobs_of, no_jobs_of
        from applier.run.runner import Runner

        given = max_workers, on_failure, reason
        return Runner(
            store=self.measured(self.store),
            engine=self.engine(max_workers),
            environment=self.environment,
            claimant=self.claimant,
            options_of=partial(plugin_options.run_options, self.conf, *given),
            listeners=tuple(listeners),
            listener_of=self._listener_of,
            heartbeat_interval_s=self.conf.watcher_applier.heartbeat_interval_s,
            require_allowed=partial(self.require_allowed, in_service=in_service),
            holding_of=partial(self._holding, tell=tell, in_service=in_service),
            budget_of=self._budget,
            runs_at=self._runs_at,
            jobs_of=partial(jobs_of if self._at_workers else no_jobs_of, self.store),
            tell=tell,
        )


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)
