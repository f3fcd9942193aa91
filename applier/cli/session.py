# SPDX-License-Identifier: Apache-2.0
"""The objects that the verbs of a command line share: configuration, store, plugins, cloud.

Importing all libraries takes longer than running most verbs. So everywhere in ``applier.cli``, an
import that loads a library (oslo.config, SQLAlchemy, rich, taskflow, a schema checker) or a planner
is inside the function that needs it. tests/functional/test_startup_imports.py lists the libraries
that each verb may import.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from applier.assembly import Assembly
from planner.errors import shortened

if TYPE_CHECKING:
    from oslo_config import cfg

    from applier.contracts import ActionPlugin
    from applier.contracts.clouds import Cloud
    from applier.guarding.open_times import OpenTimes
    from applier.scheduling.verdict import TypePolicy
    from applier.storage.sql import SqlStore
    from applier.store import PlanStore
    from planner.making.registry import ActionTypes
    from planner.plan.model import ActionPlan

Answer = TypeVar("Answer")


class Session:
    """The configuration, and the parts that it describes; each is created when it is first used."""

    def __init__(self, config_files: Sequence[str] = ()) -> None:
        self.config_files = tuple(config_files)

    @cached_property
    def conf(self) -> cfg.ConfigOpts:
        """The configuration; raises ConfigurationError."""
        return configuration_of(self.config_files, warn=warn)

    @cached_property
    def assembly(self) -> Assembly:
        """The parts that the configuration describes; raises ConfigurationError."""
        return Assembly(self.conf)

    @property
    def store(self) -> SqlStore:
        """The record; raises StoreError."""
        return self.assembly.store

    @property
    def plans(self) -> PlanStore:
        """The plans that verbs show and explain; raises StoreError."""
        return self.assembly.plans

    @property
    def record(self) -> str:
        """The URL of the record, without the password."""
        from applier import configuration
        from applier.storage import connection

        return connection.shown(connection.parse(configuration.connection(self.conf)))

    @property
    def action_types(self) -> ActionTypes:
        """The installed action plugins by name, as planners use them."""
        return self.assembly.action_types

    @property
    def plugins(self) -> Mapping[str, type[ActionPlugin]]:
        """The installed action plugins by name, as the applier runs them."""
        return self.assembly.plugins

    @property
    def policies(self) -> Mapping[str, TypePolicy]:
        """The policies of the action types, as configured; raises ConfigurationError."""
        return self.assembly.policies

    @property
    def route(self) -> Sequence[str] | None:
        """The kinds of tokens that name queues; None if no actions run at workers elsewhere."""
        return self.assembly.route

    @property
    def max_workers(self) -> int:
        """How many actions of a plan may run at once, as configured."""
        return self.assembly.max_workers

    def open_times(self, plan: ActionPlan) -> OpenTimes | None:
        """Return the times at which actions of a plan may start; None for any time."""
        return self.assembly.open_times(plan)

    def cloud(self) -> Cloud:
        """Return the configured cloud; raises ConfigurationError, PlannerError."""
        return self.assembly.cloud()

    def require_own_cloud(self, plan: ActionPlan) -> None:
        """Raise OtherCloud if the plan was made for another cloud than the configured one."""
        from applier.run import plan_cloud

        plan_cloud.require_own(plan, self.plugins, self.cloud)

    def cloud_needed_by(self, plan: ActionPlan) -> str | None:
        """Return the name of the cloud on which a plan must run; None if it may be any."""
        from applier.run import plan_cloud

        return plan_cloud.needed_by(plan, self.plugins)

    def close(self) -> None:
        """Close the store and the cloud, if they were used."""
        if "assembly" in self.__dict__:
            self.assembly.close()

    def plan(self, reference: str) -> ActionPlan:
        """Load a plan by its uuid, a unique beginning of that, its unique name, or ``last``.

        Raises PlanNotFound, DamagedRecord.
        """
        return self.plans.load_plan(self.plans.find_plan(reference))


def warn(text: str) -> None:
    """Write a warning to standard error."""
    sys.stderr.write(f"Warning: {shortened(text)}\n")


def configuration_of(
    files: Sequence[str], *, warn: Callable[[str], None] = lambda _: None, checked: bool = True
) -> cfg.ConfigOpts:
    """Read the configuration from the named files, or from the default places if none is named.

    ``warn`` and ``checked`` are those of :func:`applier.configuration.load`.
    """
    from applier import configuration
    from applier.errors import ConfigurationError

    try:
        return configuration.load(files, warn=warn, checked=checked)
    except (OSError, UnicodeDecodeError) as reason:
        named = ", ".join(files or configuration.files())
        text = reason.strerror if isinstance(reason, OSError) else "it is not UTF-8 text"
        raise ConfigurationError(f"configuration {named} cannot be read: {text}") from reason
