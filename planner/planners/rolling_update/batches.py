# SPDX-License-Identifier: Apache-2.0
"""Computes the batches that replace the members of a group: pure functions of integers.

There are two modes. ``in_place`` computes the same numbers as Heat: a batch terminates old members
before it creates new ones, and the group exceeds its size only if the minimum in service requires
it. ``create_first`` follows Heat's blueprint: a batch creates its new members before it terminates
old ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

#: The arguments of :func:`batches`: target, capacity, max_batch_size, min_in_service.
Numbers = tuple[int, int, int, int]


class Batch(NamedTuple):
    """One batch; ``size`` is the number of members after it has created its new ones."""

    size: int
    create: int
    terminate: int


def batches(
    target: int, capacity: int, max_batch_size: int, min_in_service: int
) -> list[tuple[int, int]]:
    """Return Heat's batches for an instance group: (size, number of updated members) of each.

    ``target`` is the wanted number of members, ``capacity`` the present number; all are outdated.
    Raises ValueError for a ``max_batch_size`` below 1 or another number below 0.

    >>> batches(10, 10, 5, 1), batches(10, 10, 4, 8)
    ([(10, 5), (10, 5)], [(12, 4), (12, 4), (10, 2)])
    """
    return list(_heat((target, capacity, max_batch_size, min_in_service), lambda *_: 0))


def resource_group_batches(
    target: int, capacity: int, max_batch_size: int, min_in_service: int
) -> list[tuple[int, int]]:
    """Return Heat's batches for a resource group: it removes surplus members in a last batch.

    The members by which a batch enlarges the group beyond its size do not count as updated. So a
    group that has to exceed its size is updated in more batches than by :func:`batches`. The
    function is only for comparison: no planner uses it.

    >>> resource_group_batches(3, 3, 5, 5)
    [(6, 3), (6, 3), (3, 0)]
    """
    numbers = (target, capacity, max_batch_size, min_in_service)
    return list(_heat(numbers, lambda size, before: max(0, size - max(before, target))))


def _heat(numbers: Numbers, wasted: Callable[[int, int], int]) -> Iterator[tuple[int, int]]:
    target, size, largest, least = numbers
    _require(largest, target, size, least)
    updated = 0
    while not updated >= size == target:
        before, members = size, min(largest, max(0, target - updated))
        kept = max(min(before, target - members), min(least, target, before))
        size = kept + members
        yield size, members
        updated += members - wasted(size, before)


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
    no ``steps``, the numbers are those of :func:`batches`. A batch ends when the number of new
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
