# SPDX-License-Identifier: Apache-2.0
"""Errors for cycles that cannot be unrolled, with the place where each edge is declared."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import pairwise

from planner.errors import Mistake, Path
from planner.graph_algorithms import shortest_cycle
from planner.planners.events.document import EventsProblem
from planner.planners.events.event_graph import EventGraph, events_of, orders
from planner.planners.events.reachability import Edge


def mistakes(
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
    declared = [(o.first, o.second, o.path) for o in orders(problem)]
    declared += [(f.source, f.target, f.path) for f in events_of(problem)]
    for first, second, path in declared:
        if (edge := wanted.get((first, second))) is not None:
            found.setdefault(edge, path)
    return found
