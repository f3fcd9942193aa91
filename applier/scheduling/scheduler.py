"""The scheduler: what ended goes in, what may start now comes out. Pure.

It has no clock, no threads and no I/O. The engine drives it with what its workers report, the
forecast with a simulated clock, so the two cannot disagree. A turn is: wishes and ends come in;
links are counted down; whatever has nothing left to wait for gets its verdict; what may run waits
at the gates; the gates say what starts. Linear in actions and links.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from applier.contracts import Report, Wish
from applier.scheduling.countdown import Countdown
from applier.scheduling.gates import Gates
from applier.scheduling.verdict import End, OnFailure, Verdicts, ending
from planner.model import JOIN, Action
from planner.states import WELL, ActionState


class Stopped(StrEnum):
    """Why nothing new starts."""

    PAUSED = "paused"
    CANCELLED = "cancelled"


@dataclass(kw_only=True, slots=True)
class Turn:
    """What is to be done now, in this order.

    ``cancelling`` is set in the one turn in which a cancel takes effect, and says who and why.
    ``ended`` are the actions that end without having started, ``starts`` those that start,
    ``stops`` those that run and are to be told to stop.
    """

    cancelling: str | None = None
    ended: list[Report] = field(default_factory=list)
    starts: list[str] = field(default_factory=list)
    stops: list[str] = field(default_factory=list)


class Why(NamedTuple):
    """What an action waits for.

    ``kind``: ``all`` of ``actions`` have to end, ``any`` of them has to end well, a ``token`` has
    to come free that ``actions`` hold, or a ``worker`` that is busy with one of ``actions``.
    """

    kind: str
    actions: tuple[str, ...]
    token: str | None = None


class Scheduler:
    """Runs one plan once.

    ``after`` gives for each name those that wait for it (:func:`applier.scheduling.order.links`);
    a name that is no action's is a join inside the flow, and leaves no record. ``ended`` are the
    actions that ended in an earlier run: those that ``after`` leaves out are behind us, the others
    pass their turn on. ``ranks`` decides who is first among those that may start, lowest first;
    without it, the place in the plan does.
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
    ) -> None:
        self._actions = {a.uuid: a for a in actions}
        self._ranks = ranks or {uuid: i for i, uuid in enumerate(self._actions)}
        self._on_failure = on_failure
        self._verdicts = Verdicts(self._actions, ended or {}, on_failure)
        self._gates = Gates(limits, max_workers)
        groups = {
            uuid: action.needs_any
            for uuid, action in self._actions.items()
            if action.needs_any and uuid not in self._verdicts
        }
        self._countdown = Countdown(after, groups)
        self._open = sum(uuid not in self._verdicts for uuid in self._actions)
        self._waiting: set[str] = set()
        self._running: dict[str, None] = {}
        self._skips: dict[str, Wish] = {}
        #: Why nothing new starts; None as long as something may.
        self.stopped: Stopped | None = None

    @property
    def running(self) -> Collection[str]:
        """The actions that have started and not ended, in the order of their starts."""
        return self._running.keys()

    @property
    def done(self) -> bool:
        """True once nothing runs and nothing more will: all has ended, or the plan is paused."""
        return not self._running and (not self._open or self.stopped is not None)

    @property
    def well(self) -> bool:
        """True as long as all that ended has ended well."""
        return self._verdicts.all_well

    @property
    def examined(self) -> int:
        """How many actions the gates looked at so far."""
        return self._gates.examined

    def begin(self, wishes: Iterable[Wish] = ()) -> Turn:
        """Give the first turn; ``wishes`` are those that were there before it."""
        due = deque(self._countdown.due())
        for uuid in self._actions:
            if uuid not in self._countdown:  # it ended in an earlier run and is behind us
                due += self._countdown.passed(uuid, self._verdicts.well(uuid))
        return self._go_on(Turn(), due, wishes)

    def turn(self, reports: Iterable[Report], wishes: Iterable[Wish] = ()) -> Turn:
        """Take in what ended and what operators want; say what follows from it.

        Wishes hold for all that became due by these reports.
        """
        turn, due = Turn(), deque[str]()
        for report in reports:
            del self._running[report.uuid]
            self._gates.release(report.uuid)
            self._note(report, due)
            if self._on_failure is OnFailure.PAUSE and report.state in _FAILURES:
                self.stopped = self.stopped or Stopped.PAUSED
        return self._go_on(turn, due, wishes)

    def why(self, uuid: str) -> Why | None:
        """Say what an action waits for; None if it runs, has ended, or may not start any more."""
        action = self._actions[uuid]
        if uuid in self._verdicts or uuid in self._running or self.stopped:
            return None
        if uuid in self._waiting:
            token = self._gates.why(uuid)
            if token is None:
                return Why("worker", tuple(self._running))
            holders = (u for u in self._running if token in self._actions[u].tokens)
            return Why("token", tuple(holders), token)
        left = tuple(u for u in action.before() if u not in self._verdicts)
        if left:
            return Why("all", left)
        for group in action.needs_any:
            if not any(u in self._verdicts and self._verdicts.well(u) for u in group):
                return Why("any", tuple(u for u in group if u not in self._verdicts))
        return None

    def _go_on(self, turn: Turn, due: deque[str], wishes: Iterable[Wish]) -> Turn:
        for wish in wishes:
            self._hear(wish, turn, due)
        if self.stopped is None:
            self._settle(turn, due)
            while (uuid := self._gates.take()) is not None:
                self._waiting.remove(uuid)
                self._running[uuid] = None
                turn.starts.append(uuid)
            if self._open and not self._running:
                self._end_all(turn, "nothing is left that could let it start")
        return turn

    def _hear(self, wish: Wish, turn: Turn, due: deque[str]) -> None:
        if not self._open:
            return  # it comes too late
        who = f"by {wish.who}" + (f": {wish.why}" if wish.why else "")
        if wish.verb == "cancel" and self.stopped is not Stopped.CANCELLED:
            self.stopped, turn.cancelling = Stopped.CANCELLED, f"cancelled {who}"
            turn.stops += self._running
            self._end_all(turn, f"the plan was cancelled {who}")
        elif wish.verb == "pause":
            self.stopped = self.stopped or Stopped.PAUSED
        elif wish.verb == "skip" and wish.action is not None:
            self._skips[wish.action] = wish
            if wish.action in self._waiting:
                self._waiting.remove(wish.action)
                self._gates.withdraw(wish.action)
                due.append(wish.action)

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
                self._waiting.add(name)
                self._gates.submit(name, action.tokens, self._ranks[name])

    def _verdict(self, action: Action) -> Report | None:
        wish = self._skips.get(action.uuid)
        if wish is not None:
            message = f"skipped by {wish.who}" + (f": {wish.why}" if wish.why else "")
            return ending(action, ActionState.SKIPPED, message)
        report = self._verdicts.on(action)
        if report is None and action.action_type == JOIN:
            return ending(action, ActionState.SUCCEEDED)
        return report

    def _note(self, report: Report, due: deque[str]) -> None:
        self._verdicts.note(report)
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


_FAILURES = frozenset({ActionState.FAILED, ActionState.UNKNOWN})
