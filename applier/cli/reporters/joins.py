# SPDX-License-Identifier: Apache-2.0
"""Replaces the joins of a plan, which have no names and do nothing, by the actions behind them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def through(uuids: Iterable[str], joins: Mapping[str, Iterable[str]]) -> list[str]:
    """Replace each join by the actions behind it; each is listed once.

    ``joins`` has the needs of each join by its uuid.

    >>> through(["a", "j"], {"j": ["b", "k"], "k": ["a", "c"]})
    ['a', 'b', 'c']
    """
    found: dict[str, None] = {}
    ahead, seen = [iter(uuids)], set[str]()
    while ahead:
        uuid = next(ahead[-1], None)
        if uuid is None:
            ahead.pop()
        elif uuid not in joins:
            found[uuid] = None
        elif uuid not in seen:
            seen.add(uuid)
            ahead.append(iter(joins[uuid]))
    return list(found)
