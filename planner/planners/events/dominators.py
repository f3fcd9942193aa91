# SPDX-License-Identifier: Apache-2.0
"""Immediate dominators: the last node on every path from the root to a node. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

#: The dominator of nodes that have none.
NONE = -1


def dominators(after: Sequence[Iterable[int]], root: int) -> list[int]:
    """Return the immediate dominator of each node; NONE for the root and for unreachable nodes.

    ``after`` holds the successors of each node. Source: Lengauer and Tarjan, "A fast algorithm for
    finding dominators in a flowgraph", 1979, the simple version: O(edges x log(nodes)). The
    algorithm in networkx takes quadratic time in deep graphs.

    >>> dominators([[1, 2], [3], [3], [4], [1], [0]], 0)
    [-1, 0, 0, 0, 3, -1]
    """
    order, over = _walk(after, root)
    number = {node: i for i, node in enumerate(order)}
    into: list[list[int]] = [[] for _ in order]
    for i, node in enumerate(order):
        for other in after[node]:
            into[number[other]].append(i)
    forest = _Forest(len(order))
    found = [0] * len(order)
    waiting: list[list[int]] = [[] for _ in order]
    for i in range(len(order) - 1, 0, -1):
        forest.lowest[i] = min([forest.lowest[forest.best(j)] for j in into[i]])
        waiting[forest.lowest[i]].append(i)
        forest.over[i] = over[i]
        for j in waiting[over[i]]:
            best = forest.best(j)
            found[j] = best if forest.lowest[best] < forest.lowest[j] else over[i]
        waiting[over[i]] = []
    result = [NONE] * len(after)
    for i in range(1, len(order)):
        if found[i] != forest.lowest[i]:
            found[i] = found[found[i]]
        result[order[i]] = order[found[i]]
    return result


def _walk(after: Sequence[Iterable[int]], root: int) -> tuple[list[int], list[int]]:
    """Return the nodes in depth-first order, and for each the index of its parent."""
    order, over = [root], [NONE]
    seen = {root}
    path = [(0, iter(after[root]))]
    while path:
        place, ahead = path[-1]
        for node in ahead:
            if node not in seen:
                seen.add(node)
                path.append((len(order), iter(after[node])))
                order.append(node)
                over.append(place)
                break
        else:
            path.pop()
    return order, over


class _Forest:
    """The link-eval forest of the algorithm, with path compression."""

    def __init__(self, count: int) -> None:
        self.over = [NONE] * count
        #: The semidominator of each node, as an index in depth-first order.
        self.lowest = list(range(count))
        self._best = list(range(count))

    def best(self, node: int) -> int:
        """Return the node with the smallest ``lowest`` on the path from ``node`` to its root.

        The path excludes the root, unless ``node`` is the root.
        """
        over, lowest, best = self.over, self.lowest, self._best
        if over[node] == NONE:
            return node
        path = []
        top = node
        while over[over[top]] != NONE:
            path.append(top)
            top = over[top]
        for one in reversed(path):
            above = over[one]
            if lowest[best[above]] < lowest[best[one]]:
                best[one] = best[above]
            over[one] = over[above]
        return best[node]
