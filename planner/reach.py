"""What is reached from where, over the edges of a graph whose nodes are numbers. Pure."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence

Edge = tuple[int, int]
#: Over which a root is reached.
ROOT = -1
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


def behind(order: Sequence[int], edges: Iterable[Edge], pairs: Iterable[Edge]) -> Iterator[Edge]:
    """Give those pairs of which the second is reached from the first; no edge leads back.

    ``order`` is one in which every edge goes forward. Sets of nodes are numbers, a bit for each
    first of a pair, so many at a time: a node's set is united with those before it in one step.

    >>> list(behind([0, 1, 2], [(0, 1), (1, 2)], [(0, 2), (1, 0), (2, 2)]))
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


class Tree:
    """How each node is reached, while edges are taken away from ``after`` and ``into``."""

    def __init__(self, after: Sequence[set[int]], into: Sequence[set[int]]) -> None:
        self._after, self._into = after, into
        #: Node -> the one over which it is reached; that of a root is ROOT.
        self.over: dict[int, int] = {}
        self._below: defaultdict[int, set[int]] = defaultdict(set)

    def grow(self, roots: Iterable[int]) -> None:
        """Reach whatever can be reached from the roots."""
        ahead = deque(dict.fromkeys(roots))
        self.over.update((root, ROOT) for root in ahead)
        while ahead:
            one = ahead.popleft()
            for other in self._after[one]:
                if other not in self.over:
                    self._hang(other, one)
                    ahead.append(other)

    def without(self, one: int, other: int) -> tuple[dict[int, int], set[int]]:
        """Say what an edge that is gone from the sets changes: new ways, and what is lost."""
        if self.over.get(other) != one:
            return {}, set()
        branch = self.branch(other)
        # The last again: the edges from it are cut after all others.
        last = max((way for way in self._into[other] if way not in branch), default=None)
        if last is not None:
            return {other: last}, set()
        again: dict[int, int] = {}
        for node in branch:
            way = next((w for w in self._into[node] if w not in branch), None)
            if way is not None:
                again[node] = way
        ahead = deque(again)
        while ahead:
            node = ahead.popleft()
            for follower in self._after[node]:
                if follower in branch and follower not in again:
                    again[follower] = node
                    ahead.append(follower)
        return again, branch.difference(again)

    def branch(self, node: int) -> set[int]:
        """Give the nodes that are reached over one, with itself."""
        found = {node}
        ahead = [node]
        while ahead:
            below = self._below[ahead.pop()]
            found |= below
            ahead += below
        return found

    def change(self, again: dict[int, int], lost: Iterable[int]) -> None:
        """Take over what :meth:`without` found."""
        for node in (*again, *lost):
            self._below[self.over.pop(node, ROOT)].discard(node)
        for node, way in again.items():
            self._hang(node, way)

    def _hang(self, node: int, way: int) -> None:
        self.over[node] = way
        self._below[way].add(node)
