# SPDX-License-Identifier: Apache-2.0
"""Workflow engines: run the open actions of a plan, and record each start beforehand.

Plugins are registered under ``actionplan.engines``.
"""

from __future__ import annotations

import queue
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self

from applier.contracts import JobOffer, Report, Request
from applier.engines.recorder import Recorder
from applier.errors import PlanConflict
from applier.scheduling.concurrency import Concurrency
from applier.scheduling.decisions import Halt, Holding
from applier.scheduling.failures import NO_FAILURE_RULES, FailureRules
from applier.store import Reservation
from applier.store.worker_jobs import StopReason
from planner.plan.model import ActionPlan

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


class Executor(Protocol):
    """Executes the attempts of one run; only the engine's thread calls its methods.

    A task is a :class:`applier.engines.tasks.ActionTask`. Each submitted or adopted attempt ends
    with exactly one report, also if it fails, unless :meth:`let_go` has returned True for it. The
    report is passed, in any thread, to the function that the executor was made with. Leaving the
    context manager frees its threads and connections.
    """

    #: The number of attempts that may run at once.
    maximum: int
    #: The seconds, added to the grace period, for a stop signal to arrive and a report to return.
    away_s: float

    def offer(self, task: Any) -> JobOffer | None:
        """Prepare an attempt whose start is about to be recorded.

        Return the job to be recorded with the start; None if it runs in a thread of this process.
        """

    def grow(self, number: int, extra: int = 0) -> None:
        """Provide places for ``number`` attempts, but not more than ``maximum`` plus ``extra``.

        ``extra`` of the ``number`` attempts do not count against the maximum.
        """

    def submit(self, task: Any) -> None:
        """Execute an attempt whose start is on record."""

    def adopt(self, task: Any) -> None:
        """Follow to its end an attempt that another applier started and that still runs."""

    def stop(self, task: Any, why: StopReason) -> None:
        """Send an attempt the stop signal, upon which its plugin's abort is called; do not wait."""

    def let_go(self, task: Any) -> bool:
        """Leave an attempt to the next applier, because this one cannot record its end.

        Return True if the attempt goes on without this process; then no report of it follows. If
        False is returned, the caller has to stop it, which leaves its commands running.
        """

    def replace(self) -> None:
        """Allow one place more, because an attempt hangs and its place will not become free."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


#: Makes the executor of a run from the number of attempts at once and the receiver of reports.
MakeExecutor = Callable[[int, Callable[[Report], None]], Executor]


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanRun:
    """Everything that an engine needs for one run of one plan.

    ``recorder`` writes the decisions of the scheduler to the store. ``events`` is the queue that
    the engine reads. ``make_task`` makes the task of an action, given its uuid, or of a join, given
    its name. ``concurrency``, ``failures``, ``ranks``, ``holding`` and ``given_up`` are those of
    :class:`applier.scheduling.scheduler.Scheduler`. ``held_by_others`` are the reservations of
    other plans at the start, ``requests`` the requests until then; later ones come as ``events``.
    ``make_executor`` makes the executor of the attempts; without it, they run in threads of this
    process.
    """

    plan: ActionPlan
    recorder: Recorder
    events: Events
    make_task: Callable[[str], Any]
    concurrency: Concurrency
    failures: FailureRules = NO_FAILURE_RULES
    ranks: Mapping[str, int] | None = None
    held_by_others: Sequence[Reservation] = ()
    requests: Sequence[Request] = ()
    given_up: Collection[str] = ()
    holding: Holding | None = None
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
