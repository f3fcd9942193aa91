# SPDX-License-Identifier: Apache-2.0
"""The members of a group: reads them, and orders them for termination."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from planner.errors import Mistake, Path
from planner.schemas import ranges


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """One instance of a group.

    ``failed``: it is not in service. ``current``: it has the new definition.
    """

    id: str
    name: str | None = None
    created_at: datetime | None = None
    failed: bool = False
    current: bool = False


def read(entries: Sequence[Mapping[str, Any]], path: Path, mistakes: list[Mistake]) -> list[Member]:
    """Return the members of a group; append a mistake for each duplicate id and invalid time.

    ``path`` is the path of ``entries`` in the document.
    """
    found: list[Member] = []
    seen: set[str] = set()
    for i, entry in enumerate(entries):
        if entry["id"] in seen:
            mistakes.append(Mistake(f"the id {entry['id']!r} occurs twice", (*path, i, "id")))
        seen.add(entry["id"])
        created_at = None
        if entry.get("created_at"):
            try:
                created_at = parse_time(entry["created_at"])
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
            )
        )
    return found


def unlisted(group: str, number: int) -> list[Member]:
    """Return made-up members, GROUP-1, GROUP-2, ..., for a group whose members are not listed."""
    return [Member(id=f"{group}-{i}") for i in range(1, number + 1)]


def parse_time(text: str) -> datetime:
    """Parse a time; without a zone it is UTC. Raises ValueError."""
    return ranges.moment(text)


def termination_order(members: Iterable[Member], surplus: int = 0) -> list[Member]:
    """Order members for termination: outdated before current, failed first, then the oldest.

    ``surplus`` is the number of members above the wanted size: up to that many members that are
    both current and failed are ordered like outdated ones. A member of unknown age counts as the
    oldest. Equal members keep their order.

    >>> three = [Member(id="a", current=True, failed=True), Member(id="b"),
    ...          Member(id="c", failed=True)]
    >>> [[m.id for m in termination_order(three, surplus)] for surplus in (0, 1)]
    [['c', 'b', 'a'], ['a', 'c', 'b']]
    """
    first = datetime.min.replace(tzinfo=UTC)
    oldest = sorted(members, key=lambda m: m.created_at or first)
    spare = {m.id for m in [m for m in oldest if m.current and m.failed][:surplus]}
    return sorted(oldest, key=lambda m: (m.current and m.id not in spare, not m.failed))
