# SPDX-License-Identifier: Apache-2.0
"""Dominators: each edge and each node is looked at once, so that wide graphs stay cheap."""

from __future__ import annotations

from unittest import mock

import pytest

from planner.planners.events import dominators as module
from planner.planners.events.dominators import NONE, dominators

STAR = [list(range(1, 60)), *([] for _ in range(59))]
LADDER = [[1, 2], [3], [3], [4, 5], [6], [6], [0]]


@pytest.mark.parametrize(
    ("after", "expected"),
    [(STAR, [NONE, *[0] * 59]), (LADDER, [NONE, 0, 0, 0, 3, 3, 3])],
    ids=["star", "ladder"],
)
def test_each_edge_and_each_node_is_evaluated_once(
    after: list[list[int]], expected: list[int]
) -> None:
    best = module._Forest.best
    with mock.patch.object(module._Forest, "best", autospec=True, side_effect=best) as evaluated:
        assert dominators(after, 0) == expected
    edges = sum(map(len, after)) - sum(nodes.count(0) for nodes in after)
    assert evaluated.call_count == edges + len(after) - 1
