# SPDX-License-Identifier: Apache-2.0
"""The program ``actionplan-watcher``: shows and resumes the plans of Watcher."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NoReturn, cast

from oslo_config import cfg

from applier.cli import main as command_line
from applier.cli.program import Program
from applier.cli.session import Session
from applier.errors import StoreError
from applier.watcher.engine_options import SECTION as ENGINE

if TYPE_CHECKING:
    from applier.scheduling.failures import TypePolicy
    from applier.store import PlanStore
    from applier.watcher.actions import WatcherTypes
    from planner.making.registry import ActionTypes
    from planner.plan.model import ActionPlan

EXAMPLES = """\
Options, before or after the verb:
  --config-file FILE   Watcher's configuration, instead of the one that its own
                       services find; of several, later ones win
  --log-file FILE      write what the program logs to a file
  -v, -vv              log to the terminal; -vv: everything
  --debug              show where in the program an error comes from
  --version, -h

Examples:
  actionplan-watcher show last                  the newest plan, wave by wave
  actionplan-watcher why last 2f0c4711          why this action waits, or did not run
  actionplan-watcher simulate last              how long it takes, and why
  actionplan-watcher graph last -f svg --out plan.svg

PLAN is a uuid, a unique beginning of one, 'last', or 'last~1'. To start, cancel and list plans, use
Watcher's own client: openstack optimize actionplan --help
Exit codes: 0 done, 1 refused, 2 usage.
"""


class WatcherSession(Session):
    """Watcher's configuration, and its plans and action types in place of those of ActionPlan."""

    def __init__(self, config_files: Sequence[str] = ()) -> None:
        super().__init__(config_files or cfg.find_config_files(project="watcher"))

    @property
    def store(self) -> NoReturn:
        raise StoreError("actionplan-watcher has no record of its own")

    @cached_property
    def plans(self) -> PlanStore:
        """The plans of Watcher, for reading; raises ConfigurationError, StoreError."""
        self.open()
        from applier.watcher.record import StoredPlans

        return StoredPlans(self.plugins, self.conf[ENGINE].limits)

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
        return "of Watcher"

    @cached_property
    def plugins(self) -> WatcherTypes:
        from applier.watcher.actions import WatcherTypes

        return WatcherTypes(self.conf[ENGINE].touches)

    @property
    def action_types(self) -> ActionTypes:
        types: Any = self.plugins  # both are mappings of types by name, and nothing else
        return cast("ActionTypes", types)

    @cached_property
    def policies(self) -> Mapping[str, TypePolicy]:
        """The policies of the action types of ActionPlan, which Watcher's have by name."""
        from applier.configuration import plugin_options
        from planner.making.registry import ActionTypes

        return plugin_options.policies(self.conf, ActionTypes())

    @property
    def route(self) -> None:
        """None: actions of Watcher's plans run in its applier, not at workers elsewhere."""

    def open_times(self, plan: ActionPlan) -> None:
        """Return None: Watcher's plans have no windows."""

    @property
    def max_workers(self) -> int:
        return int(self.conf[ENGINE].max_workers)


class WatcherProgram(Program):
    """``actionplan-watcher``: the program with verbs for the plans of Watcher."""

    NAME = "actionplan-watcher"
    VERBS = "actionplan.watcher_cli"
    DESCRIPTION = "Shows the action plans of OpenStack Watcher, and lets them go on after a crash."
    FIRST = ()
    GROUPS = {
        "Look": ("show", "why", "graph", "simulate"),
        "Step in": ("action set", "resume"),
        "Record": ("purge",),
    }
    EXAMPLES = EXAMPLES

    def new_session(self, config_files: Sequence[str]) -> Session:
        return WatcherSession(config_files)


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``actionplan-watcher``; return its exit code, which is 1 without Watcher."""
    if find_spec("watcher") is None:
        sys.stderr.write(
            "actionplan-watcher reads the database of OpenStack Watcher, which is not installed "
            "here: install ActionPlan into the environment of Watcher's services\n"
        )
        return 1
    # Warnings of the deprecated libraries that Watcher imports go to the log, not to the terminal.
    logging.captureWarnings(True)
    return command_line.main(argv, _program)


def _program() -> Callable[[], Any]:
    return WatcherProgram
