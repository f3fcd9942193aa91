# SPDX-License-Identifier: Apache-2.0
"""Algorithms on graphs that are not graph objects: predecessors in shared groups, or a function.

Each shared group is read only once, which networkx does not do. All else is left to networkx, which
is imported where it is asked. doc/decisions/0035-graph-algorithms.rst gives reasons and figures.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import networkx as nx

#: The predecessors of one node, in groups. Nodes with equal groups share one object.
Predecessors = Sequence[Sequence[int]]
Node = TypeVar("Node", bound=Hashable)
Given = TypeVar("Given")
Made = TypeVar("Made")
#: The size of a bit set: the number of start nodes that one pass handles.
_BITS = 4096


class CycleError(Exception):
    """The graph has a cycle. ``nodes`` are all nodes on a cycle or reachable from one."""

    def __init__(self, before: Sequence[Predecessors], nodes: Sequence[int]) -> None:
        self._before, self.nodes = before, tuple(nodes)
        super().__init__(f"{len(self.nodes)} nodes are on cycles or reachable from one")

    def components(self) -> list[frozenset[int]]:
        """List the strongly connected components that have cycles, by their smallest nodes."""
        return cyclic_components(_backwards(self._before, self.nodes))

    def cycles(self) -> list[list[int]]:
        """List a shortest cycle through the smallest node of each strongly connected component.

        Each node is a predecessor of the next one, and the last one of the first.

        >>> try:
        ...     topological_order([[(2,)], [(0,)], [(1,)], [(0,)]])
        ... except CycleError as error:
        ...     print(error.cycles())
        [[0, 1, 2]]
        """
        graph = _backwards(self._before, self.nodes)
        found = []
        for component in cyclic_components(graph):
            first, *others = shortest_cycle(graph, min(component))
            found.append([first, *reversed([node for node in others if isinstance(node, int)])])
        return found


def topological_order(before: Sequence[Predecessors]) -> list[int]:
    """Order the nodes 0 to n-1 so that each follows its predecessors, the smallest possible first.

    ``before[i]`` has the predecessors of node ``i`` in groups, which several nodes may share. If
    all predecessors have smaller numbers, the order is 0 to n-1, and each shared group is read only
    once; otherwise it takes O(n log n + edges). Raises :class:`CycleError`. In the example, 0
    follows 2, and 2 follows 1:

    >>> topological_order([[(2,)], [], [(1,)]])
    [1, 2, 0]
    """
    if _is_ordered(before):
        return list(range(len(before)))
    after: list[list[int]] = [[] for _ in before]
    missing = [0] * len(before)
    for node, groups in enumerate(before):
        for group in groups:
            missing[node] += len(group)
            for predecessor in group:
                after[predecessor].append(node)
    ready = [node for node, number in enumerate(missing) if not number]
    order = []
    while ready:
        node = heapq.heappop(ready)
        order.append(node)
        for successor in after[node]:
            missing[successor] -= 1
            if not missing[successor]:
                heapq.heappush(ready, successor)
    if len(order) < len(before):
        raise CycleError(before, [node for node, number in enumerate(missing) if number])
    return order


def _is_ordered(before: Sequence[Predecessors]) -> bool:
    latest: dict[int, int] = {}
    for node, groups in enumerate(before):
        for group in groups:
            if not group:
                continue
            last = latest.get(id(group))
            if last is None:
                last = latest[id(group)] = max(group)
            if last >= node:
                return False
    return True


def reachable(
    starts: Iterable[Node], neighbours: Callable[[Node], Iterable[Node]]
) -> dict[Node, None]:
    """Return the start nodes and all nodes reachable from them, in the order of discovery.

    Only the neighbours of these nodes are asked for: networkx would need the whole graph first.

    >>> list(reachable([1], {1: [2, 3], 2: [1], 3: []}.__getitem__))
    [1, 2, 3]
    """
    found = dict.fromkeys(starts)
    stack = list(found)
    while stack:
        for node in neighbours(stack.pop()):
            if node not in found:
                found[node] = None
                stack.append(node)
    return found


def reachable_pairs(
    order: Sequence[int],
    before: Callable[[int], Predecessors],
    pairs: Iterable[tuple[int, int]],
) -> Iterator[tuple[int, int]]:
    """Yield each of ``pairs`` (one, other) if ``other`` is reachable from ``one``.

    The graph is acyclic; ``order`` is a topological order of it, ``before`` returns the
    predecessors of a node. Each node has a bit set of the start nodes from which it is reachable,
    with one bit for each distinct ``one``. A pass over all shared groups of edges computes the sets
    for several thousand start nodes at a time.

    >>> before = [[], [(0,)], [(1,)]]
    >>> list(reachable_pairs([0, 1, 2], before.__getitem__, [(0, 2), (1, 0), (2, 2)]))
    [(0, 2), (2, 2)]
    """
    wanted: defaultdict[int, list[int]] = defaultdict(list)
    for one, other in pairs:
        wanted[one].append(other)
    firsts = sorted(wanted)
    for start in range(0, len(firsts), _BITS):
        bits = {node: 1 << k for k, node in enumerate(firsts[start : start + _BITS])}
        seen: dict[int, int] = {}

        def union(group: Sequence[int], seen: Mapping[int, int] = seen) -> int:
            found = 0
            for node in group:
                found |= seen.get(node, 0)
            return found

        shared = once(union)
        for node in order:
            found = bits.get(node, 0)
            for group in before(node):
                found |= shared(group)
            seen[node] = found
        yield from (
            (one, other) for one in bits for other in wanted[one] if seen[other] & bits[one]
        )


def once(make: Callable[[Given], Made]) -> Callable[[Given], Made]:
    """Return a function that calls ``make`` once for each object: actions share tuples of links.

    Objects are told apart by their identity, which is quicker than by their content, and are kept.
    """
    known: dict[int, tuple[Made, Given]] = {}

    def made(given: Given) -> Made:
        found = known.get(id(given))
        if found is None:
            found = known[id(given)] = (make(given), given)
        return found[0]

    return made


def _backwards(before: Sequence[Predecessors], among: Iterable[int]) -> nx.DiGraph[Any]:
    """Return the graph from each node, over a node for each of its groups, to its predecessors."""
    import networkx as nx

    graph: nx.DiGraph[Any] = nx.DiGraph()
    nodes = dict.fromkeys(among)
    for node in nodes:
        for group in before[node]:
            if (shared := (id(group),)) not in graph:
                graph.add_edges_from((shared, other) for other in group if other in nodes)
            graph.add_edge(node, shared)
    return graph


def cyclic_components(graph: nx.DiGraph[Any]) -> list[frozenset[int]]:
    """List the strongly connected components that have cycles: their numbers, the smallest first.

    Other nodes than numbers connect these, and are not in the result.

    >>> import networkx as nx
    >>> cyclic_components(nx.DiGraph([(2, 2), (1, 0), (0, 1), (1, 2)]))
    [frozenset({0, 1}), frozenset({2})]
    """
    import networkx as nx

    found = [
        frozenset(node for node in nodes if isinstance(node, int))
        for nodes in nx.strongly_connected_components(graph)
        if len(nodes) > 1 or any(graph.has_edge(node, node) for node in nodes)
    ]
    return sorted(found, key=min)


def shortest_cycle(graph: nx.DiGraph[Node], start: Node) -> list[Node]:
    """Return the nodes of a shortest cycle through ``start``, beginning with ``start``.

    Raises ValueError if ``start`` is on no cycle.

    >>> import networkx as nx
    >>> shortest_cycle(nx.DiGraph({1: [2, 3], 2: [3], 3: [1]}), 1)
    [1, 3]
    """
    import networkx as nx

    for node, path in nx.single_source_shortest_path(graph, start).items():
        if graph.has_edge(node, start):
            return path
    raise ValueError(f"{start} is on no cycle")
