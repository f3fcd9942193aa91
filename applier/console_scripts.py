# SPDX-License-Identifier: Apache-2.0
"""The entry points of all programs.

Each imports its program inside a ``try``, so that Ctrl-C ends it without a traceback also during
the imports, which take most of the start. Nothing of the product is imported before.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

#: What a program writes to stderr after Ctrl-C, and its exit code.
INTERRUPTED_TEXT = "\nInterrupted.\n"
INTERRUPTED = 130


def actionplan() -> int:
    """Run ``actionplan``; return its exit code."""
    return _run("applier.cli.main")


def actionplan_api() -> int:
    """Run ``actionplan-api``; return its exit code."""
    return _run("applier.api.main")


def actionplan_applier() -> int:
    """Run ``actionplan-applier``; return its exit code."""
    return _run("applier.service.main")


def actionplan_worker() -> int:
    """Run ``actionplan-worker``; return its exit code."""
    return _run("applier.workers.main")


def actionplan_watcher() -> int:
    """Run ``actionplan-watcher``; return its exit code."""
    return _run("applier.watcher.main")


def _run(module: str) -> int:
    try:
        from applier.errors import shortage_in
        from applier.extras import MissingExtra

        try:
            return int(import_module(module).main())
        except MissingExtra as missing:
            sys.stderr.write(f"{missing}\n")
            return 1
        except (OSError, RuntimeError) as reason:
            missed = shortage_in(reason)
            if missed is None:
                raise
            program = os.path.basename(sys.argv[0])
            sys.stderr.write(f"{program}: this machine, or this user, is short: {missed}\n")
            return 1
    except KeyboardInterrupt:
        sys.stderr.write(INTERRUPTED_TEXT)
        return INTERRUPTED
