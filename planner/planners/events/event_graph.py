# SPDX-License-Identifier: Apache-2.0
"""The event graph: the actions that a change can reach, and the events and orders between them.

A cycle that cannot be unrolled is told with the place where each of its edges is declared.

A tree has the nodes that are reachable from roots, while edges are removed.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from planner.errors import Mistake, Path
from planner.plan.graph_algorithms import reachable, shortest_cycle
from planner.plan.states import Outcome
from planner.planners.events.document import EventsProblem, Outcomes

Edge = tuple[int, int]
#: The parent of a root, and of a node that is not in the tree.
ROOT, UNREACHED = -1, -2


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


class SpanningTree:
    """A spanning tree of the nodes reachable from the roots, updated when edges are removed.

    ``into`` has the predecessors of each node; the caller removes edges from it. If a node has
    several predecessors, the largest is its parent in the tree. Callers remove the edges of small
    nodes first, so they seldom remove an edge of the tree.
    """

    def __init__(self, into: Sequence[set[int]]) -> None:
        self._into = into
        #: The parent of each node, ROOT or UNREACHED.
        self.parent = [UNREACHED] * len(into)

    def grow(self, after: Sequence[Collection[int]], roots: Iterable[int]) -> None:
        """Add the nodes that are reachable from ``roots``; ``after`` has the successors."""
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

        ``after`` has the successors of each node. It may lack edges to nodes from which this one
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


class EventGraph(NamedTuple):
    """The actions that may run, by name, and the edges between them, by position in ``names``.

    An edge is (earlier action, later action). ``events`` maps an edge to the outcomes of its first
    action that trigger the second; several events between the same two actions are one edge.
    """

    names: Sequence[str]
    staged: Collection[int]
    events: Mapping[Edge, Outcomes]
    orders: Collection[Edge]


def event_graph(problem: EventsProblem) -> EventGraph:
    """Build the graph of the staged actions and all actions reachable from them over events."""
    after: defaultdict[str, dict[str, Outcomes]] = defaultdict(dict)
    for source, outcomes, target, _ in problem.events:
        targets = after[source]
        targets[target] = _with_created(targets.get(target, ()) + outcomes)
    names = sorted(reachable(problem.staged, after.__getitem__))
    position = {name: i for i, name in enumerate(names)}
    return EventGraph(
        names,
        sorted(position[name] for name in problem.staged),
        {
            (i, position[target]): outcomes
            for i, name in enumerate(names)
            for target, outcomes in after[name].items()
        },
        {
            (position[order.first], position[order.second])
            for order in problem.orders
            if order.first in position and order.second in position
        },
    )


@cache
def _with_created(outcomes: Outcomes) -> Outcomes:
    """Return each outcome once, in the order of the enum; ``changed`` implies ``created``."""
    wanted = {*outcomes, *([Outcome.CREATED] if Outcome.CHANGED in outcomes else ())}
    return tuple(outcome for outcome in Outcome if outcome in wanted)


def cycle_mistakes(
    problem: EventsProblem, graph: EventGraph, components: Collection[frozenset[int]]
) -> Iterator[Mistake]:
    """Yield a mistake for each edge of a shortest cycle in each component."""
    for nodes in components:
        cycle = _cycle(graph, nodes)
        around = (*cycle, cycle[0])
        names = [graph.names[i] for i in around]
        edges = list(pairwise(around))
        places = _places(problem, graph, edges)
        text = f"a cycle in which no event can be cut: {' -> '.join(names)}"
        for one, other in edges:
            how = "goes before" if (one, other) in graph.orders else "is the only trigger of"
            where = f"{graph.names[one]} {how} {graph.names[other]}"
            yield Mistake(f"{text}; here {where}", places[(one, other)])
            text = "the same cycle"


def _cycle(graph: EventGraph, nodes: frozenset[int]) -> list[int]:
    """Find a shortest cycle through the smallest of the nodes."""
    import networkx as nx

    edges = sorted({*graph.orders, *graph.events})
    inside: nx.DiGraph[int] = nx.DiGraph()
    inside.add_edges_from((one, other) for one, other in edges if one in nodes and other in nodes)
    return shortest_cycle(inside, min(nodes))


def _places(problem: EventsProblem, graph: EventGraph, edges: Collection[Edge]) -> dict[Edge, Path]:
    """Map each edge to the path of its declaration; an order takes precedence over an event."""
    wanted = {(graph.names[one], graph.names[other]): (one, other) for one, other in edges}
    found: dict[Edge, Path] = {}
    declared = [(order.first, order.second, order.path) for order in problem.orders]
    declared += [(event.source, event.target, event.path) for event in problem.events]
    for first, second, path in declared:
        if (edge := wanted.get((first, second))) is not None:
            found.setdefault(edge, path)
    return found
