"""What the verbs of one command line share: configuration, record, plugins, cloud."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, cast

from oslo_config import cfg

from applier import conf as configuration
from applier.clouds.simulated import SimulatedCloud
from applier.contracts import Action, Claimant, Store
from applier.engines import Engine
from applier.errors import ActionNotFound
from applier.storage.sql import SqlStore
from planner import registry
from planner.model import Action as PlannedAction
from planner.model import ActionPlan
from planner.registry import ActionTypes


class Session:
    """Opens each thing when a verb first asks for it."""

    def __init__(self, config_files: Sequence[str] = ()) -> None:
        self._config_files = config_files

    @cached_property
    def conf(self) -> cfg.ConfigOpts:
        """The configuration; raises ConfigurationError."""
        return configuration.load(self._config_files)

    @cached_property
    def store(self) -> Store:
        """The record; raises StoreError."""
        url = configuration.connection(self.conf)
        return SqlStore(url, synchronous=self.conf.actionplan.synchronous)

    @cached_property
    def action_types(self) -> ActionTypes:
        """The installed action plugins by name."""
        return ActionTypes()

    def cloud(self) -> SimulatedCloud:
        """Open the cloud that actions work on."""
        return SimulatedCloud(
            configuration.simulator_path(self.conf), speed=self.conf.actionplan.simulator_speed
        )

    def plan(self, reference: str) -> ActionPlan:
        """Load the plan that a person means; raises PlanNotFound."""
        return self.store.load_plan(self.store.find_plan(reference))

    def action(self, plan: ActionPlan, reference: str) -> PlannedAction:
        """Find an action of a plan by uuid, beginning of one, or name; raises ActionNotFound."""
        exact = [a for a in plan.actions if reference in (a.uuid, a.name)]
        found = exact or [a for a in plan.actions if a.uuid.startswith(reference)]
        if len(found) != 1:
            raise ActionNotFound(plan.uuid[:8], reference, [a.label for a in found])
        return found[0]

    @property
    def plugins(self) -> Mapping[str, type[Action]]:
        """The installed action plugins, as those that can be run."""
        return cast("Mapping[str, type[Action]]", self.action_types)

    @property
    def max_workers(self) -> int:
        """How many actions of a plan may run at once, as configured."""
        return int(self.conf["watcher_workflow_engines.taskflow"].max_workers)

    def engine(self, max_workers: int) -> Engine:
        """Make the configured workflow engine; raises UnknownPlugin."""
        name = self.conf.watcher_applier.workflow_engine
        engine: Engine = registry.load(registry.ENGINES, name)(max_workers=max_workers)
        return engine

    @property
    def claimant(self) -> Claimant:
        """Who runs a plan that is applied here."""
        return Claimant(host=socket.gethostname(), pid=os.getpid(), user=user())


def user() -> str:
    """Name the person at this terminal, as the record keeps it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def now() -> datetime:
    """Tell the time, in UTC."""
    return datetime.now(UTC)


def json_ready(value: Any) -> Any:
    """Turn what formats do not know (dates, enumerations) into text, all the way down."""
    if isinstance(value, dict):
        return {str(k): json_ready(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [json_ready(v) for v in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return value.isoformat() if isinstance(value, datetime) else str(value)
