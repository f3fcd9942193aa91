"""Engines: run what is left of one plan, and record each step before and after it is made.

Plugins are registered under ``watcher_workflow_engines``.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from applier.contracts import Report, Request
from applier.errors import PlanConflict
from applier.recording.recorder import Recorder
from applier.scheduling.turn import Halt
from applier.scheduling.type_policy import TypePolicy
from applier.scheduling.verdict import OnFailure
from applier.store import Reservation
from planner.model import ActionPlan


class ReservationsChanged(NamedTuple):
    """All the resources of a plan that other plans hold now."""

    reservations: tuple[Reservation, ...]


#: What comes in while a plan runs: any thread, and any signal handler, may put something. A
#: PlanConflict says that the claim is lost. None is nothing but a call to wake up: Python runs
#: signal handlers in a thread that waits only if the signal came while it slept already, not in the
#: moment before.
Event = Report | Request | ReservationsChanged | PlanConflict | None
Events = queue.SimpleQueue[Event]


class Engine(Protocol):
    """What runs plans, up to ``max_workers`` actions at once."""

    max_workers: int

    def run(
        self,
        plan: ActionPlan,
        recorder: Recorder,
        events: Events,
        *,
        make_task: Callable[[str], Any],
        on_failure: OnFailure,
        ranks: Mapping[str, int] | None = None,
        policies: Mapping[str, TypePolicy] | None = None,
        workerless: Collection[str] = (),
        held_by_others: Iterable[Reservation] = (),
        requests: Iterable[Request] = (),
    ) -> Halt | None:
        """Run until all has ended, or, after a pause, nothing runs; say what stopped it, if so.

        ``make_task`` gives the task for an action's uuid, or for the name of a join; ``ranks`` is
        who starts first, lowest first; ``policies`` go by action type; ``workerless`` are the
        actions that do not count against ``max_workers``. ``held_by_others`` and ``requests`` are
        those to begin with, later ones come through ``events``. Raises what the recorder raises,
        after what ran has ended or was given up.
        """
