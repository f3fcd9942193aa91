# SPDX-License-Identifier: Apache-2.0
"""LinearEngine: a taskflow engine for flows of actions, linear in actions and links.

When a task has ended, taskflow's own engine examines each successor and all predecessors of each
successor. This engine counts down open predecessors instead. One thread owns all state. Workers
only run actions, and put reports into the queue of that thread.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from taskflow import exceptions, flow, states, storage
from taskflow.engines import base
from taskflow.patterns import graph_flow
from taskflow.types import graph as graphs

from applier.contracts import Report, Request, RequestVerb
from applier.engines.attempts_in_progress import AttemptsInProgress, Threads, Timer, Timers
from applier.engines.engine import Event, Executor, PlanRun, ReservationsChanged
from applier.errors import PlanConflict
from applier.scheduling.decisions import Decisions, Halt, HaltReason, Holding
from applier.scheduling.scheduler import Scheduler
from applier.store import Reservation
from planner.plan.states import WELL, ActionState

_REQUIRED = ("run", "max_workers", "grace_s")


@dataclass(kw_only=True, slots=True)
class _Incoming:
    """The events since the last decisions, except the reports, which the recorder collects."""

    requests: list[Request] = field(default_factory=list)
    elapsed: list[str] = field(default_factory=list)
    held_by_others: tuple[Reservation, ...] | None = None
    reopened: bool = False


class PlanFlow(graph_flow.Flow):
    """A graph flow with a task for each node of an order graph, and a link for each of its edges.

    The nodes are actions, and groups of links that many actions share. ``after`` maps each to its
    successors. ``make_task`` makes the task of a node from its name. ``tasks`` maps names to tasks.
    The flow gets its graph at once, because ``add`` and ``link`` of graph flows copy and check the
    whole graph each time. A cycle raises taskflow's DependencyFailure.

    The flow only has the order of a plan. Its limits, groups of alternatives and triggers, and what
    runs after a failure, are decided by :mod:`applier.scheduling`, for the engine ``actionplan``.
    How many actions run at once is an option of the engine, ``max_workers``.
    """

    def __init__(
        self, name: str, after: Mapping[str, Sequence[str]], make_task: Callable[[str], Any]
    ) -> None:
        super().__init__(name)
        tasks = self.tasks = {node: make_task(node) for node in after}
        graph = graphs.DiGraph(name=name)
        graph.add_nodes_from(tasks.values())
        links = ((tasks[one], tasks[other]) for one, later in after.items() for other in later)
        graph.add_edges_from(links, **{flow.LINK_MANUAL: True})
        self._swap(graph)

    def add(self, *items: Any, **_options: Any) -> PlanFlow:
        """Raise TypeError: a flow is made with all tasks of its plan."""
        raise TypeError(f"{self} has all tasks of its plan, so that {len(items)} cannot be added")


class LinearEngine(base.Engine):
    """Runs a :class:`PlanFlow` of :mod:`applier.engines.tasks`.

    Its options are ``run`` (:class:`applier.engines.engine.PlanRun`), ``max_workers``, ``grace_s``
    and ``clock``. ``grace_s`` is the number of seconds that an action may run after its stop
    signal; then it is given up. ``clock`` replaces ``time.monotonic``. Only the links of the flow
    determine the order of the actions.

    An action starts only after its start was committed. Its end is committed before any action that
    depends on it starts. If the recorder raises an error, no more actions start, running actions
    are stopped and awaited for up to ``grace_s`` seconds; then :meth:`run` raises the error.
    """

    def __init__(self, flow: Any, flow_detail: Any, backend: Any, options: Any) -> None:
        super().__init__(flow, flow_detail, backend, options)
        missing = [name for name in _REQUIRED if name not in self._options]
        if missing:
            raise ValueError(f"engine 'actionplan' lacks the options {', '.join(missing)}")
        self._storage = storage.Storage(flow_detail, backend=backend)
        self._run: PlanRun = self._options["run"]
        self._events, self._recorder = self._run.events, self._run.recorder
        self._tasks: Mapping[str, Any] = {}
        self._scheduler: Scheduler | None = None
        self._clock = self._options.get("clock", time.monotonic)
        self._timers = Timers(self._clock)
        self._incoming = _Incoming()
        self._decided = 0

    @property
    def storage(self) -> Any:
        """The storage of taskflow, which holds the state of the flow in memory."""
        return self._storage

    @property
    def statistics(self) -> dict[str, int]:
        """The numbers of ``decisions`` and of actions that the gates ``examined`` so far."""
        if self._scheduler is None:
            return {}
        return {"decisions": self._decided, "examined": self._scheduler.examined}

    @property
    def halt(self) -> Halt | None:
        """The reason why no more actions were started; None if there was no halt."""
        return self._scheduler.halt if self._scheduler else None

    def compile(self) -> None:
        """Make the scheduler, which gets the order of the actions from the links of the flow.

        Raises taskflow's CompilationFailure for another flow than that of a plan.
        """
        self._compiled()

    def _compiled(self) -> Scheduler:
        if self._scheduler is None:
            if not isinstance(self._flow, PlanFlow):
                raise exceptions.CompilationFailure(
                    f"{self._flow} is not the flow of a plan: the engine 'actionplan' runs flows "
                    "of applier.engines.linear"
                )
            self._tasks = self._flow.tasks
            after: dict[str, list[str]] = {name: [] for name in self._tasks}
            for task, later, _ in self._flow.iter_links():
                after[task.name].append(later.name)
            run, max_workers = self._run, self._options["max_workers"]
            self._scheduler = Scheduler(
                run.plan.actions,
                after,
                replace(run.concurrency, max_workers=max_workers),
                run.failures,
                run.ranks,
                run.holding,
                run.given_up,
            )
        return self._scheduler

    def prepare(self) -> None:
        """Do nothing: taskflow's own engines save their tasks here, this one saves none."""

    def validate(self) -> None:
        """Do nothing: :meth:`compile` accepts only a PlanFlow, whose tasks have no requirements."""

    def reset(self) -> None:
        """Reset the state of the last run, so that the flow can be run again."""
        self._scheduler = None

    def suspend(self) -> None:
        """Request a pause, from any thread; :meth:`run` returns when running actions have ended."""
        self._events.put(Request(verb=RequestVerb.PAUSE, who="taskflow"))

    def run(self) -> None:
        """Run the flow until all actions have ended or, after a halt, no action runs.

        The states of the actions are in the recorder; a failed action does not raise an exception.
        """
        scheduler = self._compiled()
        self._change_state(states.RUNNING)
        result = states.FAILURE
        try:
            make = self._run.make_executor or Threads
            with make(self._options["max_workers"], self._events.put) as executor:
                grace_s = self._options["grace_s"]
                running = AttemptsInProgress(self._tasks, executor, self._timers, grace_s=grace_s)
                try:
                    self._loop(scheduler, running, executor)
                finally:
                    self._await_attempts(running)
            result = _flow_state(scheduler)
        finally:
            if result == states.SUSPENDED:
                self._change_state(states.SUSPENDING)
            self._change_state(result)

    def _loop(self, scheduler: Scheduler, running: AttemptsInProgress, executor: Executor) -> None:
        self._incoming.requests += self._run.requests
        if not self._events.empty():
            self._gather(running)
        first, self._incoming = self._incoming, _Incoming()
        held_by_others = (
            self._run.held_by_others if first.held_by_others is None else first.held_by_others
        )
        for uuid in scheduler.running:  # their commands were started by another applier
            running.start(uuid)
        self._carry_out(scheduler.begin(first.requests, held_by_others), running, executor)
        while not scheduler.done:
            if self._run.holding is not None:
                self._await_opening(scheduler, self._run.holding)
            self._gather(running)
            running.grow()
            incoming, self._incoming = self._incoming, _Incoming()
            if self._run.holding is not None and self._recorder.incoming:
                self._run.holding.ended()
            decisions = scheduler.decide(
                self._recorder.incoming,
                incoming.requests,
                elapsed=incoming.elapsed,
                held_by_others=incoming.held_by_others,
                reopened=incoming.reopened,
            )
            self._carry_out(decisions, running, executor)

    def _await_opening(self, scheduler: Scheduler, holding: Holding) -> None:
        """Set the timer after which actions that are held back may start, or hand the plan back."""
        holding.tell(len(scheduler.held))
        if not scheduler.held:
            return
        seconds = holding.again_s()
        if seconds is not None or scheduler.running:
            self._timers.set(_OPENING, _LONGEST_HELD_S if seconds is None else seconds)
        else:
            why = "all that is left waits for a window"
            who = "the applier"
            self._events.put(Request(verb=RequestVerb.HAND_BACK, who=who, why=why))

    def _gather(self, running: AttemptsInProgress, most_s: float | None = None) -> None:
        """Wait up to ``most_s`` seconds for an event or a timer, then process all that are due.

        If attempts run, wait a moment longer after an event, so that more ends share its commit.
        """
        left = [s for s in (most_s, self._timers.left_s()) if s is not None]
        try:
            event = self._events.get(timeout=min(*left, _LONGEST_S)) if left else self._events.get()
            self._take_in(event, running)
            end = self._clock() + _TOGETHER_S
            while running or not self._events.empty():
                self._take_in(self._events.get(timeout=max(0.0, end - self._clock())), running)
        except queue.Empty:
            pass  # a timer, or no more events
        for timer in self._timers.due() if left else ():
            if timer.kind == "delay":
                self._incoming.elapsed.append(timer.uuid)
            elif timer == _OPENING:
                self._incoming.reopened = True
            elif (report := running.due(timer)) is not None:
                self._recorder.incoming.append(report)

    def _take_in(self, event: Event, running: AttemptsInProgress) -> None:
        if isinstance(event, Report):
            if running.ended(event):
                self._recorder.incoming.append(event)
        elif isinstance(event, Request):
            self._incoming.requests.append(event)
        elif isinstance(event, ReservationsChanged):
            self._incoming.held_by_others = event.reservations
        elif isinstance(event, PlanConflict):
            raise event

    def _carry_out(
        self, decisions: Decisions, running: AttemptsInProgress, executor: Executor
    ) -> None:
        """Commit decisions, then carry them out."""
        self._decided += 1
        jobs = {
            uuid: job
            for uuid in decisions.starts
            if self._tasks[uuid].waits_s is None
            and (job := executor.offer(self._tasks[uuid])) is not None
        }
        ended = [*self._recorder.incoming, *decisions.ended]
        self._recorder.commit(decisions, lambda seconds: self._linger(running, seconds), jobs)
        for report in ended:
            if report.old is ActionState.ONGOING and report.state is not ActionState.UNKNOWN:
                self._tasks[report.uuid].forget()
        if decisions.max_workers is not None:
            executor.maximum = decisions.max_workers
        for uuid, seconds in decisions.delays:
            self._tasks[uuid].renew()
            self._timers.set(Timer("delay", uuid), seconds)
        for uuid in decisions.starts:
            running.start(uuid)
        for uuid in decisions.stops:
            if (report := running.stop(uuid)) is not None:
                self._recorder.incoming.append(report)
                self._events.put(None)
        if len(self.atom_notifier):
            self._notify(ended, decisions.starts)

    def _linger(self, running: AttemptsInProgress, seconds: float) -> None:
        """Wait before the store is tried again; keep events that come in for the next decisions."""
        end = self._clock() + seconds
        while (left := end - self._clock()) > 0:
            self._gather(running, left)

    def _await_attempts(self, running: AttemptsInProgress) -> None:
        """Stop all attempts and wait for them, so that none runs after :meth:`run` has raised."""
        running.stop_all()
        while running:
            try:
                self._gather(running)
            except PlanConflict:
                continue  # the run ends with an exception already

    def _change_state(self, state: str) -> None:
        changed, old = self._storage.change_flow_state(state)
        if changed:
            details = {"engine": self, "old_state": old}
            details["flow_name"] = self._storage.flow_name
            details["flow_uuid"] = self._storage.flow_uuid
            self.notifier.notify(state, details)

    def _notify(self, ended: Iterable[Report], starts: Iterable[str]) -> None:
        for report in ended:
            started = report.old is ActionState.ONGOING
            old = states.RUNNING if started else states.PENDING
            new = states.FAILURE if started else states.IGNORE
            if report.state is ActionState.SUCCEEDED or (started and report.state in WELL):
                new = states.SUCCESS
            details = {"task_name": report.uuid, "task_uuid": report.uuid, "old_state": old}
            self.atom_notifier.notify(new, {**details, "result": report})
        for uuid in starts:
            details = {"task_name": uuid, "task_uuid": uuid, "old_state": states.PENDING}
            self.atom_notifier.notify(states.RUNNING, details)


#: The timer after which actions that are held back may start.
_OPENING = Timer("opening", "")
#: The seconds until that timer, if others run and it is not known when held actions may start.
_LONGEST_HELD_S = 60.0
#: The longest wait at once, in seconds: the time-out of a queue has an upper bound.
_LONGEST_S = 3600.0
#: How long to wait for more events after one, in seconds: about as long as a commit takes.
_TOGETHER_S = 0.001


def _flow_state(scheduler: Scheduler) -> Any:
    if scheduler.stopped in (HaltReason.PAUSED, HaltReason.HANDED_BACK):
        return states.SUSPENDED
    return states.SUCCESS if scheduler.well else states.FAILURE
