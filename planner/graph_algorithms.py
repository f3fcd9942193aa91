# SPDX-License-Identifier: Apache-2.0
"""Graph algorithms: topological order, strongly connected components, reachability, cycles.

All take linear time in nodes and edges, except that a topological order which has to move nodes
takes O(n log n + edges). doc/decisions/0035-graph-algorithms.rst gives the reasons for not using a
library.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import (
    Callable,
    Collection,
    Container,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from typing import TypeVar

#: The predecessors of one node, in groups. Nodes with equal groups share one object.
Predecessors = Sequence[Sequence[int]]
Node = TypeVar("Node", bound=Hashable)


class CycleError(Exception):
    """The graph has a cycle. ``nodes`` are all nodes on a cycle or reachable from one."""

    def __init__(self, nodes: Sequence[int]) -> None:
        self.nodes = tuple(nodes)
        super().__init__(f"{len(self.nodes)} nodes are on cycles or reachable from one")


def topological_order(before: Sequence[Predecessors]) -> list[int]:
    """Order the nodes 0 to n-1 so that each follows its predecessors, the smallest possible first.

    ``before[i]`` holds the predecessors of node ``i`` in groups, which several nodes may share. If
    all predecessors have smaller numbers, the order is 0 to n-1, and each shared group is read only
    once. Raises :class:`CycleError`. In the example, 0 follows 2, and 2 follows 1:

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
        raise CycleError([node for node, number in enumerate(missing) if number])
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


def acyclic_part(after: Mapping[Node, Iterable[Node]]) -> list[Node]:
    """List, in topological order, the nodes that are neither on a cycle nor reachable from one.

    ``after`` holds the successors of each node. For an acyclic graph, all nodes are listed. The
    order is breadth-first, from the nodes without predecessors.

    >>> acyclic_part({"a": ["c"], "b": ["c"], "c": [], "d": ["d"]})
    ['a', 'b', 'c']
    """
    missing = dict.fromkeys(after, 0)
    for successors in after.values():
        for node in successors:
            missing[node] += 1
    order = [node for node, number in missing.items() if not number]
    for node in order:  # the list grows during the iteration
        for successor in after[node]:
            missing[successor] -= 1
            if not missing[successor]:
                order.append(successor)
    return order


def strongly_connected_components(
    before: Sequence[Iterable[Iterable[int]]], among: Iterable[int]
) -> list[frozenset[int]]:
    """List the strongly connected components of the subgraph of ``among`` that contain a cycle.

    ``before`` holds the predecessors of each node. Source: Gabow, "Path-based depth-first search
    for strong and biconnected components", 2000.

    >>> strongly_connected_components([[(1,)], [(0, 2)], [(2, 3)], []], range(4))
    [frozenset({0, 1}), frozenset({2})]
    """
    unseen, assigned = -1, len(before)
    place = dict.fromkeys(among, unseen)
    path: list[int] = []
    begins: list[int] = []
    found = []
    for root in place:
        stack = [(root, iter((root,)))] if place[root] == unseen else []
        while stack:
            node, predecessors = stack[-1]
            for p in predecessors:
                if place[p] == unseen:
                    place[p] = len(path)
                    begins.append(len(path))
                    path.append(p)
                    stack.append((p, _within(before[p], place)))
                    break
                while place[p] < begins[-1]:
                    begins.pop()
            else:
                stack.pop()
                if stack and begins[-1] == place[node]:
                    component = frozenset(path[begins.pop() :])
                    del path[place[node] :]
                    place.update(dict.fromkeys(component, assigned))
                    if len(component) > 1 or any(node in group for group in before[node]):
                        found.append(component)
    return sorted(found, key=min)


def _within(groups: Iterable[Iterable[int]], nodes: Container[int]) -> Iterator[int]:
    return (p for group in groups for p in group if p in nodes)


def reachable(
    starts: Iterable[Node], neighbours: Callable[[Node], Iterable[Node]]
) -> dict[Node, None]:
    """Return the start nodes and all nodes reachable from them, in the order of discovery.

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


def shortest_cycle(start: Node, neighbours: Callable[[Node], Iterable[Node]]) -> list[Node]:
    """Return the nodes of a shortest cycle through ``start``, beginning with ``start``.

    Raises ValueError if ``start`` is on no cycle.

    >>> shortest_cycle(1, {1: [2, 3], 2: [3], 3: [1]}.__getitem__)
    [1, 3]
    """
    found_from: dict[Node, Node] = {}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for neighbour in neighbours(node):
            if neighbour == start:
                path = [node]
                while path[-1] != start:
                    path.append(found_from[path[-1]])
                return path[::-1]
            if neighbour not in found_from:
                found_from[neighbour] = node
                queue.append(neighbour)
    raise ValueError(f"{start} is on no cycle")


def cycle_in(before: Sequence[Iterable[Iterable[int]]], component: Collection[int]) -> list[int]:
    """Return a shortest cycle through the smallest node of a strongly connected component.

    Each node is a predecessor of the next one, and the last one of the first.

    >>> cycle_in([[(2,)], [(0,)], [(1,)], [(0,)]], {0, 1, 2})
    [0, 1, 2]
    """
    first, *others = shortest_cycle(min(component), lambda i: _within(before[i], component))
    return [first, *reversed(others)]
