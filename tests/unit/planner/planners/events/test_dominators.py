# SPDX-License-Identifier: Apache-2.0
"""Dominators: each edge and each node is looked at once, so that large graphs stay cheap."""

from __future__ import annotations

import sys
from collections import Counter

from planner.planners.events.dominators import NONE, dominators


def calls(after: list[list[int]]) -> int:
    """Return how many functions are called to find the dominators."""
    found: Counter[str] = Counter()
    sys.setprofile(lambda _, event, __: found.update([event]))
    try:
        dominators(after, 0)
    finally:
        sys.setprofile(None)
    return found["call"]


def star(nodes: int) -> list[list[int]]:
    return [list(range(1, nodes)), *([] for _ in range(nodes - 1))]


def ladder(nodes: int) -> list[list[int]]:
    """Each node leads to the next two."""
    return [[i for i in (one + 1, one + 2) if i < nodes] for one in range(nodes)]


def test_dominators_of_a_star_and_of_a_ladder() -> None:
    assert dominators(star(5), 0) == [NONE, 0, 0, 0, 0]
    assert dominators(ladder(5), 0) == [NONE, 0, 0, 0, 0]
    assert dominators([[1, 2], [3], [3], [4, 5], [6], [6], [0]], 0) == [NONE, 0, 0, 0, 3, 3, 3]


def test_twice_as_many_edges_are_twice_as_much_work() -> None:
    for graph in (star, ladder):
        small, large = calls(graph(100)), calls(graph(200))
        assert 100 < small < large < 2.2 * small, graph
