# SPDX-License-Identifier: Apache-2.0
"""Unrolls cycles: the action that closes a cycle has a second run, ``NAME#1`` after ``NAME#0``.

Of the runs, the requested ones are kept, with warnings of those that are left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from planner.errors import InvalidInput, Mistake, accepted
from planner.plan.graph_algorithms import reachable, reachable_pairs, topological_order
from planner.planners.events.cutting import Cut, cut
from planner.planners.events.document import Outcomes
from planner.planners.events.event_graph import Edge, EventGraph


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
            for one, _ in reachable_pairs(
                [n for n in order if n in self._component], lambda n: (before[n],), pairs
            )
        }


def selected(
    runs: Sequence[Run], subset: Mapping[str, Sequence[str]]
) -> tuple[list[Run], list[str]]:
    """Return the requested runs, in their order, and warnings about runs that are left out.

    ``subset`` has the names of actions, or of single runs, in ``only``, ``from`` and ``until``. The
    links of the returned runs are indexes in the returned list. If all runs that could trigger a
    run are left out, it becomes staged: it runs without a trigger. Raises InvalidInput for names
    that are not in the plan.
    """
    if not any(subset.values()):
        return list(runs), []
    wanted = _wanted(runs, subset)
    before = [[*_before(run)] for run in runs]
    after: list[list[int]] = [[] for _ in runs]
    for i, earlier in enumerate(before):
        for j in earlier:
            after[j].append(i)
    kept = set(range(len(runs)))
    alone: list[list[int]] = [[] for _ in runs]
    for key, neighbours in (("only", alone), ("from", after), ("until", before)):
        if subset[key]:
            kept &= reachable(wanted[key], neighbours.__getitem__).keys()
    place = {i: k for k, i in enumerate(sorted(kept))}
    found = _with_repeats_ordered([_without(runs[i], place) for i in place])
    return found, list(_warnings(runs, kept))


def _wanted(runs: Sequence[Run], subset: Mapping[str, Sequence[str]]) -> dict[str, set[int]]:
    """Return the indexes of the runs that each field of a subset names.

    A name with a number stands for one run, a name without a number for all runs of the action.
    Raises InvalidInput for unknown names.
    """
    found: dict[str, set[int]] = {}
    for i, run in enumerate(runs):
        for name in {run.action, run.label}:
            found.setdefault(name, set()).add(i)
    mistakes = [
        Mistake(f"{name!r} is not in the plan; {accepted(name, found)}", (key,))
        for key, names in subset.items()
        for name in names
        if name not in found
    ]
    if mistakes:
        raise InvalidInput(mistakes)
    return {key: {i for name in names for i in found[name]} for key, names in subset.items()}


def _before(run: Run) -> Iterator[int]:
    yield from run.after
    yield from run.events


def _without(run: Run, place: dict[int, int]) -> Run:
    events = {place[i]: outcomes for i, outcomes in run.events.items() if i in place}
    return replace(
        run,
        staged=run.staged or not events,
        after=[place[i] for i in run.after if i in place],
        events=events,
    )


def _with_repeats_ordered(runs: Sequence[Run]) -> list[Run]:
    """Order a second run after the first one, if the path between them is left out."""
    first = {run.action: i for i, run in enumerate(runs) if not run.repeat}
    pairs = {(first[r.action], i) for i, r in enumerate(runs) if r.repeat and r.action in first}
    before = [((*_before(run),),) for run in runs]
    known = reachable_pairs(range(len(runs)), before.__getitem__, pairs)
    new = {two: one for one, two in pairs.difference(known)}
    return [
        replace(run, after=sorted((*run.after, new[i]))) if i in new else run
        for i, run in enumerate(runs)
    ]


def _warnings(runs: Sequence[Run], kept: Collection[int]) -> Iterator[str]:
    left = [run.label for i, run in enumerate(runs) if i not in kept]
    if left:
        yield f"left out by only, from or until: {', '.join(left)}"
    sets_off: dict[int, list[str]] = {}
    for i, run in enumerate(runs):
        if i in kept:
            missing = sorted({runs[j].label for j in _before(run) if j not in kept})
            if missing:
                names = ", ".join(missing)
                yield f"{run.label} does not wait for actions that are left out: {names}"
        else:
            for j in run.events:
                sets_off.setdefault(j, []).append(run.label)
    for i in sorted(kept):
        if i in sets_off:
            names = ", ".join(sets_off[i])
            yield f"{runs[i].label} may have to trigger actions that are left out: {names}"
