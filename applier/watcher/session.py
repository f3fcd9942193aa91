# SPDX-License-Identifier: Apache-2.0
"""The session of ``actionplan-watcher``: Watcher's configuration, database and action types."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from oslo_config import cfg

from applier.cli.session import Session
from applier.watcher.engine_options import SECTION as ENGINE

if TYPE_CHECKING:
    from applier.store import Store
    from applier.watcher.actions import WatcherTypes
    from planner.registry import ActionTypes


class WatcherSession(Session):
    """A session whose store contains the plans of Watcher instead of those of ActionPlan."""

    def __init__(self, config_files: Sequence[str] = ()) -> None:
        super().__init__(config_files or cfg.find_config_files(project="watcher"))

    @cached_property
    def store(self) -> Store:
        """The plans of Watcher, for reading; raises ConfigurationError, StoreError."""
        self.open()
        from applier.watcher.stored_plans import StoredPlans

        return cast("Store", StoredPlans(self._types, self.conf[ENGINE].limits))

    def open(self) -> None:
        """Load the configuration files into Watcher's configuration; register its objects.

        Raises ConfigurationError.
        """
        conf = self.conf
        from watcher import objects
        from watcher.common import config, service  # noqa: F401  (registers options)

        config.parse_args(
            ["actionplan-watcher"], default_config_files=conf.config_file, default_config_dirs=[]
        )
        objects.register_all()

    @property
    def record(self) -> str:
        """The words that name the database in messages, after "in the record"."""
        return "of Watcher"

    @cached_property
    def _types(self) -> WatcherTypes:
        from applier.watcher.actions import WatcherTypes

        return WatcherTypes(self.conf[ENGINE].touches)

    @property
    def action_types(self) -> ActionTypes:
        """Watcher's action types by name, as planners use them."""
        types: Any = self._types
        return cast("ActionTypes", types)

    @property
    def plugins(self) -> Any:
        """Watcher's action types by name, as the applier runs them."""
        return self._types

    @property
    def route(self) -> None:
        """None: actions of Watcher's plans run in its applier, not at workers elsewhere."""

    @property
    def max_workers(self) -> int:
        """How many actions of a plan may run at once with our engine."""
        return int(self.conf[ENGINE].max_workers)
