# SPDX-License-Identifier: Apache-2.0
"""The scheduler: ends of actions go in, and what to do next comes out. Pure.

It has no clock, no threads and no I/O. The engine drives it with the reports of its workers, the
forecast with a simulated clock, so that both agree. One turn is:

1. Take in how running actions ended, and follow the requests of operators.
2. Count down what each action waits for. An action that waits for nothing more is due.
3. Decide for each due action whether it runs. If not, it ends at once, and others may become due.
4. Start those that the gates admit.

Linear in actions and links.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from applier.contracts import Report, Request, RequestVerb
from applier.scheduling.countdown import Countdown
from applier.scheduling.gates import Gates
from applier.scheduling.tolerances import Tolerances
from applier.scheduling.turn import Halt, Stopped, Turn, WaitReason
from applier.scheduling.type_policy import Retries, TypePolicy
from applier.scheduling.verdict import End, OnFailure, Verdicts, ending
from applier.scheduling.waiting import Waiting
from applier.store import Reservation
from planner.model import JOIN, Action
from planner.states import WELL, ActionState, StateReason

#: The name of the number of workers among the limits of a request.
MAX_WORKERS = "max_workers"
_FAILURES = frozenset({ActionState.FAILED, ActionState.UNKNOWN})


class Scheduler:
    """Schedules one run of one plan.

    ``after`` maps each name to those that wait for it (:func:`applier.scheduling.order.links`). A
    name that is no action's is a join inside the flow, and is not recorded. ``ended`` are the
    actions that ended in an earlier run. ``ranks`` are by uuid: of several actions that may start,
    the lowest rank starts first; without ranks, the first in the plan. ``policies`` are by action
    type. ``workerless`` are the actions that do not count against ``max_workers``. Once a group of
    ``tolerances`` has more failed nodes than it may, nothing new starts, and every action that has
    not started is cancelled.
    """

    def __init__(
        self,
        actions: Iterable[Action],
        after: Mapping[str, Sequence[str]],
        *,
        limits: Mapping[str, int],
        max_workers: int,
        on_failure: OnFailure = OnFailure.SKIP_DESCENDANTS,
        ranks: Mapping[str, int] | None = None,
        ended: Mapping[str, End] | None = None,
        policies: Mapping[str, TypePolicy] | None = None,
        workerless: Collection[str] = (),
        tolerances: Iterable[Mapping[str, Any]] = (),
    ) -> None:
        self._actions = {a.uuid: a for a in actions}
        ranks = ranks or {uuid: i for i, uuid in enumerate(self._actions)}
        self._on_failure = on_failure
        self._verdicts = Verdicts(self._actions, ended or {}, on_failure)
        self._gates = Gates(limits, max_workers)
        self._waiting = Waiting(self._gates, self._actions, ranks, workerless)
        groups = {
            uuid: action.needs_any
            for uuid, action in self._actions.items()
            if action.needs_any and uuid not in self._verdicts
        }
        self._countdown = Countdown(after, groups)
        #: How many actions have not ended.
        self._open = sum(uuid not in self._verdicts for uuid in self._actions)
        #: The running actions, in the order of their starts.
        self._running: dict[str, None] = {}
        #: The request to skip an action, until its turn comes.
        self._skips: dict[str, Request] = {}
        self._retries = Retries(policies or {})
        self._tolerances = Tolerances(tolerances)
        #: Actions that were told to stop: they are not retried.
        self._aborted: set[str] = set()
        #: Names that wait for nothing more, and about which nothing is decided yet.
        self._due: deque[str] = deque()
        #: The turn that is being made.
        self._turn = Turn()
        #: Why nothing new starts; None while actions may start.
        self.halt: Halt | None = None
        for uuid, end in (ended or {}).items():
            self._count_failed_nodes(self._actions[uuid], end.state)

    @property
    def stopped(self) -> Stopped | None:
        """The kind of the halt, if there is one."""
        return self.halt.stopped if self.halt else None

    @property
    def running(self) -> Collection[str]:
        """The actions that have started and not ended, in the order of their starts."""
        return self._running.keys()

    @property
    def done(self) -> bool:
        """True once nothing runs and nothing more will run: all has ended, or there is a halt."""
        return not self._running and (not self._open or self.halt is not None)

    @property
    def well(self) -> bool:
        """True while no action has ended badly."""
        return self._verdicts.all_well

    @property
    def examined(self) -> int:
        """How many times the gates examined an action so far."""
        return self._gates.examined

    def begin(
        self, requests: Iterable[Request] = (), held_by_others: Iterable[Reservation] = ()
    ) -> Turn:
        """Return the first turn. ``requests`` and ``held_by_others`` are known before it."""
        self._waiting.hear(held_by_others)
        self._due += self._countdown.due()
        for uuid in self._actions:
            if uuid not in self._countdown:  # it ended in an earlier run, and has no links now
                self._due += self._countdown.passed(uuid, self._verdicts.well(uuid))
        return self._made(requests)

    def turn(
        self,
        reports: Iterable[Report],
        requests: Sequence[Request] = (),
        *,
        elapsed: Iterable[str] = (),
        held_by_others: Iterable[Reservation] | None = None,
    ) -> Turn:
        """Take in ends and requests, and return what to do.

        Requests apply to every action that these ends make due. ``elapsed`` are the actions whose
        delay is over. ``held_by_others``, if given, are all resources that other plans hold now.
        """
        unwanted = {r.action for r in requests if r.verb in (RequestVerb.SKIP, RequestVerb.ABORT)}
        cancelled = any(r.verb == RequestVerb.CANCEL for r in requests)
        for report in reports:
            self._take_in(report, retry=not (cancelled or report.uuid in unwanted))
        if held_by_others is not None:
            self._waiting.hear(held_by_others)
        self._waiting.elapsed(elapsed)
        return self._made(requests)

    def why(self, uuid: str) -> WaitReason | None:
        """Return what an action waits for; None if it runs, has ended, or will never start."""
        action = self._actions[uuid]
        if uuid in self._verdicts or uuid in self._running or self.halt:
            return None
        why = self._waiting.why(uuid, self._running)
        if why is not None:
            return why
        left = tuple(u for u in action.before() if u not in self._verdicts)
        if left:
            return WaitReason("all", left)
        for group in action.needs_any:
            if not any(u in self._verdicts and self._verdicts.well(u) for u in group):
                return WaitReason("any", tuple(u for u in group if u not in self._verdicts))
        return None

    def _made(self, requests: Iterable[Request]) -> Turn:
        """Follow the requests, decide what follows from everything, and hand out the turn."""
        for request in requests:
            self._follow(request)
        if self.halt is None:
            self._advance()
        elif self.halt.stopped is Stopped.EXCEEDED and self._open > len(self._running):
            self._cancel_unstarted(self.halt.why)
        made, self._turn = self._turn, Turn()
        return made

    # Ends of running actions

    def _take_in(self, report: Report, *, retry: bool) -> None:
        """Take in the end of an attempt. ``retry`` tells whether another attempt may follow."""
        uuid, action = report.uuid, self._actions[report.uuid]
        del self._running[uuid]
        if report.given_up:
            self._gates.lose(uuid)
        else:
            self._gates.release(uuid)
        if report.state is ActionState.FAILED and retry and self._may_retry(uuid):
            delay = self._retries.next_delay_s(action)
            if delay is not None:
                self._waiting.delayed.add(uuid)
                self._turn.delays.append((uuid, delay))
                return
        if self._on_failure is OnFailure.PAUSE and report.state in _FAILURES:
            self._halt(Stopped.PAUSED, f"paused because {action.label} ended {report.state}")
        self._note(report)

    def _may_retry(self, uuid: str) -> bool:
        over = self.stopped in (Stopped.CANCELLED, Stopped.EXCEEDED)
        return uuid not in self._aborted and not over

    def _note(self, report: Report) -> None:
        """Note the end of an action, and count down those that wait for it."""
        self._verdicts.note(report)
        self._count_failed_nodes(self._actions[report.uuid], report.state)
        self._open -= 1
        self._due += self._countdown.passed(report.uuid, report.state in WELL)

    def _count_failed_nodes(self, action: Action, state: ActionState) -> None:
        exceeded = self._tolerances.note(action, state)
        if exceeded:
            self._halt(Stopped.EXCEEDED, f"nothing more starts: {exceeded}")

    def _halt(self, stopped: Stopped, why: str) -> None:
        """Start nothing new from now on. A halt is replaced only by a stronger one."""
        if self.halt is None or stopped.strength > self.halt.stopped.strength:
            self.halt = Halt(stopped, why)

    # Requests

    def _follow(self, request: Request) -> None:
        if not self._open:
            return  # it comes too late
        match request.verb:
            case RequestVerb.CANCEL:
                self._cancel(request)
            case RequestVerb.PAUSE:
                self._halt(Stopped.PAUSED, f"paused {_by(request)}")
            case RequestVerb.HAND_BACK:
                self._halt(Stopped.HANDED_BACK, f"paused {_by(request, ', which hands it back')}")
            case RequestVerb.LIMIT:
                self._change_limits(request.limits)
            case RequestVerb.SKIP:
                self._skip(request)
            case RequestVerb.ABORT:
                self._abort(request)

    def _cancel(self, request: Request) -> None:
        if self.stopped is Stopped.CANCELLED:
            return
        self._turn.cancelling = f"cancelled {_by(request)}"
        self._halt(Stopped.CANCELLED, self._turn.cancelling)
        self._turn.stops += self._running
        self._cancel_unstarted(f"the plan was cancelled {_by(request)}")

    def _change_limits(self, limits: Mapping[str, int]) -> None:
        for name, number in limits.items():
            if name == MAX_WORKERS:
                self._gates.set_workers(number)
                self._turn.max_workers = number
            else:
                self._gates.set_limit(name, number)

    def _skip(self, request: Request) -> None:
        """Skip an action in its turn; one that is due and waits is skipped now."""
        uuid = request.action
        if uuid in self._actions and uuid not in self._verdicts:
            self._skips[uuid] = request
            if self._waiting.withdraw(uuid):
                self._due.append(uuid)

    def _abort(self, request: Request) -> None:
        """Stop a running action, or end one that waits for its retry; leave any other as it is."""
        uuid = request.action
        if uuid in self._running:
            self._aborted.add(uuid)
            self._turn.stops.append(uuid)
        elif uuid in self._waiting.delayed:
            self._waiting.withdraw(uuid)
            self._end(ending(self._actions[uuid], ActionState.CANCELLED, f"aborted {_by(request)}"))

    # What follows

    def _advance(self) -> None:
        """Decide about all that is due and start what may start, until only running actions count.

        If nothing runs and nothing can start any more, cancel what is left.
        """
        self._decide()
        self._start()
        while self._stuck():
            if not self._cancel_lost():
                self._cancel_unstarted("nothing is left that could let it start")
                return
            self._decide()
            self._start()

    def _decide(self) -> None:
        """Decide for each due action whether it runs; its end may make others due."""
        while self._due:
            name = self._due.popleft()
            action = self._actions.get(name)
            if action is None or name in self._verdicts:
                # A join inside the flow, or an action that ended in an earlier run.
                self._due += self._countdown.passed(name, self._verdicts.well(name))
                continue
            report = self._verdict(action)
            if report is None:
                self._waiting.submit(name)
            else:
                self._end(report)

    def _verdict(self, action: Action) -> Report | None:
        """Return how a due action ends without running; None if it runs."""
        request = self._skips.get(action.uuid)
        if request is not None:
            message = f"skipped {_by(request)}"
            return ending(action, ActionState.SKIPPED, message, reason=StateReason.OPERATOR)
        report = self._verdicts.on(action)
        if report is None and action.action_type == JOIN:
            return ending(action, ActionState.SUCCEEDED)
        return report

    def _start(self) -> None:
        while (uuid := self._waiting.take()) is not None:
            self._running[uuid] = None
            self._turn.starts.append(uuid)

    def _stuck(self) -> bool:
        """Return whether actions are left, none runs, and none will start by itself."""
        return bool(self._open) and not (self._running or self._waiting.for_others)

    def _cancel_lost(self) -> bool:
        """Cancel what waits for a token of an action that was given up; return whether any did."""
        found = self._waiting.lost()
        for uuid, token, keeper in found:
            self._waiting.withdraw(uuid)
            message = f"{token} is held by {self._actions[keeper].label}, which hangs"
            self._end(ending(self._actions[uuid], ActionState.CANCELLED, message))
        return bool(found)

    def _cancel_unstarted(self, message: str) -> None:
        """Cancel every action that has neither started nor ended."""
        for uuid, action in self._actions.items():
            if uuid not in self._verdicts and uuid not in self._running:
                report = ending(action, ActionState.CANCELLED, message)
                self._turn.ended.append(report)
                self._verdicts.note(report)
                self._open -= 1
        self._waiting.clear()

    def _end(self, report: Report) -> None:
        """End an action that has not started."""
        self._turn.ended.append(report)
        self._note(report)


def _by(request: Request, relation: str = "") -> str:
    """Say who asked, and why: ``by ann: enough``."""
    return f"by {request.who}{relation}" + (f": {request.why}" if request.why else "")
