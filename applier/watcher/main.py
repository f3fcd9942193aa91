# SPDX-License-Identifier: Apache-2.0
"""The program ``actionplan-watcher``: shows and resumes the plans of Watcher."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

from applier.cli import main as command_line
from applier.cli.program import Program
from applier.cli.session import Session

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

PLAN is a uuid, a unique beginning of one, or 'last'. To start, cancel and list plans, use Watcher's
own client: openstack optimize actionplan --help
Exit codes: 0 done, 1 refused, 2 usage.
"""


class WatcherProgram(Program):
    """``actionplan-watcher``: the program with verbs for the plans of Watcher."""

    NAME = "actionplan-watcher"
    VERBS = "actionplan.watcher_cli"
    DESCRIPTION = "Shows the action plans of OpenStack Watcher, and lets them go on after a crash."
    GROUPS = {
        "Look": ("show", "why", "graph", "simulate"),
        "Step in": ("action set", "resume"),
        "Record": ("purge",),
    }
    EXAMPLES = EXAMPLES

    def new_session(self, config_files: Sequence[str]) -> Session:
        """Return a session that reads Watcher's configuration and database."""
        from applier.watcher.session import WatcherSession

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
