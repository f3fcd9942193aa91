# SPDX-License-Identifier: Apache-2.0
"""What the scheduler returns, which rules it asks, and in what state a plan is left. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Protocol

from applier.contracts import HistoryEntry, Report, Request, RequestVerb
from applier.store import Reservation
from planner.plan.model import Action
from planner.plan.states import OPEN, WELL, ActionState, PlanState

#: The authors of a pause because of failures, as the history of the plan names them.
FAILURE_BUDGET, ON_FAILURE = "the failure budget", "on_failure = pause"
#: The author of a pause after the first nodes of a rollout.
CANARY = "the canary"


class HaltReason(StrEnum):
    """The reasons why no more actions start."""

    #: The applier ends, and another one will continue the plan.
    HANDED_BACK = "handed back"
    PAUSED = "paused"
    #: More nodes failed than the plan tolerates.
    EXCEEDED = "exceeded"
    CANCELLED = "cancelled"

    @property
    def strength(self) -> int:
        """The precedence of the reason: a halt replaces an earlier one of less strength."""
        return _STRENGTH[self]


_STRENGTH = {
    HaltReason.HANDED_BACK: 0,
    HaltReason.PAUSED: 1,
    HaltReason.EXCEEDED: 1,
    HaltReason.CANCELLED: 2,
}


class Halt(NamedTuple):
    """The decision that no more actions start: its reason, and a sentence that names the cause.

    ``by`` is the request of a part of this process, such as the failure budget, which is to be
    written to the history. It is None for a request of an operator, which is on record already,
    and for other halts.
    """

    stopped: HaltReason
    why: str
    by: Request | None = None

    @classmethod
    def of(cls, stopped: HaltReason, why: str, by: Request) -> Halt:
        """Return the halt that a request demands."""
        return cls(stopped, why, None if by.number else by)

    @classmethod
    def pause(cls, rule: str, why: str) -> Halt:
        """Return the pause that a rule demands."""
        by = Request(verb=RequestVerb.PAUSE, who=rule, why=why)
        return cls(HaltReason.PAUSED, f"paused because {why}", by)


@dataclass(kw_only=True, slots=True)
class Decisions:
    """The decisions of one call of the scheduler, for the engine to carry out.

    ``cancelling`` is set when a cancel takes effect: a sentence with the requester and the reason.
    ``delays`` are failed actions that are retried, each with its delay in seconds; they become
    PENDING again. ``ended`` are reports of actions that end without having started. ``starts`` are
    the actions to start. ``stops`` are running actions to stop. ``max_workers`` is set when it
    changes.
    """

    cancelling: str | None = None
    delays: list[tuple[str, float]] = field(default_factory=list)
    ended: list[Report] = field(default_factory=list)
    starts: list[str] = field(default_factory=list)
    stops: list[str] = field(default_factory=list)
    max_workers: int | None = None


class WaitKind(StrEnum):
    """The kinds of reasons why an action waits."""

    #: Until all of ``actions`` have ended.
    ALL = "all"
    #: Until one of ``actions`` has succeeded.
    ANY = "any"
    #: Until one of ``actions`` releases ``token``.
    TOKEN = "token"  # noqa: S105 - no secret
    #: Until one of ``actions`` ends and frees a worker.
    WORKER = "worker"
    #: Until the delay before its next attempt is over.
    DELAY = "delay"
    #: Until a window opens, or the health probe has answered.
    WINDOW = "window"
    #: Until another plan releases the resource ``token``, which it holds by ``reservation``.
    PLAN = "plan"


class WaitReason(NamedTuple):
    """The reason why an action waits; ``kind`` determines the meaning of the other fields."""

    kind: WaitKind
    actions: tuple[str, ...]
    token: str | None = None
    reservation: Reservation | None = None


class Holding(Protocol):
    """A rule that delays actions that could start otherwise, such as windows or a health probe."""

    def holds(self, action: Action, *, begins: bool) -> bool:
        """Return whether an action must not start now.

        ``begins`` is False if its node holds a place already: another action there has started.
        """

    def again_s(self) -> float | None:
        """Return the seconds after which to call :meth:`holds` again for the delayed actions.

        None means that the plan is to be handed back to the store once no action runs.
        """

    def ended(self) -> None:
        """Handle that actions have ended; called before others start."""

    def tell(self, number: int) -> None:
        """Handle the number of delayed actions; called before each wait for events."""


class Breaker(Protocol):
    """A rule that pauses a plan after failures, such as a failure budget."""

    def exceeded(self) -> str | None:
        """Return a sentence if failures of earlier runs already forbid any start, else None."""

    def note(self, action: Action, state: ActionState) -> str | None:
        """Record the end of an action; return a sentence if no more may start, else None."""


#: The words of the summary for each state, in the order of the summary.
_WORDS = {
    ActionState.SUCCEEDED: "succeeded",
    ActionState.SKIPPED: "skipped",
    ActionState.FAILED: "failed",
    ActionState.FAILED_DEPENDENCIES: "not run because of it",
    ActionState.CANCELLED: "cancelled",
    ActionState.UNKNOWN: "in doubt",
    ActionState.REVERTED: "reverted",
    ActionState.REVERT_FAILED: "not reverted",
    ActionState.ONGOING: "running",
    ActionState.PENDING: "left to do",
}

#: Final states that are caused by a halt, not by the states of the actions.
_BY_HALT = frozenset({PlanState.PENDING, PlanState.PAUSED, PlanState.CANCELLED})
#: The state of a plan with open actions, by the reason why no more were started.
_UNFINISHED = {HaltReason.PAUSED: PlanState.PAUSED, HaltReason.HANDED_BACK: PlanState.PENDING}


def fold(
    states: Iterable[ActionState],
    stopped: HaltReason | Halt | None = None,
    *,
    joins: Iterable[ActionState] = (),
) -> tuple[PlanState, str]:
    """Return the final state of a plan, and a message that counts its actions by state.

    ``joins`` are the states of joins, which the message does not count. ``stopped`` is the reason
    why no more actions were started, if any; the sentence of a Halt becomes a part of the message.
    A pause is ignored if no action is left.

    >>> S = ActionState
    >>> fold([S.SUCCEEDED] * 12 + [S.FAILED] + [S.FAILED_DEPENDENCIES] * 2)[1]
    '12 succeeded, 1 failed, 2 not run because of it'
    >>> str(fold([S.SUCCEEDED, S.PENDING], HaltReason.PAUSED)[0])
    'PAUSED'
    """
    counts = Counter(states)
    halt = stopped if isinstance(stopped, Halt) else None
    kind = stopped.stopped if isinstance(stopped, Halt) else stopped
    state = _state(counts + Counter(joins), kind)
    told = summary(counts)
    if halt and (state in _BY_HALT or kind is HaltReason.EXCEEDED):
        told = f"{halt.why}; {told}"
    return state, told


def history_entry(state: PlanState, halt: Halt | None, now: datetime) -> HistoryEntry | None:
    """Return the entry of the history for a halt without a request on record, or None.

    ``state`` is the final state of the plan: a halt that came too late to change it has no entry.
    """
    by = halt.by if halt else None
    if by is None or state not in (PlanState.PAUSED, PlanState.CANCELLED):
        return None
    return HistoryEntry(verb=by.verb, who=by.who, at=now, why=by.why)


def cancelled(states: Mapping[str, ActionState], message: str) -> list[Report]:
    """Return the reports of the actions that have not started when their plan is cancelled."""
    old, new = ActionState.PENDING, ActionState.CANCELLED
    rest = (uuid for uuid, state in states.items() if state is old)
    return [Report(uuid=uuid, old=old, state=new, message=message) for uuid in rest]


def summary(counts: Counter[ActionState]) -> str:
    """Return a sentence that counts actions by state."""
    told = [f"{counts[state]} {word}" for state, word in _WORDS.items() if counts[state]]
    return ", ".join(told) or "nothing to do"


def _state(counts: Counter[ActionState], stopped: HaltReason | None) -> PlanState:
    if stopped is HaltReason.CANCELLED:
        return PlanState.CANCELLED
    if stopped in _UNFINISHED and any(counts[state] for state in OPEN):
        return _UNFINISHED[stopped]
    well = all(state in WELL for state in counts if counts[state])
    return PlanState.SUCCEEDED if well else PlanState.FAILED
