"""What the verbs of one command line share: configuration, record, plugins, cloud.

Each is imported when a verb first asks for it: most verbs need only some, and loading all takes
longer than what they do.
"""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from oslo_config import cfg

    from applier.clouds.simulated import SimulatedCloud
    from applier.contracts import ActionPlugin, Claimant
    from applier.engines import Engine
    from applier.machines import OpenMachines
    from applier.scheduling.type_policy import TypePolicy
    from applier.store import Store
    from planner.model import Action as PlannedAction
    from planner.model import ActionPlan
    from planner.registry import ActionTypes


class Session:
    """Opens each thing when a verb first asks for it."""

    def __init__(self, config_files: Sequence[str] = ()) -> None:
        self.config_files = tuple(config_files)

    @cached_property
    def conf(self) -> cfg.ConfigOpts:
        """The configuration; raises ConfigurationError."""
        return configuration_of(self.config_files)

    @cached_property
    def store(self) -> Store:
        """The record; raises StoreError."""
        from applier import conf as configuration
        from applier.storage.sql import SqlStore

        url = configuration.connection(self.conf)
        return SqlStore(url, synchronous=self.conf.actionplan.synchronous)

    @property
    def record(self) -> str:
        """Where the record is, without the password."""
        from applier import conf as configuration
        from applier.storage import urls

        return urls.shown(urls.parse(configuration.connection(self.conf)))

    @cached_property
    def action_types(self) -> ActionTypes:
        """The installed action plugins by name."""
        from planner.registry import ActionTypes

        return ActionTypes()

    def cloud(self) -> SimulatedCloud:
        """Open the cloud that actions work on."""
        from applier import conf as configuration
        from applier.clouds.simulated import SimulatedCloud

        return SimulatedCloud(
            configuration.simulator_path(self.conf), speed=self.conf.actionplan.simulator_speed
        )

    def machines(self) -> OpenMachines:
        """Give the machines that the tasks of one run work on; raises ConfigurationError."""
        from applier import conf as configuration

        return configuration.machines(self.conf)

    def plan(self, reference: str) -> ActionPlan:
        """Load the plan that a person means; raises PlanNotFound."""
        return self.store.load_plan(self.store.find_plan(reference))

    @property
    def plugins(self) -> Mapping[str, type[ActionPlugin]]:
        """The installed action plugins, as those that can be run."""
        return cast("Mapping[str, type[ActionPlugin]]", self.action_types)

    @cached_property
    def policies(self) -> Mapping[str, TypePolicy]:
        """What the sections of the action types say; raises ConfigurationError."""
        from applier import conf as configuration

        return configuration.policies(self.conf, self.action_types)

    @property
    def max_workers(self) -> int:
        """How many actions of a plan may run at once, as configured."""
        return int(self.conf["watcher_workflow_engines.taskflow"].max_workers)

    def engine(self, max_workers: int) -> Engine:
        """Make the configured workflow engine; raises UnknownPlugin."""
        from planner import registry

        name = self.conf.watcher_applier.workflow_engine
        engine: Engine = registry.load(registry.ENGINES, name)(max_workers=max_workers)
        return engine

    @property
    def claimant(self) -> Claimant:
        """Who runs a plan that is applied here."""
        from applier.contracts import Claimant

        return Claimant(host=socket.gethostname(), pid=os.getpid(), user=user())


def configuration_of(files: Sequence[str]) -> cfg.ConfigOpts:
    """Read the configuration from files, or from where it is looked for without any."""
    from applier import conf as configuration
    from applier.errors import ConfigurationError

    try:
        return configuration.load(files)
    except (OSError, UnicodeDecodeError) as reason:
        named = ", ".join(files or configuration.files())
        text = reason.strerror if isinstance(reason, OSError) else "it is not UTF-8 text"
        raise ConfigurationError(f"configuration {named} cannot be read: {text}") from reason


def find_action(plan: ActionPlan, reference: str) -> PlannedAction:
    """Find an action of a plan by uuid, beginning of one, or name; raises ActionNotFound."""
    from applier.errors import ActionNotFound

    exact = [a for a in plan.actions if reference in (a.uuid, a.name)]
    found = exact or [a for a in plan.actions if reference and a.uuid.startswith(reference)]
    if len(found) != 1:
        known = [f"{a.label} ({a.uuid[:8]})" for a in found]
        raise ActionNotFound(plan.uuid[:8], reference, known)
    return found[0]


def user() -> str:
    """Name the person at this terminal, as the record keeps it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def now() -> datetime:
    """Tell the time, in UTC."""
    return datetime.now(UTC)
