# SPDX-License-Identifier: Apache-2.0
"""Unrolls cycles: the action that closes a cycle has a second run, ``NAME#1`` after ``NAME#0``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from planner.graph_algorithms import topological_order
from planner.planners.events.cutting import Cut, cut
from planner.planners.events.event_graph import EventGraph, Outcomes
from planner.planners.events.reachability import Edge, reachable_pairs


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """One run of an action. It refers to other runs by their index in the list of runs.

    ``number`` is None for an action that runs once, else 0 or 1. ``after`` are the runs that must
    have ended. ``events`` maps each run that may trigger this one to the outcomes that trigger it.
    A ``repeat``, the second run of an action, is triggered by the events that were cut: those that
    would close a cycle.
    """

    action: str
    number: int | None
    staged: bool
    repeat: bool = False
    after: Sequence[int] = ()
    events: Mapping[int, Outcomes] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The name of the run in the plan."""
        return self.action if self.number is None else f"{self.action}#{self.number}"


class UnbreakableCycles(Exception):
    """Cycles in which no event can be cut.

    ``components`` are the strongly connected components with such cycles: sets of positions in
    ``EventGraph.names``.
    """

    def __init__(self, components: Collection[frozenset[int]]) -> None:
        self.components = components
        super().__init__(f"{len(components)} components")


def unroll(graph: EventGraph) -> list[Run]:
    """Return the runs in topological order; among several possible runs, the first by name.

    The second run of an action follows its first run. Only the events that were cut trigger it, and
    it triggers nothing on the cycle. Actions outside the cycle that follow the action wait for both
    runs, and either run may trigger them. Raises UnbreakableCycles if a cycle has no event that can
    be cut.
    """
    found = cut(len(graph.names), graph.orders, graph.events.keys(), graph.staged)
    if found.left:
        raise UnbreakableCycles(found.left)
    links = _Links(graph, found)
    after: list[list[int]] = [[] for _ in links.runs]
    events: list[dict[int, Outcomes]] = [{} for _ in links.runs]
    for one, other in links.orders():
        after[other].append(one)
    for one, other, outcomes in links.events():
        events[other][one] = outcomes
    order = topological_order([(a, tuple(e)) for a, e in zip(after, events, strict=True)])
    rank = {i: k for k, i in enumerate(order)}
    staged = {*graph.staged}
    return [
        Run(
            action=graph.names[node],
            number=int(repeat) if node in links.twice else None,
            staged=node in staged and not repeat,
            repeat=repeat,
            after=sorted({rank[j] for j in after[i]}),
            events=dict(sorted([(rank[j], outcomes) for j, outcomes in events[i].items()])),
        )
        for i in order
        for node, repeat in [links.runs[i]]
    ]


class _Links:
    """The edges between runs. A run is an index in ``runs``, which is sorted by name and number."""

    def __init__(self, graph: EventGraph, found: Cut) -> None:
        self._graph, self._cut = graph, found
        self._component = {node: k for k, nodes in enumerate(found.cyclic) for node in nodes}
        #: The actions that run twice.
        self.twice = {target for _, target in found.edges}
        #: Each run: the position of its action in the graph, and whether it is the second run.
        self.runs = [
            (node, repeat)
            for node in range(len(graph.names))
            for repeat in ((False, True) if node in self.twice else (False,))
        ]
        self._first = [i for i, (_, repeat) in enumerate(self.runs) if not repeat]

    def orders(self) -> Iterator[Edge]:
        """Yield each order as (earlier run, later run).

        An order that leaves the cycle of its first action starts at the last run of that action.
        The first run of an action is ordered before the second, if no path of other edges does so.
        """
        for one, other in self._graph.orders:
            yield self._ends(one, other)[-1], self._first[other]
        # Most second runs already follow the first run, over the path along the cycle.
        for node in self.twice.difference(self._implied()):
            yield self._first[node], self._second(node)

    def events(self) -> Iterator[tuple[int, int, Outcomes]]:
        """Yield each event as (run of its source, run of its target, outcomes).

        A cut event, which would close a cycle, leads from the first run of its source to the second
        run of its target. Any other event leads to the first run of its target; outside the cycle
        of the source, there is one from each run of the source.
        """
        gone = {*self._cut.edges}
        for (one, other), outcomes in self._graph.events.items():
            if (one, other) in gone:
                yield self._first[one], self._second(other), outcomes
            else:
                for run in self._ends(one, other):
                    yield run, self._first[other], outcomes

    def _second(self, node: int) -> int:
        return self._first[node] + 1

    def _ends(self, one: int, other: int) -> tuple[int, ...]:
        """Return the runs of ``one`` that ``other`` follows: on the same cycle, only the first."""
        if one not in self.twice or self._component.get(one) == self._component.get(other):
            return (self._first[one],)
        return (self._first[one], self._second(one))

    def _implied(self) -> set[int]:
        """Return the actions with a path of uncut edges, on the cycle, from first to second run."""
        gone = {*self._cut.edges}
        if not gone:
            return set()
        kept = [
            (one, other)
            for one, other in chain(self._graph.orders, self._graph.events)
            if (one, other) not in gone
            and one in self._component
            and self._component[one] == self._component.get(other)
        ]
        before: defaultdict[int, list[int]] = defaultdict(list)
        for one, other in kept:
            before[other].append(one)
        order = topological_order(
            [(before.get(node, ()),) for node in range(len(self._graph.names))]
        )
        pairs = [(target, source) for source, target in self._cut.edges]
        return {
            one
            for one, _ in reachable_pairs([n for n in order if n in self._component], kept, pairs)
        }
