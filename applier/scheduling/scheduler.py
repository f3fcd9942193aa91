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

from applier.contracts import CANCELS, MAX_WORKERS, Report, Request, RequestVerb
from applier.scheduling.concurrency import Concurrency
from applier.scheduling.decisions import Decisions, Halt, HaltReason, Holding, WaitReason
from applier.scheduling.failures import NO_FAILURE_RULES, FailureHalts, FailureRules, Retries
from applier.scheduling.gates import Gates
from applier.scheduling.verdict import Halting, Verdicts, ending, ends, held_by
from applier.scheduling.waiting import Countdown, WaitingActions
from applier.store import Reservation
from planner.plan.model import JOIN, Action
from planner.plan.states import WELL, ActionState, StateReason


class Scheduler:
    """Decides, in one run of one plan, which actions start, stop, or end without running.

    ``actions`` are those of the plan, with their states. Ended actions do not run again; an
    ONGOING action runs already, since an earlier run. ``after`` maps each name to its successors
    (:func:`applier.scheduling.waiting.links`). A name that is not the uuid of an action is a join
    of the flow, for which no state is recorded. ``ranks`` are by uuid: of several actions that may
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
        ended = ends(self._actions.values())
        self._verdicts = Verdicts(self._actions, ended, failures.on_failure, given_up)
        self._gates = Gates(concurrency.limits, concurrency.max_workers)
        keeps = not failures.on_failure.ignores_failures
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
        self._open = len(self._actions) - len(ended)
        #: The running actions, in the order of their starts.
        self._running: dict[str, None] = {
            u: None for u, a in self._actions.items() if a.state is ActionState.ONGOING
        }
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
        self._failure_halts = FailureHalts(failures)
        #: Actions that an operator aborted: they are not retried.
        self._aborted: set[str] = set()
        #: Names without open predecessors, about which nothing is decided yet.
        self._ready: deque[str] = deque()
        #: The decisions made so far in the current call.
        self._decisions = Decisions()
        self._halting = Halting()
        for uuid, end in ended.items():
            self._halt(self._failure_halts.earlier(self._actions[uuid], end.state))

    @property
    def halt(self) -> Halt | None:
        """The reason why no more actions start; None while actions may start."""
        return self._halting.halt

    @property
    def stopped(self) -> HaltReason | None:
        """The kind of the halt, or None."""
        return self._halting.stopped

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
        """Whether the run is over: no action runs, and all have ended or may not start any more."""
        return not (self._running or self._halting.to_finish) and (
            not self._open or self._halting.halt is not None
        )

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
        cancels = {r.verb for r in requests} & CANCELS
        for report in reports:
            finishes = self._actions[report.uuid].places and cancels <= {RequestVerb.CANCEL}
            cancelled = cancels and not finishes
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
        if uuid in self._verdicts or uuid in self._running or not self._halting.may_start(uuid):
            return None
        return self._waiting.why(uuid, self._running) or self._verdicts.awaited(action)

    def _made(self, requests: Iterable[Request]) -> Decisions:
        """Follow the requests, decide about all ready actions, and return the decisions."""
        for request in requests:
            self._follow(request)
        if self._halting.stopped in (HaltReason.EXCEEDED, HaltReason.CANCELLED):
            self._cancel_rest()
        if self._halting.halt is None or self._halting.to_finish:
            self._advance()
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
        self._note(report)

    def _may_retry(self, uuid: str) -> bool:
        over = self._halting.stopped in (HaltReason.CANCELLED, HaltReason.EXCEEDED)
        return uuid not in self._aborted and (not over or uuid in self._halting.to_finish)

    def _note(self, report: Report) -> None:
        """Record the end of an action, and count down its successors."""
        self._verdicts.note(report)
        self._open -= 1
        self._halting.to_finish.discard(report.uuid)
        action = self._actions[report.uuid]
        halts = (*self._waiting.ended(report), *self._failure_halts.note(action, report.state))
        for halt in halts:
            self._halt(halt)
        if report.uuid not in self._ahead:
            self._ready += self._countdown.done(report.uuid, report.state in WELL)

    def _halt(self, halt: Halt | None, *, at_once: bool = False) -> None:
        """Start no more actions, except what nodes that have begun need to finish."""
        if halt and self._halting.set(halt, at_once=at_once) and not at_once:
            self._halting.to_finish = self._waiting.keep_to_finish(self._verdicts)

    # Requests

    def _follow(self, request: Request) -> None:
        if not self._open:
            return  # all actions have ended: there is nothing left to change
        match request.verb:
            case RequestVerb.CANCEL | RequestVerb.CANCEL_NOW:
                self._cancel(request)
            case RequestVerb.PAUSE | RequestVerb.PAUSE_NOW:
                halt = Halt.of(HaltReason.PAUSED, f"paused {request.by}", request)
                self._halt(halt, at_once=request.verb == RequestVerb.PAUSE_NOW)
            case RequestVerb.HAND_BACK:
                halt = Halt(HaltReason.HANDED_BACK, f"handed back {request.by}")
                self._halt(halt, at_once=True)
            case RequestVerb.LIMIT:
                self._change_limits(request.limits)
            case RequestVerb.SKIP:
                self._skip(request)
            case RequestVerb.ABORT:
                self._abort(request)

    def _cancel(self, request: Request) -> None:
        if self._halting.stopped is HaltReason.CANCELLED and not self._halting.to_finish:
            return
        halt = Halt.of(HaltReason.CANCELLED, f"cancelled {request.by}", request)
        if self._halting.stopped is not HaltReason.CANCELLED:
            self._decisions.cancelling = halt.why
        self._halt(halt, at_once=request.verb == RequestVerb.CANCEL_NOW)
        self._decisions.stops += [u for u in self._running if u not in self._halting.to_finish]
        self._cancel_rest()

    def _cancel_rest(self) -> None:
        """Cancel what does not start because of a halt, unless that was done."""
        if self._halting.halt and self._open > len(self._halting.to_finish | self._running.keys()):
            was = self._halting.halt.stopped is HaltReason.CANCELLED
            self._cancel_unstarted(
                f"the plan was {self._halting.halt.why}" if was else self._halting.halt.why
            )

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
            self._end(ending(self._actions[uuid], ActionState.CANCELLED, f"aborted {request.by}"))

    # Decisions about ready actions

    def _advance(self) -> None:
        """Decide about all ready actions, and start actions, until nothing more can be decided.

        If no action runs and none can ever start, cancel all that are left.
        """
        self._decide_ready()
        self._start()
        while self._stuck():
            if self._halting.halt:
                self._halting.to_finish.clear()
                if self._halting.stopped in (HaltReason.CANCELLED, HaltReason.EXCEEDED):
                    self._cancel_rest()
                return
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
            if not self._halting.may_start(name):
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
            message = f"skipped {request.by}"
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
        left = self._halting.to_finish if self._halting.halt else self._open
        return bool(left) and not (self._running or self._waiting.may_start_later)

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
            begun = (
                uuid in self._verdicts or uuid in self._running or uuid in self._halting.to_finish
            )
            if not begun:
                self._waiting.withdraw(uuid)
                report = ending(action, ActionState.CANCELLED, message)
                self._decisions.ended.append(report)
                self._verdicts.note(report)
                self._open -= 1

    def _end(self, report: Report) -> None:
        """Record the end of an action that was not started."""
        self._decisions.ended.append(report)
        self._note(report)
