"""Which edges to take out of a graph so that it has no loop, and all in it is still reached. Pure.

The rule: one edge at a time, the first that stands on a loop and without which every node is still
reached. Once an edge is off all loops, or is the only way to somewhere, it stays so while edges go;
so one look at each edge, in order, is the same as beginning anew after each cut.

What keeps that from being quadratic are trees of which a cut breaks at most a branch: one of what
is reached, and for each loop two, of what its root leads to and of what leads to its root.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

import networkx as nx

from planner.graph import knots
from planner.reach import ROOT, Edge, Tree, neighbours

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
    near = _near_loops(count, {*held, *loose})
    if not near:
        return Cut([], [], [])
    loops = _Loops(count, near)
    before = loops.now()
    ways = _Ways(count, loose, roots)
    edges = []
    for edge in sorted(loose):
        if edge not in held and edge in loops and ways.spare(*edge):
            loops.cut(*edge)
            edges.append(edge)
    return Cut(edges, before, loops.now())


def _near_loops(count: int, edges: Collection[Edge]) -> list[Edge]:
    """Give the edges on loops and behind them; what stands before all loops falls away."""
    into = [0] * count
    after: list[list[int]] = [[] for _ in range(count)]
    for one, other in edges:
        after[one].append(other)
        into[other] += 1
    free = [node for node, number in enumerate(into) if not number]
    for node in free:  # it grows while it is read
        for other in after[node]:
            into[other] -= 1
            if not into[other]:
                free.append(other)
    return [(one, other) for one, other in edges if into[one]]


class _Loops:
    """The edges that stand on loops, while some are cut."""

    def __init__(self, count: int, edges: Iterable[Edge]) -> None:
        self._after, self._into = neighbours(count, edges)
        self._groups = [(nodes,) for nodes in self._into]
        self._ahead = Tree(self._after, self._into)
        self._back = Tree(self._into, self._after)
        self._part({*range(count)})

    def __contains__(self, edge: Edge) -> bool:
        return edge[1] in self._after[edge[0]]

    def now(self) -> list[frozenset[int]]:
        """Give the loops, each as the set of its nodes."""
        return knots(self._groups, [node for node, nodes in enumerate(self._into) if nodes])

    def cut(self, one: int, other: int) -> None:
        """Take an edge away, and with it all that stood on loops only because of it."""
        self._drop(one, other)
        lost = {*self._lost(self._ahead, one, other), *self._lost(self._back, other, one)}
        if lost:
            self._ahead.change({}, lost)
            self._back.change({}, lost)
            self._part(lost)

    @staticmethod
    def _lost(tree: Tree, one: int, other: int) -> set[int]:
        again, lost = tree.without(one, other)
        tree.change(again, ())
        return lost

    def _part(self, nodes: set[int]) -> None:
        """Find the loops among nodes that are on none with others, and plant their trees."""
        found = knots(self._groups, nodes)
        part = {node: number for number, knot in enumerate(found) for node in knot}
        for one in nodes:
            own = part.get(one)
            for other in [n for n in self._after[one] if own is None or part.get(n) != own]:
                self._drop(one, other)
            for other in [n for n in self._into[one] if own is None or part.get(n) != own]:
                self._drop(other, one)
        for knot in found:
            # The last: edges are cut in the order of where they begin, so it is there longest.
            self._ahead.grow([max(knot)])
            self._back.grow([max(knot)])

    def _drop(self, one: int, other: int) -> None:
        self._after[one].discard(other)
        self._into[other].discard(one)


class _Ways:
    """Over which edges the roots reach every node, and which of them can be spared."""

    def __init__(self, count: int, edges: Collection[Edge], roots: Iterable[int]) -> None:
        self._after, self._into = neighbours(count, edges)
        self._roots = tuple(roots)
        self._tree = Tree(self._after, self._into)
        self._tree.grow(self._roots)
        self._only: set[Edge] = set()
        self._effort, self._patience = 0, _PATIENCE * len(edges)

    def spare(self, one: int, other: int) -> bool:
        """Take an edge away if all is reached without it; say whether it was."""
        alone = len(self._into[other]) == 1 and self._tree.over[other] == one
        if alone or (one, other) in self._only:
            return False
        self._after[one].discard(other)
        self._into[other].discard(one)
        again, lost = self._tree.without(one, other)
        if not lost:
            self._tree.change(again, ())
            return True
        self._after[one].add(other)
        self._into[other].add(one)
        self._effort += len(lost)
        if self._effort > self._patience:
            self._only, self._effort = self._only_ways(), 0
        return False

    def _only_ways(self) -> set[Edge]:
        """Find all edges that are the only way to somewhere, at once: they dominate a node."""
        graph: nx.DiGraph[int | Edge] = nx.DiGraph((ROOT, root) for root in self._roots)
        for one, nodes in enumerate(self._after):
            for other in nodes:
                graph.add_edge(one, (one, other))
                graph.add_edge((one, other), other)
        found = nx.immediate_dominators(graph, ROOT)
        return {edge for edge in found.values() if isinstance(edge, tuple)}
