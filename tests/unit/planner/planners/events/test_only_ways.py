# SPDX-License-Identifier: Apache-2.0
"""Cutting: what the dominators save."""

from unittest import mock

from planner.planners.events import cutting
from planner.planners.events.reachability import SpanningTree

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
