"""Engines: run what is left of one plan, and record each step before and after it is made.

Plugins are registered under ``watcher_workflow_engines``.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from applier.contracts import Report, Wish
from applier.recorder import Recorder
from applier.scheduling.scheduler import Stopped
from applier.scheduling.verdict import OnFailure
from planner.model import ActionPlan

#: What comes in while a plan runs: any thread, and any signal handler, may put something. None is
#: nothing but a call to wake up: Python runs signal handlers in a thread that waits only if the
#: signal came while it slept already, not in the moment before.
Events = queue.SimpleQueue[Report | Wish | None]


class Engine(Protocol):
    """What runs plans."""

    def run(
        self,
        plan: ActionPlan,
        recorder: Recorder,
        events: Events,
        *,
        make_task: Callable[[str], Any],
        on_failure: OnFailure,
        wishes: Iterable[Wish] = (),
    ) -> Stopped | None:
        """Run until all has ended, or, after a pause, nothing runs; say what stopped it, if so.

        ``make_task`` gives the task for an action's uuid, or for the name of a join; ``wishes`` are
        those to begin with, later ones come through ``events``. Raises what the recorder raises,
        after what ran has ended.
        """
