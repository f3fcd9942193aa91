"""What is reached from where, over the edges of a graph whose nodes are numbers. Pure."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence

Edge = tuple[int, int]
#: Over which a root is reached, and what nobody reaches.
ROOT, NOTHING = -1, -2
#: So many sets of nodes are united at a time.
_BITS = 4096


def neighbours(count: int, edges: Iterable[Edge]) -> tuple[list[set[int]], list[set[int]]]:
    """Give for each node those that its edges lead to, and those from which edges lead to it."""
    after: list[set[int]] = [set() for _ in range(count)]
    into: list[set[int]] = [set() for _ in range(count)]
    for one, other in edges:
        after[one].add(other)
        into[other].add(one)
    return after, into


def reachable_pairs(
    order: Sequence[int], edges: Iterable[Edge], pairs: Iterable[Edge]
) -> Iterator[Edge]:
    """Give those pairs of which the second is reached from the first; no edge leads back.

    ``order`` is one in which every edge goes forward. Sets of nodes are numbers, a bit for each
    first of a pair, so many at a time: a node's set is united with those before it in one step.

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
    """How each node is reached, while edges are taken away.

    ``into`` has for each node those from which an edge leads to it. Edges that go out from the
    nodes with the highest numbers are taken: whoever takes edges away begins with the others.
    """

    def __init__(self, into: Sequence[set[int]]) -> None:
        self._into = into
        #: For each node the one over which it is reached, ROOT or NOTHING.
        self.over = [NOTHING] * len(into)

    def grow(self, after: Sequence[Collection[int]], roots: Iterable[int]) -> None:
        """Reach whatever is reached by nothing yet; ``after`` has what edges lead to."""
        over = self.over
        ahead = []
        for root in roots:
            over[root] = ROOT
            ahead.append(-root)
        heapq.heapify(ahead)
        while ahead:
            one = -heapq.heappop(ahead)
            for other in after[one]:
                if over[other] == NOTHING:
                    over[other] = one
                    heapq.heappush(ahead, -other)

    def repair(self, after: Sequence[Collection[int]], node: int) -> set[int]:
        """Find other ways to what was reached over an edge to a node; give what has none.

        ``after`` may lack edges to nodes that do not lead back to this one, and have more edges
        than ``into``.
        """
        branch = self._branch(after, node)
        ahead = []
        for one in branch:
            last = max(self._into[one].difference(branch), default=NOTHING)
            if last != NOTHING:
                self.over[one] = last
                ahead.append(one)
                if one == node:
                    return set()
        lost = branch.keys() - ahead
        for one in ahead:  # it grows while it is read
            for other in lost.intersection(after[one]):
                if one in self._into[other]:
                    lost.remove(other)
                    self.over[other] = one
                    ahead.append(other)
        return lost

    def forget(self, nodes: Iterable[int]) -> None:
        """Let nodes be reached by nothing."""
        for node in nodes:
            self.over[node] = NOTHING

    def _branch(self, after: Sequence[Collection[int]], node: int) -> dict[int, None]:
        """Give the nodes that are reached over one, with itself."""
        over = self.over
        found = [node]
        for one in found:  # it grows while it is read
            found += [other for other in after[one] if over[other] == one]
        return dict.fromkeys(found)
