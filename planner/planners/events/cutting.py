# SPDX-License-Identifier: Apache-2.0
"""Chooses edges to cut, so that a graph has no cycle and every node stays reachable. Pure.

The rule: repeatedly cut the first edge that is on a cycle and without which every node is still
reachable from the roots. If an edge is on no cycle, or is the only way to a node, that does not
change when other edges are cut. So one pass over the edges, in order, gives the same result as
starting again after each cut.

Spanning trees make this fast in most graphs, because a cut removes at most one branch of each tree.
There is one tree of the nodes reachable from the roots. Each strongly connected component has two
more: the paths from its root, and the paths to its root. The worst case is still quadratic: one
long cycle, in which each cut makes the next edge the only way to all remaining nodes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import repeat
from typing import NamedTuple

from planner.plan.graph_algorithms import CycleError, cyclic_components, topological_order
from planner.planners.events.event_graph import Edge, SpanningTree, successors_and_predecessors

#: After this many repair steps per edge, computing the dominators of all nodes is cheaper.
PATIENCE = 10


class Cut(NamedTuple):
    """The edges that were cut, in order, and the components with cycles before and after.

    ``cyclic`` are the strongly connected components that had cycles before the first cut, ``left``
    those that still have cycles.
    """

    edges: list[Edge]
    cyclic: list[frozenset[int]]
    left: list[frozenset[int]]


def cut(count: int, fixed: Iterable[Edge], loose: Collection[Edge], roots: Iterable[int]) -> Cut:
    """Cut ``loose`` edges, the smallest first, until no cycle is left or no further cut is allowed.

    Nodes are 0 to ``count`` - 1. ``fixed`` edges are never cut. Only ``loose`` edges count for the
    reachability of nodes from ``roots``; an edge in both sets counts and is never cut.

    >>> cut(3, [], [(0, 1), (1, 2), (2, 1)], [0])
    Cut(edges=[(2, 1)], cyclic=[frozenset({1, 2})], left=[])
    >>> cut(2, [(1, 0)], [(0, 1)], [0]).left
    [frozenset({0, 1})]
    """
    kept = set(fixed)
    near = _edges_near_cycles(count, [*kept, *loose])
    if not near:
        return Cut([], [], [])
    components = _Components(count, near)
    ways = _Reachability(components.after, loose, roots)
    edges: list[Edge] = []
    for one in range(count):
        gone = [
            other
            for other in sorted(components.after[one])
            if (one, other) not in kept and ways.spare(one, other)
        ]
        if gone:
            components.cut(one, gone)
            edges += zip(repeat(one), gone)
    return Cut(edges, components.found, components.left())


def _edges_near_cycles(count: int, edges: Collection[Edge]) -> list[Edge]:
    """Return the edges on cycles and those that start at a node reachable from one."""
    _, into = successors_and_predecessors(count, edges)
    try:
        topological_order([(tuple(nodes),) for nodes in into])
    except CycleError as error:
        near = {*error.nodes}
        return [(one, other) for one, other in edges if one in near]
    return []


class _Components:
    """The edges that are on cycles, updated with each cut."""

    def __init__(self, count: int, edges: Iterable[Edge]) -> None:
        #: The successors of each node, over edges on cycles.
        self.after, self._into = successors_and_predecessors(count, edges)
        self._ahead, self._back = SpanningTree(self._into), SpanningTree(self.after)
        #: The strongly connected components before the first cut.
        self.found = self._split(range(count))

    def left(self) -> list[frozenset[int]]:
        """Return the strongly connected components that still have cycles."""
        return self._cyclic([node for node, nodes in enumerate(self._into) if nodes])

    def cut(self, one: int, others: Collection[int]) -> None:
        """Remove the edges from ``one`` to ``others``, and all edges that are then on no cycle."""
        self.after[one].difference_update(others)
        for other in others:
            self._into[other].discard(one)
        if self._back.parent[one] in others:
            self._split(self._back.repair(self._into, one))
        for other in others:
            if self._ahead.parent[other] == one:
                self._split(self._ahead.repair(self.after, other))

    def _cyclic(self, nodes: Collection[int]) -> list[frozenset[int]]:
        import networkx as nx

        within = {*nodes}
        after = {one: within.intersection(self.after[one]) for one in nodes}
        return cyclic_components(nx.DiGraph(after))

    def _split(self, nodes: Collection[int]) -> list[frozenset[int]]:
        """Split ``nodes`` into strongly connected components that have cycles; return these.

        The edges between components are removed, and the spanning trees of each are grown anew.
        """
        if not nodes:
            return []
        found = self._cyclic(nodes)
        component_of = {node: component for component in found for node in component}
        for one in nodes:
            own = component_of.get(one, _NO_NODES)
            for other in self.after[one] - own:
                self._into[other].discard(one)
            self.after[one] &= own
            for other in self._into[one] - own:
                self.after[other].discard(one)
            self._into[one] &= own
        # Edges are cut in the order of their start nodes, so the edges of the largest node exist
        # longest.
        roots = [max(component) for component in found]
        for tree, after in ((self._ahead, self.after), (self._back, self._into)):
            tree.forget(nodes)
            tree.grow(after, roots)
        return found


_NO_NODES: frozenset[int] = frozenset()


class _Reachability:
    """The edges over which the roots reach all nodes; finds the edges that can be cut."""

    def __init__(
        self, components: Sequence[Collection[int]], edges: Collection[Edge], roots: Iterable[int]
    ) -> None:
        after, self._into = successors_and_predecessors(len(components), edges)
        self._roots = tuple(roots)
        self._tree = SpanningTree(self._into)
        self._tree.grow(after, self._roots)
        #: The successors of each node, over edges on cycles.
        self._components = components
        #: The nodes that are reachable only over their edge of the tree.
        self._only: set[int] = set()
        self._effort, self._patience = 0, PATIENCE * len(edges)

    def spare(self, one: int, other: int) -> bool:
        """Remove an edge if all nodes stay reachable without it; return whether it was removed."""
        into = self._into[other]
        if self._tree.parent[other] != one:
            into.discard(one)
            return True
        if len(into) == 1 or other in self._only:
            return False
        into.discard(one)
        lost = self._tree.repair(self._components, other)
        if not lost:
            return True
        into.add(one)
        self._effort += len(lost)
        if self._effort > self._patience:
            self._only, self._effort = self._only_ways(), 0
        return False

    def _only_ways(self) -> set[int]:
        """Find the nodes that are reachable only over their edge of the tree, by dominators."""
        count = len(self._into)
        # The edge of the tree to each node becomes a node itself: its number is that of the node
        # plus ``count``. The last node is a new root, the predecessor of all roots.
        after: list[list[int]] = [*([] for _ in range(count)), *([i] for i in range(count))]
        for other, nodes in enumerate(self._into):
            for one in nodes:
                after[one].append(other + count if self._tree.parent[other] == one else other)
        found = dominators([*after, self._roots], len(after))
        return {node for node in range(count) if found[node] == node + count}


#: The dominator of nodes that have none.
NONE = -1


def dominators(after: Sequence[Iterable[int]], root: int) -> list[int]:
    """Return the immediate dominator of each node; NONE for the root and for unreachable nodes.

    ``after`` has the successors of each node. Source: Lengauer and Tarjan, "A fast algorithm for
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
