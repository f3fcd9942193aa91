# SPDX-License-Identifier: Apache-2.0
"""What the scheduler returns, and which rules it asks. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

from applier.contracts import Report, Request, RequestVerb
from applier.store import Reservation
from planner.plan.model import Action
from planner.plan.states import ActionState

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
