# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of batches, in two modes.

``in_place`` computes the numbers of Heat: a batch terminates old members before it creates new
ones, and the group exceeds its size only if the minimum in service requires it. ``create_first``
follows Heat's blueprint: a batch creates its new members before it terminates old ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


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
