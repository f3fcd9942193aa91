# SPDX-License-Identifier: Apache-2.0
"""Workflow engines: run the open actions of a plan, and record each start beforehand.

Plugins are registered under ``actionplan.engines``.
"""

from __future__ import annotations

import queue
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from applier.contracts import Report, Request
from applier.engines.executor import MakeExecutor
from applier.errors import PlanConflict
from applier.recording.recorder import Recorder
from applier.scheduling.decisions import Halt
from applier.scheduling.holding import Breaker, Holding
from applier.scheduling.verdict import OnFailure, TypePolicy
from applier.store import Reservation
from planner.model import ActionPlan

if TYPE_CHECKING:
    from oslo_config import cfg


class ReservationsChanged(NamedTuple):
    """An event: the resources that other plans hold have changed; these are all of them now."""

    reservations: tuple[Reservation, ...]


#: An event for a running engine. Any thread and any signal handler may put events into its queue. A
#: PlanConflict means that the claim on the plan is lost. None wakes the engine's thread, so that
#: Python handles pending signals in it.
Event = Report | Request | ReservationsChanged | PlanConflict | None
Events = queue.SimpleQueue[Event]


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanRun:
    """Everything that an engine needs for one run of one plan.

    ``recorder`` writes the decisions of the scheduler to the store. ``events`` is the queue that
    the engine reads. ``make_task`` makes the task of an action, given its uuid, or of a join, given
    its name. ``ranks`` are by uuid: the lowest starts first; without them, plan order decides.
    ``policies`` are by action type. ``workerless`` are the uuids of actions that do not count
    against ``max_workers``. ``held_by_others`` are the reservations of other plans at the start,
    ``requests`` the requests until then; later ones come as ``events``. ``given_up`` are the uuids
    of UNKNOWN actions of which a command may still run: their tokens stay held. ``holding`` may
    delay actions that could start, ``breaker`` may pause the plan after a failure.
    ``make_executor`` makes the executor of the attempts; without it, they run in threads of this
    process.
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
    given_up: Collection[str] = ()
    holding: Holding | None = None
    breaker: Breaker | None = None
    make_executor: MakeExecutor | None = None


class Engine(Protocol):
    """Base class of engines: runs plans, up to ``max_workers`` actions at once.

    The value of each of its ``OPTIONS`` is passed to its constructor as a keyword argument.
    """

    #: Options of the section ``[watcher_workflow_engines.NAME]``; ``max_workers`` is one of them.
    OPTIONS: ClassVar[Sequence[cfg.Opt]]
    max_workers: int

    @abstractmethod
    def run(self, run: PlanRun) -> Halt | None:
        """Run a plan until all its actions have ended or, after a halt, no action runs.

        Returns the halt, which is the reason why no more actions were started, or None. Raises the
        errors of the recorder, after every running action has ended or was given up.
        """
