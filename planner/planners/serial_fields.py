# SPDX-License-Identifier: Apache-2.0
"""Fields of documents that say how many nodes may be under way at once, and the rules they make."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import Any

from planner.plan.place_rules import PlaceRule
from planner.schemas import ranges

_PERCENT = "^([1-9][0-9]?|100)%$"
NUMBER: dict[str, Any] = {
    **ranges.COUNT_OF_ONE_OR_MORE,
    "type": ["integer", "string"],
    "pattern": _PERCENT,
    "maxLength": 4,
    "title": "a number of nodes from 1, or a percentage from 1% to 100%",
}
#: The schemas of ``serial`` and of the fields beside it.
SERIAL: dict[str, Any] = {
    **NUMBER,
    "type": ["integer", "string", "array"],
    "minItems": 1,
    "items": NUMBER,
    "description": "How many nodes at once; a list widens. 1 where left out.",
}
CANARY: dict[str, Any] = {
    **ranges.mapping(
        nodes={**NUMBER, "description": "How many nodes go first; 1 where left out."},
        approve={
            "type": "boolean",
            "description": "Whether the plan pauses after them; true where left out.",
        },
    ),
    "description": "The first nodes, after which the plan pauses for a look.",
}
STOP_AFTER: dict[str, Any] = {**NUMBER, "description": "When so many have failed, none begins."}
KEEP: dict[str, Any] = {
    "type": "boolean",
    "description": "Whether a node that failed keeps its place; true where left out.",
}


def number(value: int | str, nodes: int) -> int:
    """Return a number of nodes; a percentage is rounded down, and at least 1.

    >>> number(3, 40), number("10%", 40), number("1%", 40)
    (3, 4, 1)
    """
    if isinstance(value, str):
        return max(1, nodes * int(value.removesuffix("%")) // 100)
    return value


def rule(fields: Mapping[str, Any], nodes: int) -> tuple[int, PlaceRule]:
    """Return the first width, and the rule, of the fields ``serial``, ``canary``, ``keep`` ....

    Each width holds until as many nodes have ended well as the widths up to it sum to.

    >>> rule({"serial": [1, "10%"], "keep": False}, 40)
    (1, PlaceRule(keep=False, stop_after=None, widens=((1, 4),), pause_after=None))
    """
    serial, canary = fields.get("serial", 1), fields.get("canary")
    given = list(serial) if isinstance(serial, list) else [serial]
    if canary is not None:
        given.insert(0, canary.get("nodes", 1))
    widths = [number(value, nodes) for value in given]
    pauses = canary is not None and canary.get("approve", True)
    stop_after = fields.get("stop_after")
    return widths[0], PlaceRule(
        keep=fields.get("keep", True),
        stop_after=number(stop_after, nodes) - 1 if isinstance(stop_after, int | str) else None,
        widens=tuple(zip(accumulate(widths[:-1]), widths[1:], strict=True)),
        pause_after=widths[0] if pauses else None,
    )
