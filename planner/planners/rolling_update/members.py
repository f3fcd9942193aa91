# SPDX-License-Identifier: Apache-2.0
"""The members of a group: reads them, and orders them for termination."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from planner.errors import Mistake, Path
from planner.schemas import ranges
from planner.schemas.checking import repeated


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """One instance of a group.

    ``failed``: it is not in service. ``current``: it has the new definition. ``key``: its index in
    a resource group, or the name of its server in a group of deployments.
    """

    id: str
    name: str | None = None
    created_at: datetime | None = None
    failed: bool = False
    current: bool = False
    key: str | None = None


def read(entries: Sequence[Mapping[str, Any]], path: Path, mistakes: list[Mistake]) -> list[Member]:
    """Return the members of a group; append a mistake for each duplicate id and invalid time.

    ``path`` is the path of ``entries`` in the document.
    """
    mistakes += repeated("id", [e["id"] for e in entries], lambda i: (*path, i, "id"))
    found: list[Member] = []
    for i, entry in enumerate(entries):
        created_at = None
        if entry.get("created_at"):
            try:
                created_at = ranges.moment(entry["created_at"])
            except ValueError:
                text = f"{entry['created_at']!r} is not a time: 2026-01-31T12:00:00Z is"
                mistakes.append(Mistake(text, (*path, i, "created_at")))
        found.append(
            Member(
                id=entry["id"],
                name=entry.get("name"),
                created_at=created_at,
                failed=entry.get("failed", False),
                current=entry.get("current", False),
                key=str(entry["index"]) if "index" in entry else None,
            )
        )
    return found


def termination_order(
    members: Iterable[Member],
    leaving: Collection[str] = (),
    wanted: Sequence[str] | None = None,
    *,
    newest_go: bool = False,
) -> list[Member]:
    """Order members for termination: outdated before current, failed first, then the oldest.

    With ``newest_go``, the newest go before the oldest.

    Of those ``leaving``, by id, none stays: they are ordered like outdated ones, and before them if
    ``wanted`` has the keys of those that stay. Members with keys go from the last to the first, as
    in Heat, whatever their age. A member of unknown age counts as the oldest. Equal members keep
    their order.

    >>> three = [Member(id="a", current=True, failed=True), Member(id="b"),
    ...          Member(id="c", failed=True)]
    >>> [[m.id for m in termination_order(three, leaving)] for leaving in ((), ("a",))]
    [['c', 'b', 'a'], ['a', 'c', 'b']]
    """
    first = datetime.min.replace(tzinfo=UTC)
    if wanted is None:
        ordered = sorted(members, key=lambda m: m.created_at or first, reverse=newest_go)
        return sorted(ordered, key=lambda m: (m.current and m.id not in leaving, not m.failed))
    place = {key: i for i, key in enumerate(wanted)}

    def turn(m: Member) -> tuple[bool, bool, bool, int]:
        gone = m.id in leaving
        last = index_of(m.key) or 0 if gone else place.get(m.key or "", 0)
        return m.current and not gone, not gone, not m.failed, -last

    return sorted(members, key=turn)


def index_of(key: str | None) -> int | None:
    """Return a key as a number, or None.

    >>> index_of("12"), index_of("web"), index_of(None)
    (12, None, None)
    """
    return int(key) if key is not None and re.fullmatch("[0-9]{1,9}", key) else None
