# SPDX-License-Identifier: Apache-2.0
"""The event graph: the actions that a change can reach, and the events and orders between them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from planner.errors import Path
from planner.graph_algorithms import reachable
from planner.planners.events import grammar
from planner.planners.events.document import EventsProblem
from planner.planners.events.reachability import Edge
from planner.states import Outcome

Outcomes = tuple[Outcome, ...]
_CHANGED: Outcomes = (Outcome.CHANGED,)


class Event(NamedTuple):
    """One event between two actions, and the place in the document that declares it."""

    source: str
    outcomes: Outcomes
    target: str
    path: Path


class DeclaredOrder(NamedTuple):
    """An order of two actions, and the place in the document that declares it."""

    first: str
    second: str
    path: Path


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
    for source, outcomes, target, _ in events_of(problem):
        targets = after[source]
        targets[target] = _with_created(targets.get(target, ()) + outcomes)
    names = sorted(reachable(problem.staged, lambda name: after.get(name, ())))
    position = {name: i for i, name in enumerate(names)}
    return EventGraph(
        names,
        sorted(position[name] for name in problem.staged),
        {
            (i, position[target]): outcomes
            for i, name in enumerate(names)
            for target, outcomes in after.get(name, _NONE).items()
        },
        {
            (position[order.first], position[order.second])
            for order in orders(problem)
            if order.first in position and order.second in position
        },
    )


_NONE: Mapping[str, Outcomes] = {}


@cache
def _with_created(outcomes: Outcomes) -> Outcomes:
    """Return each outcome once, in the order of the enum; ``changed`` implies ``created``."""
    wanted = {*outcomes, *([Outcome.CREATED] if Outcome.CHANGED in outcomes else ())}
    return tuple(outcome for outcome in Outcome if outcome in wanted)


def events_of(problem: EventsProblem) -> Iterator[Event]:
    """Yield the events that connections imply, then those in the field ``events``.

    An event whose source is a resource is yielded once for each action of :meth:`_Sources.of`.
    """
    for i, connection in enumerate(problem.connections):
        if connection.events:
            source, target, path = connection.source, connection.target, ("connections", i)
            yield Event(f"{source}.run", _CHANGED, f"{target}.reload", path)
            yield Event(f"{source}.remove", _CHANGED, f"{target}.run", path)
    sources = _Sources(problem)
    for i, (source, outcomes, target) in enumerate(problem.events):
        for action in sources.of(source, target):
            yield Event(action, outcomes, target, ("events", i))


def orders(problem: EventsProblem) -> Iterator[DeclaredOrder]:
    """Yield the orders that connections imply, then those in the field ``after``."""
    for i, c in enumerate(problem.connections):
        if c.order:
            yield DeclaredOrder(f"{c.source}.run", f"{c.target}.run", ("connections", i))
    for i, (first, second) in enumerate(problem.after):
        yield DeclaredOrder(first, second, ("after", i))


class _Sources:
    """Finds the actions that an event names as its source."""

    def __init__(self, problem: EventsProblem) -> None:
        ends = {end for c in problem.connections for end in (c.source, c.target)}
        self._resources = {event.source for event in problem.events} & ends
        self._own: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._data: defaultdict[str, dict[str, None]] = defaultdict(dict)
        if self._resources:
            self._collect(problem)

    def of(self, source: str, target: str) -> Iterable[str]:
        """Return the actions that trigger ``target`` in an event with this source.

        The name of an action stands for that action. The name of a resource stands for those of its
        actions that are staged or targets of events; if there are none, for ``run`` and ``remove``
        of each resource from which it receives data. ``target`` is not among its own triggers then.
        """
        if source not in self._resources:
            return (source,)
        own = [action for action in self._own[source] if action != target]
        return own or [action for action in self._data[source] if action != target]

    def _collect(self, problem: EventsProblem) -> None:
        targets = [event.target for event in problem.events]
        for c in problem.connections:
            if c.events:
                targets += [f"{c.target}.reload", f"{c.target}.run"]
            for verb in ("run", "remove"):
                self._data[c.target][f"{c.source}.{verb}"] = None
        for action in (*problem.staged, *targets):
            self._own[grammar.split(action)[0]][action] = None
