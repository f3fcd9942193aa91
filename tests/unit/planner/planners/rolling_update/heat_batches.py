# SPDX-License-Identifier: Apache-2.0
"""The numbers of Heat's batches, with which those of the planner are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator

#: The arguments of :func:`batches`: target, capacity, max_batch_size, min_in_service.
Numbers = tuple[int, int, int, int]


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
    group that has to exceed its size is updated in more batches than by :func:`batches`.

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


def _require(largest: int, *others: int) -> None:
    if largest < 1:
        raise ValueError(f"a batch of at most {largest} members never ends: at least 1")
    if min(others) < 0:
        raise ValueError(f"{min(others)} is less than 0")
