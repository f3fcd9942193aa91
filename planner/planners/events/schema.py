# SPDX-License-Identifier: Apache-2.0
"""JSON Schema of ``kind: events``, and the text form of an event."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from planner.errors import accepted
from planner.plan.states import Outcome
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
_ACTIONS = {"type": "array", "items": _ACTION}


def _runs(description: str) -> dict[str, Any]:
    either = {"type": ["string", "array"], "items": _RUN, "minItems": 1}
    return {**_RUN, **either, "description": description}


_WHAT = {
    **ACTION,
    "properties": {k: v for k, v in ACTION["properties"].items() if k != "name"},
}

CONNECTION: dict[str, Any] = {
    "type": "object",
    "required": ["from", "to"],
    "additionalProperties": False,
    "properties": {
        "from": {**_RESOURCE, "description": "The resource that data comes from."},
        "to": {**_RESOURCE, "description": "The resource that uses it."},
        "events": {
            "type": "boolean",
            "description": "false: without 'on FROM.run changed TO.reload' and "
            "'on FROM.remove changed TO.run'.",
        },
        "order": {"type": "boolean", "description": "false: without FROM.run before TO.run."},
    },
}

EVENT: dict[str, Any] = {
    **ranges.ARGUMENT,
    "type": ["string", "object"],
    "required": ["on", "outcomes", "do"],
    "additionalProperties": False,
    "properties": {
        "on": {**_RESOURCE, "title": "an action or a connected resource"},
        "outcomes": {
            "type": "array",
            "minItems": 1,
            "items": {"enum": [str(outcome) for outcome in Outcome]},
        },
        "do": _ACTION,
    },
}

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "events",
    "description": "Resources, what depends on what, and what is to run.",
    "type": "object",
    "required": ["staged"],
    "additionalProperties": False,
    "properties": {
        **COMMON,
        "actions": {
            "type": "object",
            "description": "Maps RESOURCE.ACTION to its definition; without one it is a nop.",
            "propertyNames": _ACTION,
            "additionalProperties": _WHAT,
        },
        "connections": {
            "type": "array",
            "description": "Data that one resource has from another.",
            "items": CONNECTION,
        },
        "events": {
            "type": "array",
            "description": "Events as texts 'on SOURCE OUTCOME RESOURCE.ACTION' or as mappings.",
            "items": EVENT,
        },
        "after": {
            "type": "array",
            "description": "Pairs: the first runs before the second if both are in the plan.",
            "items": {**_ACTIONS, "minItems": 2, "maxItems": 2},
        },
        "staged": {**_ACTIONS, "description": "Actions that run without a trigger."},
        "fan_in": {
            "type": "object",
            "description": "any: one trigger is enough, even if another source failed.",
            "propertyNames": _ACTION,
            "additionalProperties": {"enum": ["all", "any"]},
        },
        "only": _runs("These alone."),
        "from": _runs("These, and what comes after them."),
        "until": _runs("These, and what comes before them."),
    },
}


class EventText(NamedTuple):
    """An event as it is written: the source, the outcomes, the target."""

    source: str
    outcomes: tuple[Outcome, ...]
    target: str


def parse_event(text: str) -> EventText:
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
    return EventText(source, outcomes(" ".join(middle)), target)


@cache
def outcomes(text: str) -> tuple[Outcome, ...]:
    """Parse outcomes such as ``changed`` or ``failed|error``; raises ValueError for others."""
    found = []
    for word in text.split("|"):
        outcome = _OUTCOMES.get(word.strip())
        if outcome is None:
            raise ValueError(f"no outcome {word.strip()!r}; {accepted(word.strip(), _OUTCOMES)}")
        found.append(outcome)
    return tuple(found)
