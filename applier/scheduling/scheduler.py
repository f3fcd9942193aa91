"""The scheduler: what ended goes in, what may start now comes out. Pure.

It has no clock, no threads and no I/O. The engine drives it with what its workers report, the
forecast with a simulated clock, so the two cannot disagree. A turn is: requests and ends come in;
links are counted down; whatever has nothing left to wait for gets its verdict; what may run waits
at the gates; the gates say what starts. Linear in actions and links.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from applier.contracts import Report, Request
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


class Scheduler:
    """Runs one plan once.

    ``after`` gives for each name those that wait for it (:func:`applier.scheduling.order.links`);
    a name that is no action's is a join inside the flow, and leaves no record. ``ended`` are the
    actions that ended in an earlier run: those that ``after`` leaves out are behind us, the others
    pass their turn on. ``ranks`` decides who is first among those that may start, lowest first;
    without it, the place in the plan does. ``policies`` go by action type; ``workerless`` are the
    actions that do not count against ``max_workers``; ``tolerances`` are the plan's: beyond them
    nothing new starts, and whatever has not started is cancelled.
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
        self._open = sum(uuid not in self._verdicts for uuid in self._actions)
        self._running: dict[str, None] = {}
        self._skips: dict[str, Request] = {}
        self._retries = Retries(policies or {})
        self._tolerances = Tolerances(tolerances)
        #: Those that were told to stop: they are not tried again.
        self._aborted: set[str] = set()
        #: Why nothing new starts; None as long as something may.
        self.halt: Halt | None = None
        for uuid, end in (ended or {}).items():
            self._count(self._actions[uuid], end.state)

    @property
    def stopped(self) -> Stopped | None:
        """What kind of halt there is, if there is one."""
        return self.halt.stopped if self.halt else None

    @property
    def running(self) -> Collection[str]:
        """The actions that have started and not ended, in the order of their starts."""
        return self._running.keys()

    @property
    def done(self) -> bool:
        """True once nothing runs and nothing more will: all has ended, or the plan is paused."""
        return not self._running and (not self._open or self.halt is not None)

    @property
    def well(self) -> bool:
        """True as long as all that ended has ended well."""
        return self._verdicts.all_well

    @property
    def examined(self) -> int:
        """How many actions the gates looked at so far."""
        return self._gates.examined

    def begin(
        self, requests: Iterable[Request] = (), held_by_others: Iterable[Reservation] = ()
    ) -> Turn:
        """Give the first turn; ``requests`` and ``held_by_others`` are those from before it."""
        self._waiting.hear(held_by_others)
        due = deque(self._countdown.due())
        for uuid in self._actions:
            if uuid not in self._countdown:  # it ended in an earlier run and is behind us
                due += self._countdown.passed(uuid, self._verdicts.well(uuid))
        return self._go_on(Turn(), due, requests)

    def turn(
        self,
        reports: Iterable[Report],
        requests: Sequence[Request] = (),
        *,
        elapsed: Iterable[str] = (),
        held_by_others: Iterable[Reservation] | None = None,
    ) -> Turn:
        """Take in what ended and what operators want; say what follows from it.

        Requests hold for all that became due by these reports. ``elapsed`` are those whose delay is
        over; ``held_by_others``, when it is given, is all that other plans hold now.
        """
        turn, due = Turn(), deque[str]()
        unwanted = {w.action for w in requests if w.verb in ("skip", "abort")}
        cancelled = any(w.verb == "cancel" for w in requests)
        for report in reports:
            retried = not (cancelled or report.uuid in unwanted)
            self._take_in(report, turn, due, retried)
        if held_by_others is not None:
            self._waiting.hear(held_by_others)
        self._waiting.elapsed(elapsed)
        return self._go_on(turn, due, requests)

    def why(self, uuid: str) -> WaitReason | None:
        """Say what an action waits for; None if it runs, has ended, or may not start any more."""
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

    def _take_in(self, report: Report, turn: Turn, due: deque[str], retried: bool) -> None:
        """Take in how an attempt ended; ``retried`` says whether another may follow."""
        uuid, action = report.uuid, self._actions[report.uuid]
        del self._running[uuid]
        if report.given_up:
            self._gates.lose(uuid)
        else:
            self._gates.release(uuid)
        if report.state is ActionState.FAILED and retried and self._may_retry(uuid):
            delay = self._retries.next_delay_s(action)
            if delay is not None:
                self._waiting.delayed.add(uuid)
                turn.delays.append((uuid, delay))
                return
        if self._on_failure is OnFailure.PAUSE and report.state in _FAILURES:
            why = f"paused because {action.label} ended {report.state}"
            self.halt = self.halt or Halt(Stopped.PAUSED, why)
        self._note(report, due)

    def _count(self, action: Action, state: ActionState) -> None:
        exceeded = self._tolerances.note(action, state)
        if exceeded and self.halt is None:
            self.halt = Halt(Stopped.EXCEEDED, f"nothing more starts: {exceeded}")

    def _may_retry(self, uuid: str) -> bool:
        over = self.stopped in (Stopped.CANCELLED, Stopped.EXCEEDED)
        return uuid not in self._aborted and not over

    def _go_on(self, turn: Turn, due: deque[str], requests: Iterable[Request]) -> Turn:
        for request in requests:
            self._hear(request, turn, due)
        if self.halt is None:
            self._settle(turn, due)
            self._start(turn)
            while self._stuck() and self._drop_waiting(turn, due):
                self._settle(turn, due)
                self._start(turn)
            if self._stuck():
                self._end_all(turn, "nothing is left that could let it start")
        elif self.halt.stopped is Stopped.EXCEEDED and self._open > len(self._running):
            self._end_all(turn, self.halt.why)
        return turn

    def _start(self, turn: Turn) -> None:
        while (uuid := self._waiting.take()) is not None:
            self._running[uuid] = None
            turn.starts.append(uuid)

    def _stuck(self) -> bool:
        """Has nothing ended, and will nothing end that could let anything start?"""
        return bool(self._open) and not (self._running or self._waiting.for_others)

    def _drop_waiting(self, turn: Turn, due: deque[str]) -> bool:
        """Cancel what waits for tokens that a lost action keeps; says whether there was any."""
        found = self._waiting.lost()
        for uuid, token, keeper in found:
            self._waiting.withdraw(uuid)
            message = f"{token} is held by {self._actions[keeper].label}, which hangs"
            report = ending(self._actions[uuid], ActionState.CANCELLED, message)
            turn.ended.append(report)
            self._note(report, due)
        return bool(found)

    def _hear(self, request: Request, turn: Turn, due: deque[str]) -> None:
        if not self._open:
            return  # it comes too late
        who = f"by {request.who}" + (f": {request.why}" if request.why else "")
        if request.verb == "cancel" and self.stopped is not Stopped.CANCELLED:
            turn.cancelling = f"cancelled {who}"
            self.halt = Halt(Stopped.CANCELLED, turn.cancelling)
            turn.stops += self._running
            self._end_all(turn, f"the plan was cancelled {who}")
        elif request.verb == "pause":
            self.halt = self.halt or Halt(Stopped.PAUSED, f"paused {who}")
        elif request.verb == "limit":
            self._limit(request, turn)
        elif request.action in self._actions and request.action not in self._verdicts:
            if request.verb == "skip":
                self._skip(request.action, request, due)
            elif request.verb == "abort":
                self._abort(request.action, f"aborted {who}", turn, due)

    def _skip(self, uuid: str, request: Request, due: deque[str]) -> None:
        self._skips[uuid] = request
        if self._waiting.withdraw(uuid):
            due.append(uuid)

    def _abort(self, uuid: str, message: str, turn: Turn, due: deque[str]) -> None:
        """Tell one action to stop, or to try no more; what has not begun is left as it is."""
        if uuid in self._running:
            self._aborted.add(uuid)
            turn.stops.append(uuid)
        elif uuid in self._waiting.delayed:
            self._waiting.withdraw(uuid)
            report = ending(self._actions[uuid], ActionState.CANCELLED, message)
            turn.ended.append(report)
            self._note(report, due)

    def _limit(self, request: Request, turn: Turn) -> None:
        for name, number in request.limits.items():
            if name == MAX_WORKERS:
                self._gates.set_workers(number)
                turn.max_workers = number
            else:
                self._gates.set_limit(name, number)

    def _settle(self, turn: Turn, due: deque[str]) -> None:
        """Give what is due its verdict, and what becomes due by that."""
        while due:
            name = due.popleft()
            action = self._actions.get(name)
            if action is None or name in self._verdicts:
                # A join inside the flow, or it ended in an earlier run.
                due += self._countdown.passed(name, self._verdicts.well(name))
                continue
            report = self._verdict(action)
            if report is not None:
                turn.ended.append(report)
                self._note(report, due)
            else:
                self._waiting.submit(name)

    def _verdict(self, action: Action) -> Report | None:
        request = self._skips.get(action.uuid)
        if request is not None:
            message = f"skipped by {request.who}" + (f": {request.why}" if request.why else "")
            return ending(action, ActionState.SKIPPED, message, reason=StateReason.OPERATOR)
        report = self._verdicts.on(action)
        if report is None and action.action_type == JOIN:
            return ending(action, ActionState.SUCCEEDED)
        return report

    def _note(self, report: Report, due: deque[str]) -> None:
        self._verdicts.note(report)
        self._count(self._actions[report.uuid], report.state)
        self._open -= 1
        due += self._countdown.passed(report.uuid, report.state in WELL)

    def _end_all(self, turn: Turn, message: str) -> None:
        """Cancel whatever has neither started nor ended."""
        for uuid, action in self._actions.items():
            if uuid not in self._verdicts and uuid not in self._running:
                report = ending(action, ActionState.CANCELLED, message)
                turn.ended.append(report)
                self._verdicts.note(report)
                self._open -= 1
        self._waiting.clear()


#: The name under which a request has the number of workers among its limits.
MAX_WORKERS = "max_workers"
_FAILURES = frozenset({ActionState.FAILED, ActionState.UNKNOWN})
