# SPDX-License-Identifier: Apache-2.0
"""Finds why a group is updated: the differences between the two versions of its definition.

Decision 0024: a change of zones or subnets is a cause; a new name alone is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from planner.planners.rolling_update.conditions import comparable
from planner.planners.rolling_update.template import Group


class Change(NamedTuple):
    """Why a group is updated; None, if it is not. ``alike`` are the keys whose members stay."""

    cause: str | None
    alike: frozenset[str | None] = frozenset()
    warnings: tuple[str, ...] = ()


def change(new: Group, old: Group | None, keys: Sequence[str | None] = (None,)) -> Change:
    """Return the cause of an update, and the ``keys`` whose members it does not change.

    The cause is None if the group is new, the definition of none of its members has changed, or it
    has no update policy: then no members are replaced.
    """
    if old is None:
        return Change(None)
    now, before = new.configuration, old.configuration
    own = {key: differences(before.of(key), now.of(key)) for key in keys}
    changed = list(dict.fromkeys(name for names in own.values() for name in names))
    moved = differences(old.places, new.places)
    renamed = now.name != before.name
    where = f"{now.name} in place of {before.name}" if renamed else now.name
    what = [f"{_and(changed)} of {where}"] if changed else []
    text = " and ".join([*what, *([_and(moved)] if moved else [])])
    if not text:
        if not renamed or new.policy is None:
            return Change(None)
        same = f"{now.name} has another name than {before.name}, but the same content"
        return Change(None, warnings=(f"{new.name} is not updated: {same}",))
    if why := _kept(new, old, moved):
        text = f"{new.name} is not updated although {text} changed: {why}"
        return Change(None, warnings=(text,))
    alike = frozenset(key for key, names in own.items() if not names and not moved)
    return Change(f"{text} changed", alike)


def _kept(new: Group, old: Group, moved: Sequence[str]) -> str | None:
    """Return why members keep the old definition though there is a new one, or None."""
    if new.policy is None:
        return "it has no update policy, so members keep the old definition"
    pinned = new.configuration.pinned
    same = new.configuration.name == old.configuration.name
    if pinned is not None and pinned == old.configuration.pinned and same and not moved:
        return f"it has version {pinned} of the launch template, whatever the latest is"
    if new.servers is not None and "UPDATE" not in new.configuration.value["actions"]:
        return "its actions do not have UPDATE"
    return None


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """List the keys whose values differ; a key in a nested mapping is written ``OUTER.INNER``.

    Lists with the same entries in another order differ. A missing key is equal to None.

    >>> differences({"a": {"b": 1, "c": 2}, "d": [1, 2]}, {"a": {"b": 1, "c": 3}, "d": [2, 1]})
    ['a.c', 'd']
    """
    found = []
    for key in dict.fromkeys([*old, *new]):
        before, after = old.get(key), new.get(key)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            found += [f"{key}.{name}" for name in differences(before, after)]
        elif not _equal(before, after):
            found.append(key)
    return found


def _equal(one: Any, other: Any) -> bool:
    """Compare as Heat does, where a number is equal to its text."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_equal(one[k], other[k]) for k in one)
    return bool(comparable(one) == comparable(other))


def _and(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
