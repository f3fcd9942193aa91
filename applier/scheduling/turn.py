# SPDX-License-Identifier: Apache-2.0
"""What the scheduler returns: the instructions of a turn, and why an action waits. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from applier.contracts import Report
from applier.store import Reservation


class Stopped(StrEnum):
    """Why nothing new starts."""

    #: The applier ends, and leaves the plan to another one.
    HANDED_BACK = "handed back"
    PAUSED = "paused"
    #: More nodes failed than the plan tolerates.
    EXCEEDED = "exceeded"
    CANCELLED = "cancelled"

    @property
    def strength(self) -> int:
        """Which of two reasons counts: the stronger one, or the first of two equal ones."""
        return _STRENGTH[self]


_STRENGTH = {
    Stopped.HANDED_BACK: 0,
    Stopped.PAUSED: 1,
    Stopped.EXCEEDED: 1,
    Stopped.CANCELLED: 2,
}


class Halt(NamedTuple):
    """That nothing new starts: the reason, and a sentence that says who or what caused it."""

    stopped: Stopped
    why: str


@dataclass(kw_only=True, slots=True)
class Turn:
    """The instructions of one turn, in the order in which they are carried out.

    ``cancelling`` is set in the turn in which a cancel takes effect, and says who asked and why.
    ``delays`` are failed actions to be retried, each with its delay in seconds; they become PENDING
    again. ``ended`` are actions that end without having started, ``starts`` those to start,
    ``stops`` running ones to be told to stop. ``max_workers`` is set when it changes.
    """

    cancelling: str | None = None
    delays: list[tuple[str, float]] = field(default_factory=list)
    ended: list[Report] = field(default_factory=list)
    starts: list[str] = field(default_factory=list)
    stops: list[str] = field(default_factory=list)
    max_workers: int | None = None


class WaitReason(NamedTuple):
    """What an action waits for.

    By ``kind``: ``all``, until all of ``actions`` have ended; ``any``, until one of them has ended
    well; ``token``, until one of ``actions`` releases the token; ``worker``, until one of
    ``actions`` ends; ``delay``, until its delay before a retry is over; ``plan``, until another
    plan releases the resource ``token``, which ``reservation`` reserves.
    """

    kind: str
    actions: tuple[str, ...]
    token: str | None = None
    reservation: Reservation | None = None
