# SPDX-License-Identifier: Apache-2.0
"""Bounds what a YAML text becomes, from its events: no value is built before this."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import yaml

from planner.text_checks import DEEPEST, TOO_DEEP, UNKEPT, refused_character

#: How many values aliases may repeat in one document. Aliases of aliases repeat exponentially many,
#: and all that reads a plan later, the record included, handles each of them. Ten thousand actions
#: that each take a hundred parameters from an anchor need as many.
MOST_REPEATED = 1_000_000
#: Texts are repeated too: each counts once more for each so many characters.
_CHARACTERS = 100


class _Size(NamedTuple):
    """The number of values in a node, itself included, and how deep it nests."""

    values: int
    depth: int


class _Open:
    """A list or mapping that has begun."""

    def __init__(self, anchor: str | None) -> None:
        self.anchor = anchor
        self.values, self.depth = 1, 1

    def add(self, inner: _Size) -> None:
        self.values += inner.values
        self.depth = max(self.depth, inner.depth + 1)


def require_bounded(events: Iterable[yaml.Event]) -> None:
    """Raise yaml.MarkedYAMLError for what is nested too deep, repeated too often or a loop.

    Also for a text with a character that no store keeps, which an escape may stand for.
    """
    anchored: dict[str | None, _Size] = {}
    around: list[_Open] = []
    repeated = 0
    for event in events:
        anchor = event.anchor if isinstance(event, yaml.NodeEvent) else None
        if isinstance(event, yaml.CollectionStartEvent):
            around.append(_Open(anchor))
            if len(around) > DEEPEST:
                raise _wrong(TOO_DEEP, event)
            continue
        if isinstance(event, yaml.CollectionEndEvent):
            ended = around.pop()
            anchor, size = ended.anchor, _Size(ended.values, ended.depth)
        elif isinstance(event, yaml.ScalarEvent):
            if found := UNKEPT.search(event.value):
                raise _wrong(refused_character(found[0]), event)
            size = _Size(1 + len(event.value) // _CHARACTERS, 0)
        elif isinstance(event, yaml.AliasEvent):
            if any(outer.anchor == anchor for outer in around):
                raise _wrong(f"the alias *{anchor} is inside what it stands for", event)
            # An alias without an anchor is refused later, when the nodes are put together.
            size = anchored.get(anchor, _Size(1, 0))
            repeated += size.values
            if repeated > MOST_REPEATED:
                raise _wrong(f"aliases repeat more than {MOST_REPEATED:,} values", event)
            if len(around) + size.depth > DEEPEST:
                raise _wrong(TOO_DEEP, event)
        else:
            continue
        if anchor is not None:
            anchored[anchor] = size
        if around:
            around[-1].add(size)


def _wrong(text: str, event: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=text, problem_mark=event.start_mark)
