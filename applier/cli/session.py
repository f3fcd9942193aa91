# SPDX-License-Identifier: Apache-2.0
"""The objects that the verbs of a command line share: configuration, store, plugins, cloud.

Importing all libraries takes longer than running most verbs. So everywhere in ``applier.cli``, an
import that loads a library (oslo.config, SQLAlchemy, rich, taskflow, a schema checker) or a planner
is inside the function that needs it. tests/functional/test_startup_imports.py lists the libraries
that each verb may import.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from applier.assembly import Assembly
from planner.errors import shortened

if TYPE_CHECKING:
    from oslo_config import cfg

    from planner.making.registry import ActionTypes
    from planner.plan.model import ActionPlan


class Session(Assembly):
    """The parts that the configuration of a command line describes; it is read when first used."""

    def __init__(self, config_files: Sequence[str] = ()) -> None:
        super().__init__()
        self.config_files = tuple(config_files)

    @cached_property
    def conf(self) -> cfg.ConfigOpts:
        """The configuration; raises ConfigurationError."""
        return configuration_of(self.config_files, warn=warn)

    @cached_property
    def action_types(self) -> ActionTypes:
        """See :class:`applier.assembly.Assembly`; also those in files that are configured."""
        self.read_plugin_files()
        return super().action_types

    def planner_names(self) -> Sequence[str]:
        """Return the names of the planners, also of those in files that are configured."""
        from planner.making import registry

        self.read_plugin_files()
        return registry.names(registry.PLANNERS)

    def read_plugin_files(self) -> None:
        """Read the configuration, which registers the plugins of the files that it names."""
        assert self.conf is not None  # noqa: S101

    @property
    def record(self) -> str:
        """The URL of the record, without the password."""
        from applier import configuration
        from applier.storage import connection

        return connection.shown(connection.parse(configuration.connection(self.conf)))

    def require_own_cloud(self, plan: ActionPlan) -> None:
        """Raise OtherCloud if the plan was made for another cloud than the configured one."""
        from applier.run import plan_cloud

        plan_cloud.require_own(plan, self.plugins, self.cloud)

    def cloud_needed_by(self, plan: ActionPlan) -> str | None:
        """Return the name of the cloud on which a plan must run; None if it may be any."""
        from applier.run import plan_cloud

        return plan_cloud.needed_by(plan, self.plugins)

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
