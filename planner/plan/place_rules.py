# SPDX-License-Identifier: Apache-2.0
"""Places: tokens that all actions of a member of a group, usually a node, hold together. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from planner.schemas import ranges


class HeldPlace(NamedTuple):
    """A token that all actions of a member hold together, from the first start to the last end."""

    token: str
    member: str


class PlaceRule(NamedTuple):
    """The rules of a block of places besides its limit, which is that of its token.

    With ``keep``, a member that began and did not end well keeps its place. Once more than
    ``stop_after`` members have failed, no other member begins. ``widens`` are pairs: after so many
    members have ended well, the limit is so much. When ``pause_after`` members have ended well, the
    plan pauses, once.
    """

    keep: bool = True
    stop_after: int | None = None
    widens: tuple[tuple[int, int], ...] = ()
    pause_after: int | None = None


def to_dict(rules: Mapping[str, PlaceRule]) -> dict[str, Any]:
    """Convert rules by token to JSON types."""
    return {
        token: {**rule._asdict(), "widens": [list(pair) for pair in rule.widens]}
        for token, rule in rules.items()
    }


def of(value: Mapping[str, Any]) -> dict[str, PlaceRule]:
    """Return the rules by token that :func:`to_dict` has converted.

    >>> of(to_dict({"serial:patch": PlaceRule(stop_after=1)}))
    {'serial:patch': PlaceRule(keep=True, stop_after=1, widens=(), pause_after=None)}
    """
    return {
        token: PlaceRule(**{**rule, "widens": tuple((a, w) for a, w in rule.get("widens", ()))})
        for token, rule in value.items()
    }


#: The JSON Schemas of what :class:`HeldPlace` and :func:`to_dict` become.
PLACES: dict[str, Any] = ranges.list_of(
    ranges.list_of(ranges.NAME, minItems=2, maxItems=2),
    description="Token and member: held from the member's first start to its last end.",
)
PLACE_RULES: dict[str, Any] = ranges.by_token(
    ranges.mapping(
        keep={"type": "boolean"},
        stop_after={**ranges.COUNT, "type": ["integer", "null"]},
        pause_after={**ranges.COUNT, "type": ["integer", "null"]},
        widens=ranges.list_of(ranges.list_of(ranges.COUNT)),
    )
)
