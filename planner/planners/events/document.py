# SPDX-License-Identifier: Apache-2.0
"""Reads a document of ``kind: events`` into a problem and collects all its mistakes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from planner.contract import Surroundings
from planner.errors import InvalidInput, Mistake, Path, accepted
from planner.plan.model import ProposedAction
from planner.plan.states import Outcome
from planner.planners.solution import ActionReader
from planner.planners.solution_schema import ACTION, COMMON
from planner.schemas import ranges

#: Regular expressions of names. ``#`` is reserved for run numbers, ``|`` for lists of outcomes.
RESOURCE_NAME = r"^[^\s#|]+$"
ACTION_NAME = r"^[^\s#|]+\.[^\s.#|]+$"
RUN_NAME = r"^[^\s#|]+\.[^\s.#|]+(#[0-9]+)?$"
_FORM = "on SOURCE OUTCOME[|OUTCOME] RESOURCE.ACTION"
_OUTCOMES = {str(outcome): outcome for outcome in Outcome}

_RESOURCE = {**ranges.NAME, "pattern": RESOURCE_NAME, "title": "the name of a resource"}
_ACTION = {
    **ranges.COMPOSED_NAME,
    "pattern": ACTION_NAME,
    "title": "an action: RESOURCE.ACTION",
}
_RUN = {**_ACTION, "pattern": RUN_NAME, "title": "an action: RESOURCE.ACTION, or with #NUMBER"}
_ACTIONS = ranges.list_of(_ACTION)


def _runs(description: str) -> dict[str, Any]:
    either = {"type": ["string", "array"], "items": _RUN, "minItems": 1}
    return {**_RUN, **either, "description": description}


_WHAT = {
    **ACTION,
    "properties": {k: v for k, v in ACTION["properties"].items() if k != "name"},
}

CONNECTION: dict[str, Any] = ranges.mapping(
    *("from", "to"),
    **{"from": {**_RESOURCE, "description": "The resource that data comes from."}},
    to={**_RESOURCE, "description": "The resource that uses it."},
    events={
        "type": "boolean",
        "description": "false: without 'on FROM.run changed TO.reload' and "
        "'on FROM.remove changed TO.run'.",
    },
    order={"type": "boolean", "description": "false: without FROM.run before TO.run."},
)

EVENT: dict[str, Any] = {
    **ranges.ARGUMENT,
    **ranges.mapping(
        *("on", "outcomes", "do"),
        on={**_RESOURCE, "title": "an action or a connected resource"},
        outcomes=ranges.list_of({"enum": [str(outcome) for outcome in Outcome]}, minItems=1),
        do=_ACTION,
    ),
    "type": ["string", "object"],
}

SCHEMA: dict[str, Any] = ranges.document(
    "events",
    "Resources, what depends on what, and what is to run.",
    "staged",
    **COMMON,
    actions={
        "type": "object",
        "description": "Maps RESOURCE.ACTION to its definition; without one it is a nop.",
        "propertyNames": _ACTION,
        "additionalProperties": _WHAT,
    },
    connections=ranges.list_of(CONNECTION, description="Data that one resource has from another."),
    events=ranges.list_of(
        EVENT, description="Events as texts 'on SOURCE OUTCOME RESOURCE.ACTION' or as mappings."
    ),
    after=ranges.list_of(
        {**_ACTIONS, "minItems": 2, "maxItems": 2},
        description="Pairs: the first runs before the second if both are in the plan.",
    ),
    staged={**_ACTIONS, "description": "Actions that run without a trigger."},
    fan_in={
        "type": "object",
        "description": "any: one trigger is enough, even if another source failed.",
        "propertyNames": _ACTION,
        "additionalProperties": {"enum": ["all", "any"]},
    },
    **{
        "only": _runs("These alone."),
        "from": _runs("These, and what comes after them."),
        "until": _runs("These, and what comes before them."),
    },
)


Outcomes = tuple[Outcome, ...]
_CHANGED: Outcomes = (Outcome.CHANGED,)


class Event(NamedTuple):
    """An event between two actions, and the place in the document that declares it."""

    source: str
    outcomes: Outcomes
    target: str
    path: Path


def parse_event(text: str, path: Path = ()) -> Event:
    """Parse an event; raises ValueError, whose message contains the accepted form or outcomes.

    >>> parse_event("on a.run changed|ok b.1.reload").target
    'b.1.reload'
    >>> parse_event("a changed b.c")
    Traceback (most recent call last):
    ValueError: 'a changed b.c' is not an event: on SOURCE OUTCOME[|OUTCOME] RESOURCE.ACTION
    """
    on, *parts = text.split() or [""]
    if on != "on" or len(parts) < 3:
        raise ValueError(f"{text!r} is not an event: {_FORM}")
    source, *middle, target = parts
    return Event(source, outcomes(" ".join(middle)), target, path)


@cache
def outcomes(text: str) -> Outcomes:
    """Parse outcomes such as ``changed`` or ``failed|error``; raises ValueError for others."""
    found = []
    for word in text.split("|"):
        outcome = _OUTCOMES.get(word.strip())
        if outcome is None:
            raise ValueError(f"no outcome {word.strip()!r}; {accepted(word.strip(), _OUTCOMES)}")
        found.append(outcome)
    return tuple(found)


class Order(NamedTuple):
    """An order of two actions, and the place in the document that declares it."""

    first: str
    second: str
    path: Path


@dataclass(frozen=True, kw_only=True)
class EventsProblem:
    """Events and orders between actions of resources, and the staged actions.

    A staged action runs without a trigger. First come the events and orders that connections imply,
    each kind in document order. ``triggerable`` are the actions that the document names as targets
    of events. ``any_of`` are the actions with fan-in ``any``: each runs as soon as one of its
    triggers fires. ``subset`` is the requested part: names of actions, or of single runs
    (``a.run#1``), in the fields ``only``, ``from`` and ``until``; an empty sequence restricts
    nothing. ``nothing`` is the definition, a nop, of each action that is not in ``actions``.
    """

    name: str | None
    staged: Collection[str]
    events: Sequence[Event]
    orders: Sequence[Order]
    triggerable: frozenset[str]
    any_of: frozenset[str]
    subset: Mapping[str, Sequence[str]]
    actions: Mapping[str, ProposedAction]
    nothing: ProposedAction
    warnings: Sequence[str]

    def proposed(self, action: str) -> ProposedAction:
        """Return the definition of an action; a nop if the document has none."""
        return self.actions.get(action, self.nothing)


def read_problem(document: Mapping[str, Any], surroundings: Surroundings) -> EventsProblem:
    """Read a document, which fits the schema; raises InvalidInput with all mistakes."""
    mistakes: list[Mistake] = []
    connections: Sequence[Mapping[str, Any]] = document.get("connections", ())
    written = list(_written(document.get("events", ()), _ends(connections), mistakes))
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
        events=[*_implied_events(connections), *_events(written, connections, document["staged"])],
        orders=[*_orders(connections, document.get("after", ()))],
        triggerable=frozenset(event.target for event in written).union(
            *((f"{c['to']}.reload", f"{c['to']}.run") for c in connections)
        ),
        any_of=frozenset(k for k, v in document.get("fan_in", {}).items() if v == "any"),
        subset={field: _listed(document, field) for field in ("only", "from", "until")},
        actions=actions,
        nothing=ActionReader(surroundings, {"actions": [_NOP]}).action(0, _NOP),
        warnings=list(reader.warnings),
    )


_NOP: Mapping[str, Any] = {"action_type": "nop"}


def _ends(connections: Iterable[Mapping[str, Any]]) -> set[str]:
    return {end for c in connections for end in (c["from"], c["to"])}


def _written(
    raw_events: Sequence[Any], ends: Collection[str], mistakes: list[Mistake]
) -> Iterator[Event]:
    """Yield the events of the field ``events``; append mistakes."""
    known: set[str] = set(ends)
    is_action = re.compile(ACTION_NAME).match
    for i, raw in enumerate(raw_events):
        path = ("events", i)
        try:
            if isinstance(raw, str):
                event = parse_event(raw, path)
            else:
                event = Event(raw["on"], tuple(map(Outcome, raw["outcomes"])), raw["do"], path)
        except ValueError as reason:
            mistakes.append(Mistake(str(reason), path))
            continue
        if event.source not in known:
            if is_action(event.source):
                known.add(event.source)
            else:
                text = f"{event.source!r} is neither RESOURCE.ACTION nor an end of a connection"
                mistakes.append(Mistake(text, path))
        if not is_action(event.target):
            text = f"{event.target!r} is not an action: RESOURCE.ACTION"
            mistakes.append(Mistake(text, path))
        yield event


def _implied_events(connections: Iterable[Mapping[str, Any]]) -> Iterator[Event]:
    """Yield the events of connections: data that changed, or that went, reaches who uses it."""
    for i, c in enumerate(connections):
        if c.get("events", True):
            path = ("connections", i)
            yield Event(f"{c['from']}.run", _CHANGED, f"{c['to']}.reload", path)
            yield Event(f"{c['from']}.remove", _CHANGED, f"{c['to']}.run", path)


def _orders(
    connections: Iterable[Mapping[str, Any]], after: Iterable[tuple[str, str]]
) -> Iterator[Order]:
    for i, c in enumerate(connections):
        if c.get("order", True):
            yield Order(f"{c['from']}.run", f"{c['to']}.run", ("connections", i))
    for i, (first, second) in enumerate(after):
        yield Order(first, second, ("after", i))


def _events(
    written: Sequence[Event], connections: Sequence[Mapping[str, Any]], staged: Iterable[str]
) -> Iterator[Event]:
    """Yield the events of the field ``events``, one for each action that is meant as its source.

    The name of a resource at an end of a connection stands for those of its actions that are staged
    or targets of events; if there are none, for ``run`` and ``remove`` of each resource from which
    it receives data. The target is not among its own triggers then.
    """
    resources = {event.source for event in written} & _ends(connections)
    own: defaultdict[str, dict[str, None]] = defaultdict(dict)
    data: defaultdict[str, dict[str, None]] = defaultdict(dict)
    if resources:
        events = (*written, *_implied_events(connections))
        for action in (*staged, *(event.target for event in events)):
            own[action.rpartition(".")[0]][action] = None
        for c in connections:
            data[c["to"]].update({f"{c['from']}.{verb}": None for verb in ("run", "remove")})
    for event in written:
        meant = [event.source]
        if event.source in resources:
            alike = (known[event.source] for known in (own, data))
            found = ([action for action in known if action != event.target] for known in alike)
            meant = next(filter(None, found), [])
        for action in meant:
            yield event._replace(source=action)


def _by_name(mistake: Mistake, names: Sequence[str]) -> Mistake:
    """Return the mistake with the name of its action in the path, in place of the index."""
    actions, i, *rest = mistake.path
    return mistake._replace(path=(actions, names[int(i)], *rest))


def _listed(document: Mapping[str, Any], field: str) -> Sequence[str]:
    value = document.get(field, ())
    return (value,) if isinstance(value, str) else tuple(value)
