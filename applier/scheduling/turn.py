"""What the scheduler says: the instructions of a turn, and why something does not start. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from applier.contracts import Report
from applier.store import Reservation


class Stopped(StrEnum):
    """Why nothing new starts."""

    PAUSED = "paused"
    CANCELLED = "cancelled"
    #: More nodes failed than the plan tolerates.
    EXCEEDED = "exceeded"


class Halt(NamedTuple):
    """That nothing new starts, and a sentence that says who or what brought it about."""

    stopped: Stopped
    why: str


@dataclass(kw_only=True, slots=True)
class Turn:
    """What is to be done now, in this order.

    ``cancelling`` is set in the one turn in which a cancel takes effect, and says who and why.
    ``delays`` are the actions whose attempt failed and that start again, each after so many
    seconds: their reports become PENDING ones. ``ended`` are the actions that end without having
    started, ``starts`` those that start, ``stops`` those that run and are to be told to stop.
    ``max_workers`` is set when it was changed.
    """

    cancelling: str | None = None
    delays: list[tuple[str, float]] = field(default_factory=list)
    ended: list[Report] = field(default_factory=list)
    starts: list[str] = field(default_factory=list)
    stops: list[str] = field(default_factory=list)
    max_workers: int | None = None


class WaitReason(NamedTuple):
    """What an action waits for.

    ``kind``: ``all`` of ``actions`` have to end, ``any`` of them has to end well, a ``token`` has
    to come free that ``actions`` hold, a ``worker`` that is busy with one of ``actions``, the
    ``delay`` before it is tried again has to pass, or another ``plan`` has to give back a resource,
    which is the token, to whom it is reserved.
    """

    kind: str
    actions: tuple[str, ...]
    token: str | None = None
    reservation: Reservation | None = None
