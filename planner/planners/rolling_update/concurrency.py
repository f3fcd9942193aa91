# SPDX-License-Identifier: Apache-2.0
"""Divides groups into sets that are updated together, and counts the instances meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planner.planners.rolling_update.roll import Roll


def side_by_side(rolls: Sequence[Roll], most: int | None) -> Iterator[list[Roll]]:
    """Yield sets of groups to update together, in input order, one set after another.

    At most ``most`` members of a set are unavailable at once; None is no limit. A group that
    exceeds the limit alone is a set of its own.
    """
    turn: list[Roll] = []
    for roll in rolls:
        missing = sum(other.unavailable for other in turn) + roll.unavailable
        if turn and most is not None and missing > most:
            yield turn
            turn = []
        turn.append(roll)
    if turn:
        yield turn


def peak(turns: Sequence[Sequence[Roll]]) -> int:
    """Return the maximum number of instances of all groups; the sets are updated one by one."""
    there = sum(len(roll.members) for turn in turns for roll in turn)
    highest = there
    for turn in turns:
        highest = max(highest, there + sum(r.peak - len(r.members) for r in turn))
        there += sum(r.end - len(r.members) for r in turn)
    return highest
