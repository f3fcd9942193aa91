"""Which edges to take out of a graph so that it has no loop, and all in it is still reached. Pure.

The rule: one edge at a time, the first that stands on a loop and without which every node is still
reached. Once an edge is off all loops, or is the only way to somewhere, it stays so while edges go;
so one look at each edge, in order, is the same as beginning anew after each cut.

What keeps that from being quadratic are trees of which a cut breaks at most a branch: one of what
is reached, and for each loop two, of what its root leads to and of what leads to its root. In the
worst case it is quadratic all the same: on one long loop where each cut makes the next edge the
only way to all the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import repeat
from typing import NamedTuple

from planner.graph_algorithms import acyclic_part, strongly_connected_components
from planner.planners.events.dominators import dominators
from planner.planners.events.reach import Edge, Tree, neighbours

#: Finding all only ways at once takes as long as so many steps, for each edge, of looking for one.
_PATIENCE = 10


class Cut(NamedTuple):
    """The edges that were cut, in order; the loops as they were, and what is left of them.

    ``loops`` and ``left`` are sets of nodes of which each leads to every other.
    """

    edges: list[Edge]
    loops: list[frozenset[int]]
    left: list[frozenset[int]]


def cut(count: int, fixed: Iterable[Edge], loose: Collection[Edge], roots: Iterable[int]) -> Cut:
    """Cut ``loose`` edges, the smallest first, until no loop is left or none may be cut any more.

    Nodes are 0 to ``count`` - 1. ``fixed`` edges stay; an edge that is loose as well counts among
    those over which the roots reach every node.

    >>> cut(3, [], [(0, 1), (1, 2), (2, 1)], [0])
    Cut(edges=[(2, 1)], loops=[frozenset({1, 2})], left=[])
    >>> cut(2, [(1, 0)], [(0, 1)], [0]).left
    [frozenset({0, 1})]
    """
    held = set(fixed)
    near = _near_loops(count, [*held, *loose])
    if not near:
        return Cut([], [], [])
    loops = _Loops(count, near)
    ways = _Ways(loops.after, loose, roots)
    edges: list[Edge] = []
    for one in range(count):
        gone = [
            other
            for other in sorted(loops.after[one])
            if (one, other) not in held and ways.spare(one, other)
        ]
        if gone:
            loops.cut(one, gone)
            edges += zip(repeat(one), gone)
    return Cut(edges, loops.found, loops.left())


def _near_loops(count: int, edges: Collection[Edge]) -> list[Edge]:
    """Give the edges on loops and behind them; what stands before all loops falls away."""
    after: dict[int, list[int]] = {node: [] for node in range(count)}
    for one, other in edges:
        after[one].append(other)
    for node in acyclic_part(after):
        del after[node]
    return [(one, other) for one, others in after.items() for other in others]


class _Loops:
    """The edges that stand on loops, while some are cut."""

    def __init__(self, count: int, edges: Iterable[Edge]) -> None:
        #: The nodes to which edges on loops lead from each node.
        self.after, self._into = neighbours(count, edges)
        self._groups = [(nodes,) for nodes in self._into]
        self._ahead, self._back = Tree(self._into), Tree(self.after)
        #: The loops of the beginning, each as the set of its nodes.
        self.found = self._part(range(count))

    def left(self) -> list[frozenset[int]]:
        """Give the loops that are left."""
        return strongly_connected_components(
            self._groups, [node for node, nodes in enumerate(self._into) if nodes]
        )

    def cut(self, one: int, others: Collection[int]) -> None:
        """Take edges of one node away, and with them all that stood on loops only because of it."""
        self.after[one].difference_update(others)
        for other in others:
            self._into[other].discard(one)
        if self._back.over[one] in others:
            self._part(self._back.mend(self._into, one))
        for other in others:
            if self._ahead.over[other] == one:
                self._part(self._ahead.mend(self.after, other))

    def _part(self, nodes: Collection[int]) -> list[frozenset[int]]:
        """Find the loops among nodes that are on none with others, and plant their trees."""
        if not nodes:
            return []
        found = strongly_connected_components(self._groups, nodes)
        loop = {node: knot for knot in found for node in knot}
        for one in nodes:
            own = loop.get(one, _NOBODY)
            for other in self.after[one] - own:
                self._into[other].discard(one)
            self.after[one] &= own
            for other in self._into[one] - own:
                self.after[other].discard(one)
            self._into[one] &= own
        # The last: edges are cut in the order of where they begin, so it is there longest.
        roots = [max(knot) for knot in found]
        for tree, after in ((self._ahead, self.after), (self._back, self._into)):
            tree.forget(nodes)
            tree.grow(after, roots)
        return found


_NOBODY: frozenset[int] = frozenset()


class _Ways:
    """Over which edges the roots reach every node, and which of them can be spared."""

    def __init__(
        self, loops: Sequence[Collection[int]], edges: Collection[Edge], roots: Iterable[int]
    ) -> None:
        after, self._into = neighbours(len(loops), edges)
        self._roots = tuple(roots)
        self._tree = Tree(self._into)
        self._tree.grow(after, self._roots)
        #: Nodes that lead on loops to others; what is behind a loop leads to nothing on it.
        self._loops = loops
        #: The nodes to which the edge of the tree is the only way.
        self._only: set[int] = set()
        self._effort, self._patience = 0, _PATIENCE * len(edges)

    def spare(self, one: int, other: int) -> bool:
        """Take an edge on a loop away if all is reached without it; say whether it was."""
        into = self._into[other]
        if self._tree.over[other] != one:
            into.discard(one)
            return True
        if len(into) == 1 or other in self._only:
            return False
        into.discard(one)
        lost = self._tree.mend(self._loops, other)
        if not lost:
            return True
        into.add(one)
        self._effort += len(lost)
        if self._effort > self._patience:
            self._only, self._effort = self._only_ways(), 0
        return False

    def _only_ways(self) -> set[int]:
        """Find at once all nodes to which the edge of the tree is the only way."""
        count = len(self._into)
        # Each edge of the tree is a node of its own, behind those that are there, then the root.
        after: list[list[int]] = [*([] for _ in range(count)), *([i] for i in range(count))]
        for other, nodes in enumerate(self._into):
            for one in nodes:
                after[one].append(other + count if self._tree.over[other] == one else other)
        found = dominators([*after, self._roots], len(after))
        return {node for node in range(count) if found[node] == node + count}
