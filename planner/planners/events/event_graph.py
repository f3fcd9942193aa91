"""What a change can reach, and what orders it: events and connections become edges."""

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
    """One event between two actions, and the place in the document that brings it."""

    source: str
    outcomes: Outcomes
    target: str
    path: Path


class Order(NamedTuple):
    """An order of two actions, and the place in the document that asks for it."""

    first: str
    second: str
    path: Path


class EventGraph(NamedTuple):
    """The actions that may run, by name, and the edges between them, by position.

    ``events`` has the outcomes that an event asks for, several between the same two in one.
    """

    names: Sequence[str]
    staged: Collection[int]
    events: Mapping[Edge, Outcomes]
    orders: Collection[Edge]


def event_graph(problem: EventsProblem) -> EventGraph:
    """Give the least set that holds what is staged and the target of each event from inside it.

    An order holds only between actions that are in it.
    """
    after: defaultdict[str, dict[str, Outcomes]] = defaultdict(dict)
    for source, outcomes, target, _ in events_of(problem):
        targets = after[source]
        targets[target] = _asked(targets.get(target, ()) + outcomes)
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
def _asked(outcomes: Outcomes) -> Outcomes:
    """Give outcomes once, in one order; who asks for what changed asks for what is new, too."""
    wanted = {*outcomes, *([Outcome.CREATED] if Outcome.CHANGED in outcomes else ())}
    return tuple(outcome for outcome in Outcome if outcome in wanted)


def events_of(problem: EventsProblem) -> Iterator[Event]:
    """Give all events: those of connections, and those of the document action by action."""
    for i, connection in enumerate(problem.connections):
        if connection.events:
            source, target, path = connection.source, connection.target, ("connections", i)
            yield Event(f"{source}.run", _CHANGED, f"{target}.reload", path)
            yield Event(f"{source}.remove", _CHANGED, f"{target}.run", path)
    meant = _Meant(problem)
    for i, (source, outcomes, target) in enumerate(problem.events):
        for action in meant.by(source, target):
            yield Event(action, outcomes, target, ("events", i))


def orders(problem: EventsProblem) -> Iterator[Order]:
    """Give all orders: of connections, run before run, and those of ``after``."""
    for i, c in enumerate(problem.connections):
        if c.order:
            yield Order(f"{c.source}.run", f"{c.target}.run", ("connections", i))
    for i, (first, second) in enumerate(problem.after):
        yield Order(first, second, ("after", i))


class _Meant:
    """Says which actions the source of an event means."""

    def __init__(self, problem: EventsProblem) -> None:
        ends = {end for c in problem.connections for end in (c.source, c.target)}
        self._resources = {event.source for event in problem.events} & ends
        self._own: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._data: defaultdict[str, dict[str, None]] = defaultdict(dict)
        if self._resources:
            self._look(problem)

    def by(self, source: str, target: str) -> Iterable[str]:
        """Give an action as it is.

        Of a resource those that are staged or targets of events, else, for a sink of data, run and
        remove of each resource connected into it; never the target itself.
        """
        if source not in self._resources:
            return (source,)
        own = [action for action in self._own[source] if action != target]
        return own or [action for action in self._data[source] if action != target]

    def _look(self, problem: EventsProblem) -> None:
        targets = [event.target for event in problem.events]
        for c in problem.connections:
            if c.events:
                targets += [f"{c.target}.reload", f"{c.target}.run"]
            for verb in ("run", "remove"):
                self._data[c.target][f"{c.source}.{verb}"] = None
        for action in (*problem.staged, *targets):
            self._own[grammar.split(action)[0]][action] = None
