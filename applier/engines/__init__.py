# SPDX-License-Identifier: Apache-2.0
"""Workflow engines: run what is left of one plan, and record each start before it is made.

Plugins are registered under ``watcher_workflow_engines``.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from applier.contracts import Report, Request
from applier.errors import PlanConflict
from applier.recording.recorder import Recorder
from applier.scheduling.turn import Halt
from applier.scheduling.type_policy import TypePolicy
from applier.scheduling.verdict import OnFailure
from applier.store import Reservation
from planner.model import ActionPlan

if TYPE_CHECKING:
    from oslo_config import cfg


class ReservationsChanged(NamedTuple):
    """All resources that other plans hold now."""

    reservations: tuple[Reservation, ...]


#: What the engine is told while a plan runs. Any thread and any signal handler may put an event.
#: A PlanConflict says that the claim on the plan is lost. None wakes the engine's thread, so that
#: Python handles pending signals in it.
Event = Report | Request | ReservationsChanged | PlanConflict | None
Events = queue.SimpleQueue[Event]


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanRun:
    """Everything an engine needs for one run of one plan.

    ``recorder`` writes each turn; ``events`` is the queue that the engine reads; ``make_task``
    makes the task for an action's uuid, or for the name of a join. ``ranks`` are by uuid, the
    lowest starts first; without them the order of the plan decides. ``policies`` are by action
    type. ``workerless`` are the uuids of actions that do not count against ``max_workers``.
    ``held_by_others`` and ``requests`` are those known before the start; later ones come through
    ``events``.
    """

    plan: ActionPlan
    recorder: Recorder
    events: Events
    make_task: Callable[[str], Any]
    on_failure: OnFailure = OnFailure.SKIP_DESCENDANTS
    ranks: Mapping[str, int] | None = None
    policies: Mapping[str, TypePolicy] = field(default_factory=dict)
    workerless: Collection[str] = ()
    held_by_others: Sequence[Reservation] = ()
    requests: Sequence[Request] = ()


class Engine(Protocol):
    """Runs plans, up to ``max_workers`` actions at once.

    An engine is made with the value of each of its ``OPTIONS`` as a keyword argument.
    """

    #: Options of the section ``[watcher_workflow_engines.NAME]``; ``max_workers`` is one of them.
    OPTIONS: ClassVar[Sequence[cfg.Opt]]
    max_workers: int

    def run(self, run: PlanRun) -> Halt | None:
        """Run a plan until all its actions have ended or, after a pause, nothing runs.

        Returns what stopped it, or None. Raises what the recorder raises, after every running
        action has ended or was given up.
        """
