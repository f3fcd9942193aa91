# SPDX-License-Identifier: Apache-2.0
"""The update of one group: its phases, and the number of members and those in service meanwhile.

The arithmetic of batches has two modes. ``in_place`` computes the numbers of Heat: a batch
terminates old members before it creates new ones, and the group exceeds its size only if the
minimum in service requires it. ``create_first`` follows Heat's blueprint: a batch creates its new
members before it terminates old ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from planner.planners.rolling_update.members import Member
from planner.planners.rolling_update.template import Group

CREATE_FIRST, IN_PLACE = "create_first", "in_place"
#: The name of the phase that only changes the size of a group, after any batches.
RESIZE = "resize"


def step_of(step: int | str, target: int) -> int:
    """Return the number of new members at which a batch ends; percentages are rounded up.

    >>> step_of("10%", 30), step_of("10%", 31), step_of("20%", 101), step_of(1, 30)
    (3, 4, 21, 1)
    """
    return -(-target * int(step.rstrip("%")) // 100) if isinstance(step, str) else step


@dataclass(frozen=True, kw_only=True, slots=True)
class RollSettings:
    """Settings of a document that hold for all its groups.

    ``mode`` is CREATE_FIRST or IN_PLACE. With ``surge``, a group may exceed its own maximum. With
    ``pause_first``, the pause of the update policy is before each batch, else between batches.
    ``steps`` are numbers of new members, or percentages. ``max_unavailable_total`` is the number of
    members of all groups that may be out of service at once, besides failed ones; None is no limit.
    """

    mode: str = CREATE_FIRST
    surge: bool = False
    pause_first: bool = False
    steps: Sequence[int | str] = ()
    max_unavailable_total: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Phase:
    """One batch, or a change of size: how many members are created, and which are terminated.

    With ``creates_first``, members are created before others are terminated. Pauses are in seconds.
    """

    name: str
    create: int
    terminate: tuple[Member, ...]
    creates_first: bool = True
    pause_before_s: float = 0
    pause_after_s: float = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Roll:
    """The update of a group, in phases.

    ``members`` are those before the update. ``old`` is None for a group that is only in the new
    template. ``cause`` is the reason for the update, None if at most the size of the group changes.
    ``keys`` are those of the members that are created, in order, if the group has keys.
    """

    group: Group
    old: Group | None
    members: Sequence[Member]
    phases: Sequence[Phase]
    cause: str | None
    keys: Sequence[str] = ()

    @property
    def in_service(self) -> int:
        """The number of members in service at the start."""
        return sum(not member.failed for member in self.members)

    @property
    def floor(self) -> int:
        """The minimum number of members in service, whatever the order of parallel actions."""
        return min([self.in_service, *(low for low, _ in self._extremes())])

    @property
    def peak(self) -> int:
        """The maximum number of members at any time."""
        return max([len(self.members), *(high for _, high in self._extremes())])

    @property
    def end(self) -> int:
        """The number of members at the end."""
        return len(self.members) + sum(p.create - len(p.terminate) for p in self.phases)

    @property
    def unavailable(self) -> int:
        """The largest drop of members in service, compared with the smaller of start and end."""
        return max(0, min(self.in_service, self.end) - self.floor)

    def _extremes(self) -> Iterator[tuple[int, int]]:
        """Yield the minimum number in service and the maximum number of members of each phase."""
        serving, there = self.in_service, len(self.members)
        for phase in self.phases:
            lost, gone = sum(not m.failed for m in phase.terminate), len(phase.terminate)
            added = phase.create if phase.creates_first else 0
            most = max(there, there + phase.create - (0 if phase.creates_first else gone))
            serving, there = serving + phase.create - lost, there + phase.create - gone
            yield serving - phase.create + added, most


def side_by_side(rolls: Sequence[Roll], most: int | None) -> Iterator[list[Roll]]:
    """Yield sets of groups to update together, in input order, one set after another.

    At most ``most`` members of a set are unavailable at once; None is no limit. A group that
    exceeds the limit alone is a set of its own.
    """
    turn: list[Roll] = []
    missing = 0
    for roll in rolls:
        own = roll.unavailable
        if turn and most is not None and missing + own > most:
            yield turn
            turn, missing = [], 0
        turn.append(roll)
        missing += own
    if turn:
        yield turn


def peak(turns: Sequence[Sequence[Roll]]) -> int:
    """Return the maximum number of instances of all groups; the sets are updated one by one.

    Servers to which something is deployed do not count: they stay.
    """
    sets = [[roll for roll in turn if roll.group.servers is None] for turn in turns]
    there = sum(len(roll.members) for turn in sets for roll in turn)
    highest = there
    for turn in sets:
        highest = max(highest, there + sum(r.peak - len(r.members) for r in turn))
        there += sum(r.end - len(r.members) for r in turn)
    return highest


class Batch(NamedTuple):
    """One batch; ``size`` is the number of members after it has created its new ones."""

    size: int
    create: int
    terminate: int


def in_place(
    target: int,
    capacity: int,
    current: int,
    max_batch_size: int,
    min_in_service: int,
    steps: Sequence[int] = (),
) -> list[Batch]:
    """Return the batches of mode ``in_place``, which replace only outdated members.

    Of the ``capacity`` members, ``current`` have the new definition already; if there are none, and
    no ``steps``, the numbers are those of Heat. A batch ends when the number of new
    members reaches one of ``steps``. Raises ValueError for a ``max_batch_size`` below 1, a
    ``capacity`` below ``target``, or another number below 0.

    >>> in_place(10, 10, 0, 4, 8)
    [Batch(size=12, create=4, terminate=2), Batch(size=12, create=4, terminate=4), \
Batch(size=10, create=2, terminate=4)]
    >>> in_place(10, 10, 7, 5, 1)
    [Batch(size=10, create=3, terminate=3)]
    """
    _require(max_batch_size, target, capacity - target, current, min_in_service)
    found, done, size = [], min(current, target), capacity
    while done < target or size > target:
        members = _next(target, done, max_batch_size, steps)
        after = max(target, members + min(min_in_service, target))
        found.append(Batch(after, members, size - (after - members)))
        done, size = done + members, after
    return found


def create_first(
    target: int, capacity: int, current: int, max_batch_size: int, steps: Sequence[int] = ()
) -> list[Batch]:
    """Return the batches of mode ``create_first``; the first also removes members above ``target``.

    Arguments and errors are those of :func:`in_place`.

    >>> create_first(10, 10, 0, 5)
    [Batch(size=15, create=5, terminate=5), Batch(size=15, create=5, terminate=5)]
    """
    _require(max_batch_size, target, capacity - target, current)
    found, done, size = [], min(current, target), capacity
    while done < target or size > target:
        members = _next(target, done, max_batch_size, steps)
        found.append(Batch(size + members, members, size + members - target))
        done, size = done + members, target
    return found


def _next(target: int, done: int, largest: int, steps: Sequence[int]) -> int:
    """Return how many members the next batch creates, up to the next step or the target."""
    until = min((step for step in steps if step > done), default=target)
    return min(largest, until - done, target - done)


def _require(largest: int, *others: int) -> None:
    if largest < 1:
        raise ValueError(f"a batch of at most {largest} members never ends: at least 1")
    if min(others) < 0:
        raise ValueError(f"{min(others)} is less than 0")
