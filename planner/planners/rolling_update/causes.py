# SPDX-License-Identifier: Apache-2.0
"""Finds why a group is updated: the differences between the two versions of its definition.

Decision 0024: a change of zones or subnets is a cause; a new name alone is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planner.planners.rolling_update.template import Group


def cause(new: Group, old: Group | None) -> tuple[str | None, list[str]]:
    """Return the cause of an update as a text, and warnings.

    The cause is None if the group is new, its definition has not changed, or it has no update
    policy: then no members are replaced.
    """
    if old is None:
        return None, []
    changes = []
    if changed := differences(old.configuration.value, new.configuration.value):
        renamed = new.configuration.name != old.configuration.name
        instead = f" in place of {old.configuration.name}" if renamed else ""
        changes.append(f"{_and(changed)} of {new.configuration.name}{instead}")
    if moved := differences(old.places, new.places):
        changes.append(_and(moved))
    if not changes:
        if old.configuration.name == new.configuration.name or new.policy is None:
            return None, []
        now, before = new.configuration.name, old.configuration.name
        return None, [
            f"{new.name} is not updated: {now} has another name than {before}, but the same content"
        ]
    text = f"{' and '.join(changes)} changed"
    if new.policy is not None:
        return text, []
    why = "it has no rolling_updates" if new.heat_default else "it has no update policy"
    heat = "; Heat would roll it one by one" if new.heat_default else ""
    return None, [
        f"{new.name} is not updated although {text}: {why}, so members keep the old "
        f"definition{heat}"
    ]


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
    return bool(_plain(one) == _plain(other))


def _plain(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def _and(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
