# SPDX-License-Identifier: Apache-2.0
"""An action type of a third party, which notes what runs: the distribution ``traced_type``."""

from __future__ import annotations

import threading
from collections import Counter

from watcher.applier.actions.base import BaseAction
from watcher.common.exception import WatcherException

_lock = threading.Lock()
_running: Counter = Counter()
_runs: list[str] = []
_together: Counter = Counter()
_NEVER = threading.Event()


def nothing(_action):
    """Do nothing."""


#: Called by each action that has ``cancels``, while it runs.
on_run = nothing


def reset():
    """Forget what was noted."""
    global on_run
    on_run = nothing
    for found in (_running, _runs, _together):
        found.clear()


def seen():
    """Return how many ran, and the largest number that worked on each host at once."""
    return {"runs": len(_runs), "together": dict(_together)}


def wait_until(holds):
    """Return when a condition holds."""
    while not holds():
        _NEVER.wait(0.02)


def heard_of_cancel(watcher, plan):
    """Return whether the engine has cancelled the rest, or cannot before this action ends."""
    engine = watcher.conf.watcher_applier.workflow_engine
    states = [action.state for action in watcher.actions(plan)]
    return engine == "taskflow" or states[1:] == ["CANCELLED"] * len(states[1:])


class Traced(BaseAction):
    """Notes that it runs, and fails if its parameters say so."""

    @property
    def schema(self):
        """Accept everything."""
        return {"type": "object"}

    def pre_condition(self):
        """Check nothing."""

    def execute(self):
        """Note the run."""
        host = self.input_parameters.get("host")
        with _lock:
            _runs.append(host)
            _running[host] += 1
            _together[host] = max(_together[host], _running[host])
        try:
            if self.input_parameters.get("cancels"):
                on_run(self)
            if self.input_parameters.get("fails"):
                raise WatcherException(self.input_parameters.get("why", "as asked"))
            if self.input_parameters.get("breaks"):
                raise ValueError("no such thing")
            _NEVER.wait(0.05)
        finally:
            with _lock:
                _running[host] -= 1
        return True

    def post_condition(self):
        """Check nothing."""

    def revert(self):
        """Undo nothing."""
        return True

    def get_description(self):
        """Describe the type."""
        return "Notes what runs."
