# SPDX-License-Identifier: Apache-2.0
"""How the tree of what is reached grows, and how it is repaired."""

from __future__ import annotations

import pytest

from planner.planners.events.reachability import ROOT, UNREACHED, SpanningTree


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
