# SPDX-License-Identifier: Apache-2.0
"""Replaces joins, which are actions that only stand for several others, by those others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def through(uuids: Iterable[str], joins: Mapping[str, Iterable[str]]) -> list[str]:
    """Return uuids with each join replaced by the actions that it stands for, each once.

    ``joins`` maps the uuid of each join to the uuids of those actions, which may be joins, too.

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
