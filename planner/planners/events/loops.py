"""Names loops that no event can end, with the declaration behind each edge."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from planner.errors import Mistake, Path
from planner.graph_algorithms import shortest_cycle
from planner.planners.events.document import EventsProblem
from planner.planners.events.edges import EventGraph, fires, orders
from planner.planners.events.reach import Edge


def mistakes(
    problem: EventsProblem, web: EventGraph, loops: Collection[frozenset[int]]
) -> Iterator[Mistake]:
    """Give a mistake for each edge of a short loop in each of the sets, in the loop's order."""
    for nodes in loops:
        cycle = _cycle(web, nodes)
        names = [web.names[i] for i in (*cycle, cycle[0])]
        edges = list(zip(cycle, (*cycle[1:], cycle[0]), strict=True))
        places = _places(problem, web, edges)
        text = f"a loop in which no event can be cut: {' -> '.join(names)}"
        for one, other in edges:
            how = "goes before" if (one, other) in web.orders else "alone sets off"
            where = f"{web.names[one]} {how} {web.names[other]}"
            yield Mistake(f"{text}; here {where}", places[(one, other)])
            text = "the same loop"


def _cycle(web: EventGraph, nodes: frozenset[int]) -> list[int]:
    """Find a shortest way from the first of the nodes back to it."""
    after: dict[int, list[int]] = {}
    for one, other in sorted({*web.orders, *web.events}):
        if one in nodes and other in nodes:
            after.setdefault(one, []).append(other)
    return shortest_cycle(min(nodes), after.__getitem__)


def _places(problem: EventsProblem, web: EventGraph, edges: Collection[Edge]) -> dict[Edge, Path]:
    """Find where the document asks for each edge: where for an order, else where for an event."""
    wanted = {(web.names[one], web.names[other]): (one, other) for one, other in edges}
    found: dict[Edge, Path] = {}
    declared = [(o.first, o.second, o.path) for o in orders(problem)]
    declared += [(f.source, f.target, f.path) for f in fires(problem)]
    for first, second, path in declared:
        if (edge := wanted.get((first, second))) is not None:
            found.setdefault(edge, path)
    return found
