# SPDX-License-Identifier: Apache-2.0
"""Cutting: what the dominators save."""

from unittest import mock

import pytest

from planner.planners.events import cutting
from planner.planners.events.reachability import successors_and_predecessors

#: Each of 1, 2 and 3 is reached over one edge only, though each has a second one from behind it.
EDGES = [(0, 1), (1, 2), (2, 0), (2, 1), (2, 3), (3, 2), (3, 0), (3, 1)]


def reachability(edges: list[tuple[int, int]]) -> cutting._Reachability:
    return cutting._Reachability(successors_and_predecessors(4, edges)[0], edges, [0])


@pytest.mark.parametrize(("patience", "searches"), [(0, 1), (2, 1), (3, 2), (80, 2)])
def test_the_only_ways_to_nodes_are_searched_once_when_patience_is_used_up(
    patience: int, searches: int
) -> None:
    """The first search finds three nodes that are lost without their edge."""
    ways = reachability(EDGES)
    assert ways._patience == cutting._PATIENCE * len(EDGES)
    ways._patience = patience
    with mock.patch.object(ways._tree, "repair", wraps=ways._tree.repair) as repair:
        assert [ways.spare(0, 1), ways.spare(1, 2)] == [False, False]
    assert repair.call_count == searches


def test_the_only_edge_to_a_node_is_kept_without_a_search() -> None:
    ways = reachability([(0, 1), (1, 2), (2, 3), (3, 0)])
    with mock.patch.object(ways._tree, "repair", wraps=ways._tree.repair) as repair:
        assert [ways.spare(1, 2), ways.spare(2, 3), ways.spare(3, 0)] == [False, False, True]
    assert repair.call_count == 0
