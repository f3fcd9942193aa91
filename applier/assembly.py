# SPDX-License-Identifier: Apache-2.0
"""Creates the parts that a configuration describes: store, cloud, plugins, engine, runner.

Each part is imported when it is first used. Most verbs of the command line need only some of the
parts, and importing all of them takes longer than running such a verb.
"""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from oslo_config import cfg

    from applier.clouds.simulated import SimulatedCloud
    from applier.contracts import ActionPlugin, Claimant, Listener
    from applier.engines import Engine
    from applier.machines import OpenMachines
    from applier.plugin_options import ActionOptions
    from applier.run.runner import Runner
    from applier.scheduling.type_policy import TypePolicy
    from applier.store import Store
    from planner.registry import ActionTypes


class Assembly:
    """The parts that a configuration describes; each is created when it is first used."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self.conf = conf

    @cached_property
    def store(self) -> Store:
        """The store; raises StoreError, after which it may be tried again."""
        from applier import conf as configuration
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
        from applier import plugin_options

        return plugin_options.policies(self.conf, self.action_types)

    @cached_property
    def options(self) -> ActionOptions:
        """The values of the options that action types declare; a section is read on first use."""
        from applier.plugin_options import ActionOptions

        return ActionOptions(self.conf, self.plugins)

    def cloud(self) -> SimulatedCloud:
        """Open the cloud that actions work on."""
        from applier import conf as configuration
        from applier.clouds.simulated import SimulatedCloud

        return SimulatedCloud(
            configuration.simulator_path(self.conf), speed=self.conf.actionplan.simulator_speed
        )

    def machines(self) -> OpenMachines:
        """Return the machines for the tasks of one run; raises ConfigurationError."""
        from applier import conf as configuration

        return configuration.machines(self.conf)

    @property
    def max_workers(self) -> int:
        """The configured number of actions that may run at once; raises as :meth:`engine`."""
        return int(self._engine[1]["max_workers"])

    def check(self) -> None:
        """Check the configuration of every part; raises ConfigurationError, PlannerError.

        No file is opened and no connection is made.
        """
        _ = self.policies
        self.options.check()
        self.machines()
        self.engine()

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
        from applier import plugin_options
        from planner import registry

        name = self.conf.watcher_applier.workflow_engine
        found = registry.load(registry.ENGINES, name)
        return found, plugin_options.engine_options(self.conf, name, found)

    @property
    def claimant(self) -> Claimant:
        """The claimant as which this process runs plans."""
        from applier.contracts import Claimant

        return Claimant(host=socket.gethostname(), pid=os.getpid(), user=user())

    def runner(
        self,
        *,
        listeners: Sequence[Listener] = (),
        on_failure: str | None = None,
        max_workers: int | None = None,
    ) -> Runner:
        """Create the runner of one plan; arguments take precedence over the configuration.

        Raises StoreError, ConfigurationError, UnknownPlugin.
        """
        from applier.engines.environment import ActionEnvironment
        from applier.run.runner import Runner
        from applier.run.setup import RunSetup
        from applier.scheduling.verdict import OnFailure

        self.options.check()
        environment = ActionEnvironment(
            plugins=self.plugins,
            cloud=self.cloud,
            machines=self.machines(),
            options=self.options,
            policies=self.policies,
            pace=self.conf.actionplan.simulator_speed,
        )
        return Runner(
            RunSetup(
                store=self.store,
                engine=self.engine(max_workers),
                environment=environment,
                claimant=self.claimant,
                on_failure=OnFailure(on_failure or self.conf.watcher_applier.on_failure),
                listeners=tuple(listeners),
                heartbeat_interval_s=self.conf.watcher_applier.heartbeat_interval_s,
            )
        )


def user() -> str:
    """Return the name of the user of this process, as it is recorded."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
