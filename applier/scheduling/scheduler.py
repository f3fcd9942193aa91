# SPDX-License-Identifier: Apache-2.0
"""The scheduler: takes reports of ended actions and requests, and returns decisions. Pure.

It has no clock, no threads and no I/O. The engine calls it with the reports of its workers, the
forecast with a simulated clock, so that both agree. One call of :meth:`Scheduler.decide`:

1. Processes the reports of running actions, and the requests of operators.
2. Counts down the predecessors of each action. An action without open predecessors is ready.
3. Decides for each ready action whether it runs. If not, it ends, and others may become ready.
4. Starts the actions that get their tokens and a worker from the gates.

The time of a whole run is linear in actions and links.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence

from applier.contracts import Report, Request, RequestVerb
from applier.scheduling.decisions import Decisions, Halt, HaltReason, WaitKind, WaitReason
from applier.scheduling.gates import Gates
from applier.scheduling.holding import Holding
from applier.scheduling.order import Countdown
from applier.scheduling.submissions import Concurrency
from applier.scheduling.tolerances import Tolerances
from applier.scheduling.verdict import (
    FailureRules,
    OnFailure,
    Retries,
    Verdicts,
    ending,
    ends,
    held_by,
)
from applier.scheduling.waiting import WaitingActions
from applier.store import Reservation
from planner.model import JOIN, Action
from planner.states import WELL, ActionState, StateReason

#: The name of the number of workers among the limits of a request.
MAX_WORKERS = "max_workers"
#: The authors of a pause because of failures, as the history of the plan names them.
FAILURE_BUDGET, ON_FAILURE = "the failure budget", "on_failure = pause"
#: Actions that need a failed action do not run, and nothing is retried.
NO_FAILURE_RULES = FailureRules()
_FAILURES = frozenset({ActionState.FAILED, ActionState.UNKNOWN})


class Scheduler:
    """Decides, in one run of one plan, which actions start, stop, or end without running.

    ``actions`` are those of the plan, with their states. Ended actions do not run again; an
    ONGOING action runs already, since an earlier run. ``after`` maps each name to its successors
    (:func:`applier.scheduling.order.links`). A name that is not the uuid of an action is a join of
    the flow, for which no state is recorded. ``ranks`` are by uuid: of several actions that may
    start, the one with the lowest rank starts first; without ranks, the first in the plan.
    ``holding`` may hold actions back that could start. ``given_up`` are actions that ended UNKNOWN
    in an earlier run and may still run: they hold their tokens for ever.
    """

    def __init__(
        self,
        actions: Iterable[Action],
        after: Mapping[str, Sequence[str]],
        concurrency: Concurrency,
        failures: FailureRules = NO_FAILURE_RULES,
        ranks: Mapping[str, int] | None = None,
        holding: Holding | None = None,
        given_up: Collection[str] = (),
    ) -> None:
        self._actions = {a.uuid: a for a in actions}
        ranks = ranks or {uuid: i for i, uuid in enumerate(self._actions)}
        self._on_failure = failures.on_failure
        ended = ends(self._actions.values())
        self._verdicts = Verdicts(self._actions, ended, failures.on_failure, given_up)
        self._gates = Gates(concurrency.limits, concurrency.max_workers)
        keeps = failures.on_failure is not OnFailure.CONTINUE
        self._waiting = WaitingActions(
            self._gates, self._actions, ranks, concurrency, holding, keeps, given_up
        )
        groups = {
            uuid: action.needs_any
            for uuid, action in self._actions.items()
            if action.needs_any and uuid not in self._verdicts
        }
        self._countdown = Countdown(after, groups)
        #: The number of actions that have not ended.
        self._open = sum(uuid not in self._verdicts for uuid in self._actions)
        continued = (u for u, a in self._actions.items() if a.state is ActionState.ONGOING)
        #: The running actions, in the order of their starts.
        self._running: dict[str, None] = dict.fromkeys(continued)
        for uuid in self._running:
            tokens = concurrency.tokens_of(self._actions[uuid])
            self._gates.hold(uuid, tokens, worker=uuid not in concurrency.workerless)
        for uuid in given_up:
            self._gates.hold(uuid, concurrency.tokens_of(self._actions[uuid]), worker=False)
            self._gates.give_up(uuid)
        #: Running actions that started in an earlier run, until all before them has ended.
        self._ahead = set(self._running)
        #: Requests to skip actions, by action. Each takes effect when the action is ready.
        self._skips: dict[str, Request] = {}
        self._retries = Retries(failures.policies)
        self._tolerances = Tolerances(failures.tolerances) if failures.tolerances else None
        self._breaker = failures.breaker
        #: Actions that an operator aborted: they are not retried.
        self._aborted: set[str] = set()
        #: Names without open predecessors, about which nothing is decided yet.
        self._ready: deque[str] = deque()
        #: The decisions made so far in the current call.
        self._decisions = Decisions()
        #: The reason why no more actions start; None while actions may start.
        self.halt: Halt | None = None
        for uuid, end in ended.items():
            self._count_failed_nodes(self._actions[uuid], end.state)

    @property
    def stopped(self) -> HaltReason | None:
        """The kind of the halt, or None."""
        return self.halt.stopped if self.halt else None

    @property
    def running(self) -> Collection[str]:
        """The actions that have started and not ended, in the order of their starts."""
        return self._running.keys()

    @property
    def held(self) -> Collection[str]:
        """The actions that could start, and are delayed by the ``holding``."""
        return self._waiting.held.keys()

    @property
    def done(self) -> bool:
        """Whether the run is over: no action runs, and all have ended or there is a halt."""
        return not self._running and (not self._open or self.halt is not None)

    @property
    def well(self) -> bool:
        """Whether all actions that have ended did so without a failure."""
        return self._verdicts.all_well

    @property
    def examined(self) -> int:
        """The number of examinations of actions by the gates so far."""
        return self._gates.examined

    def begin(
        self, requests: Iterable[Request] = (), held_by_others: Iterable[Reservation] = ()
    ) -> Decisions:
        """Return the first decisions; the arguments are those known before the run starts."""
        self._waiting.replace_reservations(held_by_others)
        self._ready += self._countdown.ready()
        for uuid in self._actions:
            if uuid not in self._countdown:  # it ended in an earlier run, and is not in the graph
                self._ready += self._countdown.done(uuid, self._verdicts.well(uuid))
        return self._made(requests)

    def decide(
        self,
        reports: Iterable[Report],
        requests: Sequence[Request] = (),
        *,
        elapsed: Iterable[str] = (),
        held_by_others: Iterable[Reservation] | None = None,
        reopened: bool = False,
    ) -> Decisions:
        """Process reports and requests, and return the decisions that follow.

        Requests are followed before any action is started that became ready by these reports.
        ``elapsed`` are the actions whose retry delay is over. ``held_by_others``, if given, are all
        resources that other plans hold now. With ``reopened``, the actions that the ``holding``
        delayed are submitted again; it may delay them again.
        """
        unwanted = {r.action for r in requests if r.verb in (RequestVerb.SKIP, RequestVerb.ABORT)}
        cancelled = any(r.verb == RequestVerb.CANCEL for r in requests)
        for report in reports:
            self._take_in(report, retry=not (cancelled or report.uuid in unwanted))
        if held_by_others is not None:
            self._waiting.replace_reservations(held_by_others)
        self._waiting.elapsed(elapsed)
        if reopened:
            self._waiting.reopen()
        return self._made(requests)

    def why(self, uuid: str) -> WaitReason | None:
        """Return why an action waits; None if it runs, has ended, or is held back by a halt."""
        action = self._actions[uuid]
        if uuid in self._verdicts or uuid in self._running or self.halt:
            return None
        why = self._waiting.why(uuid, self._running)
        if why is not None:
            return why
        left = tuple(u for u in action.before() if u not in self._verdicts)
        if left:
            return WaitReason(WaitKind.ALL, left)
        for group in action.needs_any:
            if not any(u in self._verdicts and self._verdicts.well(u) for u in group):
                return WaitReason(WaitKind.ANY, tuple(u for u in group if u not in self._verdicts))
        return None

    def _made(self, requests: Iterable[Request]) -> Decisions:
        """Follow the requests, decide about all ready actions, and return the decisions."""
        for request in requests:
            self._follow(request)
        if self.halt is None:
            self._advance()
        elif self.halt.stopped is HaltReason.EXCEEDED and self._open > len(self._running):
            self._cancel_unstarted(self.halt.why)
        made, self._decisions = self._decisions, Decisions()
        return made

    # Ends of running actions

    def _take_in(self, report: Report, *, retry: bool) -> None:
        """Process the end of an attempt; with ``retry``, another attempt may follow."""
        uuid, action = report.uuid, self._actions[report.uuid]
        del self._running[uuid]
        if report.given_up:
            self._gates.give_up(uuid)
        else:
            self._gates.release(uuid)
        if report.state is ActionState.FAILED and retry and self._may_retry(uuid):
            delay = 0.0 if report.again else self._retries.next_delay_s(action)
            if delay is not None:
                self._waiting.delayed.add(uuid)
                self._decisions.delays.append((uuid, delay))
                return
        if self._on_failure is OnFailure.PAUSE and report.state in _FAILURES:
            self._broke(ON_FAILURE, f"{action.label} ended {report.state}")
        self._note(report)

    def _may_retry(self, uuid: str) -> bool:
        over = self.stopped in (HaltReason.CANCELLED, HaltReason.EXCEEDED)
        return uuid not in self._aborted and not over

    def _note(self, report: Report) -> None:
        """Record the end of an action, and count down its successors."""
        self._verdicts.note(report)
        self._count_failed_nodes(self._actions[report.uuid], report.state)
        broken = self._breaker and self._breaker.note(self._actions[report.uuid], report.state)
        if broken:
            self._broke(FAILURE_BUDGET, broken)
        self._open -= 1
        self._waiting.ended(report)
        if report.uuid not in self._ahead:
            self._ready += self._countdown.done(report.uuid, report.state in WELL)

    def _count_failed_nodes(self, action: Action, state: ActionState) -> None:
        exceeded = self._tolerances and self._tolerances.note(action, state)
        if exceeded:
            self._halt(HaltReason.EXCEEDED, f"no more actions start: {exceeded}")

    def _broke(self, rule: str, why: str) -> None:
        """Pause the plan because of a rule about failures."""
        by = Request(verb=RequestVerb.PAUSE, who=rule, why=why)
        self._halt(HaltReason.PAUSED, f"paused because {why}", by)

    def _halt(self, stopped: HaltReason, why: str, by: Request | None = None) -> None:
        """Start no more actions from now on. A stronger halt replaces an earlier one."""
        if self.halt is None or stopped.strength > self.halt.stopped.strength:
            self.halt = Halt(stopped, why, None if by and by.number else by)

    # Requests

    def _follow(self, request: Request) -> None:
        if not self._open:
            return  # all actions have ended: there is nothing left to change
        match request.verb:
            case RequestVerb.CANCEL:
                self._cancel(request)
            case RequestVerb.PAUSE:
                self._halt(HaltReason.PAUSED, f"paused {_by(request)}", request)
            case RequestVerb.HAND_BACK:
                self._halt(
                    HaltReason.HANDED_BACK, f"paused {_by(request, ', which hands it back')}"
                )
            case RequestVerb.LIMIT:
                self._change_limits(request.limits)
            case RequestVerb.SKIP:
                self._skip(request)
            case RequestVerb.ABORT:
                self._abort(request)

    def _cancel(self, request: Request) -> None:
        if self.stopped is HaltReason.CANCELLED:
            return
        self._decisions.cancelling = f"cancelled {_by(request)}"
        self._halt(HaltReason.CANCELLED, self._decisions.cancelling, request)
        self._decisions.stops += self._running
        self._cancel_unstarted(f"the plan was cancelled {_by(request)}")

    def _change_limits(self, limits: Mapping[str, int]) -> None:
        for name, number in limits.items():
            if name == MAX_WORKERS:
                self._gates.set_workers(number)
                self._decisions.max_workers = number
            else:
                self._waiting.set_limit(name, number)

    def _skip(self, request: Request) -> None:
        """Skip an action when it becomes ready, or now if it is ready and only waits for limits."""
        uuid = request.action
        if uuid in self._actions and uuid not in self._verdicts:
            self._skips[uuid] = request
            if self._waiting.withdraw(uuid):
                self._ready.append(uuid)

    def _abort(self, request: Request) -> None:
        """Stop a running action, or cancel one that waits for its retry; ignore any other."""
        uuid = request.action
        if uuid in self._running:
            self._aborted.add(uuid)
            self._decisions.stops.append(uuid)
        elif uuid in self._waiting.delayed:
            self._waiting.withdraw(uuid)
            self._end(ending(self._actions[uuid], ActionState.CANCELLED, f"aborted {_by(request)}"))

    # Decisions about ready actions

    def _advance(self) -> None:
        """Decide about all ready actions, and start actions, until nothing more can be decided.

        If no action runs and none can ever start, cancel all that are left.
        """
        self._decide_ready()
        self._start()
        while self._stuck():
            if not self._cancel_blocked_forever() and not self._gates.lend():
                self._cancel_unstarted("it can no longer start")
                return
            self._decide_ready()
            self._start()

    def _decide_ready(self) -> None:
        """Decide for each ready action whether it runs; if not, its end may make others ready."""
        while self._ready:
            name = self._ready.popleft()
            action = self._actions.get(name)
            if name in self._ahead:
                self._ahead.remove(name)
                if name in self._running:
                    continue
            if action is None or name in self._verdicts:
                # A join of the flow, or an action that ended in an earlier run.
                self._ready += self._countdown.done(name, self._verdicts.well(name))
                continue
            report = self._verdict(action)
            if report is None:
                self._waiting.submit(name)
            else:
                self._end(report)

    def _verdict(self, action: Action) -> Report | None:
        """Return the report of a ready action that ends without running; None if it runs."""
        request = self._skips.get(action.uuid)
        if request is not None:
            message = f"skipped {_by(request)}"
            return ending(action, ActionState.SKIPPED, message, reason=StateReason.OPERATOR)
        report = self._verdicts.without_running(action)
        if report is None and action.action_type == JOIN:
            return ending(action, ActionState.SUCCEEDED)
        return report

    def _start(self) -> None:
        while (uuid := self._waiting.take()) is not None:
            self._running[uuid] = None
            self._decisions.starts.append(uuid)

    def _stuck(self) -> bool:
        """Return whether actions are open, but none runs and none may start later by itself."""
        return bool(self._open) and not (self._running or self._waiting.may_start_later)

    def _cancel_blocked_forever(self) -> bool:
        """Cancel actions that wait for tokens which are never released; return whether any did."""
        found = self._waiting.blocked_forever()
        for uuid, token, keeper in found:
            self._waiting.withdraw(uuid)
            why = self._waiting.closed(token, keeper) or f"{token} {held_by(self._actions[keeper])}"
            self._end(ending(self._actions[uuid], ActionState.CANCELLED, why))
        return bool(found)

    def _cancel_unstarted(self, message: str) -> None:
        """Cancel all actions that have neither started nor ended."""
        for uuid, action in self._actions.items():
            if uuid not in self._verdicts and uuid not in self._running:
                self._waiting.withdraw(uuid)
                report = ending(action, ActionState.CANCELLED, message)
                self._decisions.ended.append(report)
                self._verdicts.note(report)
                self._open -= 1

    def _end(self, report: Report) -> None:
        """Record the end of an action that was not started."""
        self._decisions.ended.append(report)
        self._note(report)


def _by(request: Request, relation: str = "") -> str:
    """Return the origin of a request and its reason: ``by ann: enough``."""
    return f"by {request.who}{relation}" + (f": {request.why}" if request.why else "")
