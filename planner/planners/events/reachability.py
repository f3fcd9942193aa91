# SPDX-License-Identifier: Apache-2.0
"""Reachability in graphs: of pairs of nodes, and from roots while edges are removed. Pure."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence

Edge = tuple[int, int]
#: The parent of a root, and of a node that is not in the tree.
ROOT, UNREACHED = -1, -2
#: The size of a bit set: the number of start nodes that one pass handles.
_BITS = 4096


def successors_and_predecessors(
    count: int, edges: Iterable[Edge]
) -> tuple[list[set[int]], list[set[int]]]:
    """Return the successors of each node and the predecessors of each node."""
    after: list[set[int]] = [set() for _ in range(count)]
    into: list[set[int]] = [set() for _ in range(count)]
    for one, other in edges:
        after[one].add(other)
        into[other].add(one)
    return after, into


def reachable_pairs(
    order: Sequence[int], edges: Iterable[Edge], pairs: Iterable[Edge]
) -> Iterator[Edge]:
    """Yield each of ``pairs`` (one, other) if ``other`` is reachable from ``one``.

    The graph is acyclic; ``order`` is a topological order of it. Each node has a bit set of the
    start nodes from which it is reachable, with one bit for each distinct ``one``. A pass over all
    edges computes the sets for several thousand start nodes at a time.

    >>> list(reachable_pairs([0, 1, 2], [(0, 1), (1, 2)], [(0, 2), (1, 0), (2, 2)]))
    [(0, 2), (2, 2)]
    """
    into: defaultdict[int, list[int]] = defaultdict(list)
    for one, other in edges:
        into[other].append(one)
    wanted: defaultdict[int, list[int]] = defaultdict(list)
    for one, other in pairs:
        wanted[one].append(other)
    firsts = sorted(wanted)
    for start in range(0, len(firsts), _BITS):
        bits = {node: 1 << k for k, node in enumerate(firsts[start : start + _BITS])}
        seen: dict[int, int] = {}
        for node in order:
            found = bits.get(node, 0)
            for one in into[node]:
                found |= seen[one]
            seen[node] = found
        yield from (
            (one, other) for one in bits for other in wanted[one] if seen[other] & bits[one]
        )


class SpanningTree:
    """A spanning tree of the nodes reachable from the roots, updated when edges are removed.

    ``into`` holds the predecessors of each node; the caller removes edges from it. If a node has
    several predecessors, the largest is its parent in the tree. Callers remove the edges of small
    nodes first, so they seldom remove an edge of the tree.
    """

    def __init__(self, into: Sequence[set[int]]) -> None:
        self._into = into
        #: The parent of each node, ROOT or UNREACHED.
        self.parent = [UNREACHED] * len(into)

    def grow(self, after: Sequence[Collection[int]], roots: Iterable[int]) -> None:
        """Add the nodes that are reachable from ``roots``; ``after`` holds the successors."""
        parent = self.parent
        ahead = []
        for root in roots:
            parent[root] = ROOT
            ahead.append(-root)
        heapq.heapify(ahead)
        while ahead:
            one = -heapq.heappop(ahead)
            for other in after[one]:
                if parent[other] == UNREACHED:
                    parent[other] = one
                    heapq.heappush(ahead, -other)

    def repair(self, after: Sequence[Collection[int]], node: int) -> set[int]:
        """Reconnect the subtree of a node whose edge was removed; return the unreachable nodes.

        ``after`` holds the successors of each node. It may lack edges to nodes from which this one
        is not reachable, and may still hold edges that were removed from ``into``.
        """
        branch = self._branch(after, node)
        ahead = []
        for one in branch:
            last = max(self._into[one].difference(branch), default=UNREACHED)
            if last != UNREACHED:
                self.parent[one] = last
                ahead.append(one)
                if one == node:
                    return set()
        lost = branch.keys() - ahead
        for one in ahead:  # the list grows during the iteration
            for other in lost.intersection(after[one]):
                if one in self._into[other]:
                    lost.remove(other)
                    self.parent[other] = one
                    ahead.append(other)
        return lost

    def forget(self, nodes: Iterable[int]) -> None:
        """Remove nodes from the tree."""
        for node in nodes:
            self.parent[node] = UNREACHED

    def _branch(self, after: Sequence[Collection[int]], node: int) -> dict[int, None]:
        """Return a node and all nodes below it."""
        parent = self.parent
        found = [node]
        for one in found:  # the list grows during the iteration
            found += [other for other in after[one] if parent[other] == one]
        return dict.fromkeys(found)
