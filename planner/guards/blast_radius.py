# SPDX-License-Identifier: Apache-2.0
"""Bounds on the number of hosts and instances that a plan may touch. Pure.

The kind of a bound is ``hosts``, ``instances``, ``group`` (the members of each server group), or a
label of hosts, such as ``rack`` (the hosts with the same value of the label). The numbers that a
plan touches are computed by :mod:`planner.plan.extent`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from planner.schemas import ranges

HOSTS, INSTANCES, GROUP = "hosts", "instances", "group"
#: The prefix of the tokens of hosts, and that of the tokens of instances.
TOKENS = {HOSTS: "node:", INSTANCES: "instance:"}
#: The prefix of the tokens whose limits ensure the bounds of ``blast_radius_at_once``.
AT_ONCE = "at-once:"
_PERCENT = "(100|[1-9]?[0-9])%"
_NUMBER = "[0-9]{1,9}"
_KIND = r"[^\s=,:/]+"
EXPECTED = "hosts=N, instances=N, group=N or LABEL=N with N or N%"
#: The schema of bounds in a document: ``{hosts: 2, instances: 10%}``.
SCHEMA: dict[str, Any] = {
    "type": "object",
    "propertyNames": {"pattern": f"^{_KIND}$", "maxLength": 200},
    "additionalProperties": {
        "type": ["integer", "string", "array"],
        "title": "a number, a share such as 20%, or both",
        "minimum": 0,
        "maximum": ranges.MOST,
        "pattern": f"^{_PERCENT}$",
        "items": {
            "type": ["integer", "string"],
            "minimum": 0,
            "maximum": ranges.MOST,
            "pattern": f"^{_PERCENT}$",
        },
    },
}


class Bound(NamedTuple):
    """At most ``most`` members of a kind, and at most ``percent`` % of all; None: no such bound."""

    kind: str
    most: int | None = None
    percent: int | None = None

    def allowed(self, total: int | None) -> int | None:
        """Return how many of ``total`` members may be touched, rounded down.

        Return None if the bound has a percentage and the total is None, which means not known.

        >>> Bound("hosts", percent=20).allowed(14), Bound("hosts", most=3).allowed(None)
        (2, 3)
        """
        if self.percent is None:
            return self.most
        if total is None:
            return None
        share = total * self.percent // 100
        return share if self.most is None else min(self.most, share)

    @property
    def words(self) -> str:
        """The bound in words: ``2``, ``20 %`` or ``2 and 20 %``."""
        share = None if self.percent is None else f"{self.percent} %"
        return " and ".join(str(part) for part in (self.most, share) if part is not None)


Bounds = tuple[Bound, ...]


class Share(NamedTuple):
    """How many members of a kind or group a plan touches, and their total: ``rack/r1``, 2, 7."""

    name: str
    touched: int
    total: int


def bounds(value: str | Mapping[str, Any]) -> Bounds:
    """Parse bounds from a text, or from a mapping that fits :data:`SCHEMA`; sort them by kind.

    Bounds of one kind are combined into one. Raises ValueError that names each wrong part.

    >>> bounds("hosts=2, rack=50%")
    (Bound(kind='hosts', most=2, percent=None), Bound(kind='rack', most=None, percent=50))
    """
    found: Bounds = ()
    for bound in ranges.pairs(value, _bound, EXPECTED):
        found = stricter(found, (bound,))
    return found


def _bound(kind: str, text: str) -> Bound | None:
    if not re.fullmatch(_KIND, kind) or not re.fullmatch(f"{_NUMBER}|{_PERCENT}", text):
        return None
    if text.endswith("%"):
        return Bound(kind, percent=int(text[:-1]))
    return Bound(kind, most=int(text))


def to_dict(known: Bounds) -> dict[str, Any]:
    """Return bounds as JSON types, which fit :data:`SCHEMA`.

    >>> to_dict(bounds("hosts=2, hosts=20%, rack=1"))
    {'hosts': [2, '20%'], 'rack': 1}
    """
    found: dict[str, Any] = {}
    for bound in known:
        share = None if bound.percent is None else f"{bound.percent}%"
        parts = [part for part in (bound.most, share) if part is not None]
        found[bound.kind] = parts[0] if len(parts) == 1 else parts
    return found


def stricter(one: Bounds, other: Bounds) -> Bounds:
    """Return the bounds, sorted by kind, that hold if and only if both arguments hold."""
    found = {bound.kind: bound for bound in one}
    for bound in other:
        known = found.get(bound.kind, Bound(bound.kind))
        found[bound.kind] = Bound(
            bound.kind,
            _least(known.most, bound.most),
            _least(known.percent, bound.percent),
        )
    return tuple(found[kind] for kind in sorted(found))


def _least(one: int | None, other: int | None) -> int | None:
    return min((n for n in (one, other) if n is not None), default=None)


def kind_of(name: str) -> str:
    """Return the kind in the name of a :class:`Share`: ``rack`` for ``rack/r1``."""
    return name.partition("/")[0]


def touched_as(kind: str) -> str:
    """Return :data:`HOSTS` or :data:`INSTANCES`: which of them the members of a kind are.

    >>> touched_as("rack"), touched_as("group"), touched_as("instances")
    ('hosts', 'instances', 'instances')
    """
    return INSTANCES if kind in (GROUP, INSTANCES) else HOSTS
