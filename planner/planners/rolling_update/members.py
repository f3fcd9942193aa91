# SPDX-License-Identifier: Apache-2.0
"""The members of a group: reads them, orders them for termination, and finds their names inside it.

Such a name, the key of a member, is an index of a resource group, or the name of a server. Source:
Heat's ResourceGroup, whose members are called 0, 1, ..., and whose removed indices are not used
again.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count, islice
from typing import Any

from planner.errors import Mistake, Path, accepted
from planner.planners.rolling_update.template import Group
from planner.schemas import ranges
from planner.schemas.checking import repeated

#: What follows the name of a group in names that the plan or Heat gave: a hash, the index, a hash.
_TAIL = r"(?:[0-9a-f]{6}-|[0-9a-z]{12}-)?([0-9]{1,9})(?:-[0-9a-z]{12})?"


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
        last = _index_of(m.key) or 0 if gone else place.get(m.key or "", 0)
        return m.current and not gone, not gone, not m.failed, -last

    return sorted(members, key=turn)


def _index_of(key: str | None) -> int | None:
    """Return a key as a number, or None.

    >>> _index_of("12"), _index_of("web"), _index_of(None)
    (12, None, None)
    """
    return int(key) if key is not None and re.fullmatch("[0-9]{1,9}", key) else None


def members_of(
    old: Group | None, new: Group, listed: Sequence[Member] | None, mistakes: list[Mistake]
) -> tuple[Sequence[Member], str | None]:
    """Return the members of a group with their keys, and a warning if something is assumed."""
    if listed is not None:
        return _with_keys(old or new, listed, ("groups", new.name, "members"), mistakes)
    if old is None:
        return (), None
    found, said = _unlisted(old)
    return found, said and f"{said} assumed; list members in 'groups'"


def _unlisted(old: Group) -> tuple[list[Member], str | None]:
    """Return the members of a group that are not listed, and a warning if they are made up.

    Where the group has no keys, they are called GROUP-1, GROUP-2, .... Of a group of deployments,
    the servers are known, except for those that only the cloud knows.
    """
    if old.servers is not None:
        unknown = [key for key, server in old.servers.items() if "${" in server]
        ids = {**old.servers, **{key: key for key in unknown}}
        made = [Member(id=server, name=key, key=key) for key, server in ids.items()]
        text = f"only the cloud knows the ids of its servers: {', '.join(unknown)} are"
        return made, text if unknown else None
    keys = wanted_keys(old, old, [])
    ends = [str(i) for i in range(1, old.size(None) + 1)] if keys is None else keys
    found = [Member(id=f"{old.name}-{end}", key=end if keys else None) for end in ends]
    if not found:
        return [], None
    if len(found) == 1:
        return found, f"its member is not listed: {found[0].id} is"
    return found, f"its members are not listed: {found[0].id} to {found[-1].id} are"


def with_servers(group: Group, listed: Sequence[Member] | None, mistakes: list[Mistake]) -> Group:
    """Return a group of deployments with the servers that are listed, if it has a reference."""
    if group.servers is None or group.desired is not None:
        return group
    if listed is None:
        text = f"only the cloud knows the servers of {group.name}: list them here"
        mistakes.append(Mistake(text, ("groups",)))
    servers = {m.key or m.name or m.id: m.id for m in listed or ()}
    return replace(group, servers=servers, desired=len(servers))


def wanted_keys(new: Group, old: Group, members: Sequence[Member]) -> list[str] | None:
    """Return the keys that a group shall have, in order; None for a group without keys.

    A resource group has the lowest indices that are not removed. Removed are those that either
    template removes and, of its members, those between others that are missing; if the new template
    replaces earlier removals, its own alone.
    """
    if new.servers is not None:
        return list(new.servers)
    if new.removal is None:
        return None
    earlier = _removed_earlier(old, members)
    gone = earlier.union({m.key for m in members}).intersection(_removed(new, members))
    if not new.removal.replaces:
        gone |= earlier
    return list(islice((key for key in map(str, count()) if key not in gone), new.size(None)))


def not_there(new: Group, old: Group, members: Sequence[Member]) -> list[str]:
    """Return what a resource group removes, and was neither a member nor removed earlier."""
    known = {m.key for m in members} | _removed_earlier(old, members)
    return [name for name in _removed(new, members) if name not in known]


def _removed(new: Group, members: Sequence[Member]) -> list[str]:
    """Return the keys of members that removal policies name, by key or id, and any other names."""
    by_id = {name: m.key or name for m in members for name in (m.id, m.name) if name}
    return [by_id.get(name, name) for name in (new.removal.names if new.removal else ())]


def _removed_earlier(old: Group, members: Sequence[Member]) -> set[str]:
    keys = {member.key for member in members}
    highest = max((_index_of(key) or 0 for key in keys), default=0)
    missing = {str(i) for i in range(highest) if str(i) not in keys}
    return missing.union(old.removal.names if old.removal else ())


def _with_keys(
    old: Group, members: Sequence[Member], path: Path, mistakes: list[Mistake]
) -> tuple[list[Member], str | None]:
    """Return listed members with their keys, and a warning if these are their places in the list.

    A key is read from ``index``, from the name, or, in a group of deployments, from the id.
    """
    if old.removal is None and old.servers is None:
        for i in [i for i, member in enumerate(members) if member.key is not None]:
            text = "only members of a resource group, or of a group of deployments, have one"
            mistakes.append(Mistake(text, (*path, i, "index")))
        return list(members), None
    by_name = _by_name(old, members)
    found = [m.key or by_name.get(m.id) or _key(old, m, by_name) for m in members]
    warning = None
    if old.servers is not None:
        for i, (member, key) in enumerate(zip(members, found, strict=True)):
            if key not in old.servers:
                hint = accepted(key, old.servers, mistakes)
                text = f"no server {member.id!r} in the old template; {hint}"
                mistakes.append(Mistake(text, (*path, i)))
    elif None in found:
        found = [str(i) for i in range(len(members))]
        last = f"0 to {len(members) - 1}"
        if len(members) > 1:
            warning = f"its members are taken as {last} in this order; 'index' names another"
    mistakes += repeated("index", found, lambda i: (*path, i))
    return [replace(m, key=key) for m, key in zip(members, found, strict=True)], warning


def _key(old: Group, member: Member, by_name: Mapping[str, str]) -> str | None:
    name = member.name or member.id
    if name in by_name:
        return by_name[name]
    match = re.fullmatch(rf"(?:.*-)?{re.escape(old.name)}-{_TAIL}|([0-9]{{1,9}})", name)
    return str(int(match[1] or match[2])) if match else None


def _by_name(old: Group, members: Sequence[Member]) -> dict[str, str]:
    """Return keys by the id or the name that the old template gives to members."""
    if old.servers is not None:
        return {server: key for key, server in old.servers.items()} | {k: k for k in old.servers}
    found: dict[str, str] = {}
    for key in wanted_keys(old, old, []) or []:
        properties = old.configuration.of(key).get("properties")
        name = properties.get("name") if isinstance(properties, Mapping) else None
        if isinstance(name, str):
            found.setdefault(name, key)
    return found if len(found) > 1 or len(members) == 1 else {}
