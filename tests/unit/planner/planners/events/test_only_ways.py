# SPDX-License-Identifier: Apache-2.0
"""Cutting: what the dominators save."""

from unittest import mock

import pytest

from planner.planners.events import cutting
from planner.planners.events.reachability import neighbours

#: Each of 1, 2 and 3 is reached over one edge only, though each has a second one from behind it.
EDGES = [(0, 1), (1, 2), (2, 0), (2, 1), (2, 3), (3, 2), (3, 0), (3, 1)]


@pytest.mark.parametrize(("patience", "searches"), [(0, 1), (10, 2)])
def test_the_only_ways_to_nodes_are_searched_once_when_patience_is_used_up(
    patience: int, searches: int
) -> None:
    with mock.patch.object(cutting, "_PATIENCE", patience):
        ways = cutting._Reachability(neighbours(4, EDGES)[0], EDGES, [0])
    with mock.patch.object(ways._tree, "repair", wraps=ways._tree.repair) as repair:
        assert [ways.spare(0, 1), ways.spare(1, 2)] == [False, False]
    assert repair.call_count == searches
