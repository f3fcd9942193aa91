# SPDX-License-Identifier: Apache-2.0
"""The text form of events, ``on SOURCE OUTCOME RESOURCE.ACTION``, and the names of actions."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from planner.errors import accepted
from planner.plan.states import Outcome

#: Regular expressions of names. ``#`` is reserved for run numbers, ``|`` for lists of outcomes.
RESOURCE = r"^[^\s#|]+$"
ACTION = r"^[^\s#|]+\.[^\s.#|]+$"
RUN = r"^[^\s#|]+\.[^\s.#|]+(#[0-9]+)?$"
_FORM = "on SOURCE OUTCOME[|OUTCOME] RESOURCE.ACTION"
_OUTCOMES = {str(outcome): outcome for outcome in Outcome}


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


def split(action: str) -> tuple[str, str]:
    """Split an action into its resource and its verb, the part after the last dot.

    >>> split("rmq.1.cluster_create")
    ('rmq.1', 'cluster_create')
    """
    resource, _, verb = action.rpartition(".")
    return resource, verb
