# SPDX-License-Identifier: Apache-2.0
"""Reads a document of ``kind: events`` into a problem and collects all its mistakes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planner.contract import Surroundings
from planner.errors import InvalidInput, Mistake
from planner.model import ProposedAction
from planner.planners.events import grammar
from planner.planners.events.grammar import EventText
from planner.planners.solution import ActionReader
from planner.states import Outcome


@dataclass(frozen=True, kw_only=True, slots=True)
class DataConnection:
    """A flow of data from the resource ``source`` to the resource ``target``.

    With ``events``, the outcome ``changed`` of ``SOURCE.run`` triggers ``TARGET.reload``, and that
    of ``SOURCE.remove`` triggers ``TARGET.run``. With ``order``, ``SOURCE.run`` precedes
    ``TARGET.run``.
    """

    source: str
    target: str
    events: bool
    order: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Subset:
    """The requested part of a plan: names of actions, or of single runs (``a.run#1``).

    ``since`` includes the descendants of the named runs, ``until`` their ancestors. An empty
    sequence restricts nothing.
    """

    only: Sequence[str]
    since: Sequence[str]
    until: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class EventsProblem:
    """Events and orders between actions of resources, and the staged actions.

    A staged action runs without a trigger. ``events``, ``connections`` and ``after`` are in
    document order, so that an index is part of the path of a mistake. ``any_of`` are the actions
    with fan-in ``any``: each runs as soon as one of its triggers fires. ``nothing`` is the
    definition, a nop, of each action that is not in ``actions``.
    """

    name: str | None
    staged: Collection[str]
    events: Sequence[EventText]
    connections: Sequence[DataConnection]
    after: Sequence[tuple[str, str]]
    any_of: frozenset[str]
    subset: Subset
    actions: Mapping[str, ProposedAction]
    nothing: ProposedAction
    warnings: Sequence[str]

    def proposed(self, action: str) -> ProposedAction:
        """Return the definition of an action; a nop if the document has none."""
        return self.actions.get(action, self.nothing)


def read_problem(document: Mapping[str, Any], surroundings: Surroundings) -> EventsProblem:
    """Read a document, which fits the schema; raises InvalidInput with all mistakes."""
    mistakes: list[Mistake] = []
    connections = [
        DataConnection(
            source=raw["from"],
            target=raw["to"],
            events=raw.get("events", True),
            order=raw.get("order", True),
        )
        for raw in document.get("connections", ())
    ]
    ends = {end for c in connections for end in (c.source, c.target)}
    events = list(_events(document.get("events", ()), ends, mistakes))
    names = list(document.get("actions", ()))
    raw_actions = [{**document["actions"][name], "name": name} for name in names]
    reader = ActionReader(surroundings, {"actions": raw_actions})
    actions = {raw["name"]: reader.action(i, raw) for i, raw in enumerate(raw_actions)}
    mistakes += [_by_name(m, names) for m in reader.mistakes]
    if mistakes:
        raise InvalidInput(mistakes)
    return EventsProblem(
        name=document.get("name"),
        staged=dict.fromkeys(document["staged"]),
        events=events,
        connections=connections,
        after=[(first, second) for first, second in document.get("after", ())],
        any_of=frozenset(k for k, v in document.get("fan_in", {}).items() if v == "any"),
        subset=Subset(
            only=_listed(document, "only"),
            since=_listed(document, "from"),
            until=_listed(document, "until"),
        ),
        actions=actions,
        nothing=ActionReader(surroundings, {"actions": [_NOP]}).action(0, _NOP),
        warnings=list(reader.warnings),
    )


_NOP: Mapping[str, Any] = {"action_type": "nop"}


def _events(
    raw_events: Sequence[Any], ends: Collection[str], mistakes: list[Mistake]
) -> Iterator[EventText]:
    known: set[str] = set(ends)
    is_action = re.compile(grammar.ACTION).match
    for i, raw in enumerate(raw_events):
        try:
            event = grammar.parse_event(raw) if isinstance(raw, str) else _mapped(raw)
        except ValueError as reason:
            mistakes.append(Mistake(str(reason), ("events", i)))
            continue
        if event.source not in known:
            if is_action(event.source):
                known.add(event.source)
            else:
                text = f"{event.source!r} is neither RESOURCE.ACTION nor an end of a connection"
                mistakes.append(Mistake(text, ("events", i)))
        if not is_action(event.target):
            text = f"{event.target!r} is not an action: RESOURCE.ACTION"
            mistakes.append(Mistake(text, ("events", i)))
        yield event


def _mapped(raw: Mapping[str, Any]) -> EventText:
    return EventText(raw["on"], tuple(Outcome(word) for word in raw["outcomes"]), raw["do"])


def _by_name(mistake: Mistake, names: Sequence[str]) -> Mistake:
    """Return the mistake with the name of its action in the path, in place of the index."""
    actions, i, *rest = mistake.path
    return mistake._replace(path=(actions, names[int(i)], *rest))


def _listed(document: Mapping[str, Any], field: str) -> Sequence[str]:
    value = document.get(field, ())
    return (value,) if isinstance(value, str) else tuple(value)
