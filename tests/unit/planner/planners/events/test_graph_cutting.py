# SPDX-License-Identifier: Apache-2.0
"""Cutting: dominators, the tree of what is reached and how it is repaired, and what they save."""

from __future__ import annotations

import sys
from collections import Counter
from unittest import mock

import pytest

from planner.planners.events import cutting
from planner.planners.events.cutting import NONE, dominators
from planner.planners.events.event_graph import ROOT, UNREACHED, SpanningTree


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


#: Each of 1, 2 and 3 is reached over one edge only, though each has a second one from behind it.
EDGES = [(0, 1), (1, 2), (2, 0), (2, 1), (2, 3), (3, 2), (3, 0), (3, 1)]


def searches(edges: list[tuple[int, int]], patience: float) -> tuple[int, int]:
    """Return how many trees are repaired, and how often dominators are computed."""
    repair = SpanningTree.repair
    with (
        mock.patch.object(cutting, "PATIENCE", patience),
        mock.patch.object(SpanningTree, "repair", autospec=True, side_effect=repair) as repaired,
        mock.patch.object(cutting, "dominators", wraps=cutting.dominators) as dominated,
    ):
        found = cutting.cut(4, [], edges, [0])
    assert not found.left
    return repaired.call_count, dominated.call_count


def test_the_only_ways_to_nodes_are_searched_once_when_patience_is_used_up() -> None:
    """The first search finds three nodes that are lost without their edge."""
    for nodes, found in ((0, (4, 1)), (2, (4, 1)), (3, (5, 1)), (80, (5, 0))):
        assert searches(EDGES, nodes / len(EDGES)) == found


def test_the_only_edge_to_a_node_is_kept_without_a_search() -> None:
    """One tree is repaired: that of the cycle, for the one edge that is cut."""
    assert searches([(0, 1), (1, 2), (2, 3), (3, 0)], 0) == (1, 0)


def grown(after: list[list[int]], roots: list[int]) -> tuple[SpanningTree, list[set[int]]]:
    """Return a tree, and what leads to each node, from which a test may take edges."""
    into: list[set[int]] = [set() for _ in after]
    for node, others in enumerate(after):
        for other in others:
            into[other].add(node)
    tree = SpanningTree(into)
    tree.grow(after, roots)
    return tree, into


@pytest.mark.parametrize("roots", [[0, 1, 2], [2, 1, 0], [1, 0, 2]])
def test_the_largest_of_several_roots_is_the_parent(roots: list[int]) -> None:
    tree, _ = grown([[3], [3], [3], [4], [], [4]], roots)
    assert tree.parent == [ROOT, ROOT, ROOT, 2, 3, UNREACHED]


def test_a_branch_that_is_cut_off_is_reached_by_the_largest_that_is_left() -> None:
    after = [[2], [2], [3], []]
    tree, into = grown(after, [0, 1])
    assert tree.parent[2] == 1
    into[2].remove(1)
    after[1].remove(2)
    assert tree.repair(after, 2) == set()
    assert tree.parent == [ROOT, ROOT, 0, 2]
    into[2].remove(0)
    after[0].remove(2)
    assert tree.repair(after, 2) == {2, 3}


def test_what_is_cut_off_is_reached_over_what_was_behind_it() -> None:
    after = [[2], [4], [3], [4], [3]]
    tree, into = grown(after, [0])
    tree.parent[1] = ROOT
    assert tree.parent == [ROOT, ROOT, 0, 2, 3]
    into[2].remove(0)
    after[0].remove(2)
    assert tree.repair(after, 2) == {2}
    assert (tree.parent[4], tree.parent[3]) == (1, 4)
