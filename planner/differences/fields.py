# SPDX-License-Identifier: Apache-2.0
"""Finds the fields of actions and plans that differ, among those that a digest covers.

The time and the extent of the facts are left out: two plans do the same whatever they were made of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from planner.errors import Path
from planner.plan import digest, place_rules
from planner.plan.model import Action, ActionPlan
from planner.safe_text import sorted_json
from planner.schemas import secrets


def of_action(action: Action) -> dict[str, Any]:
    """Return the fields of an action that a run uses, without its links."""
    places = {"places": [list(place) for place in action.places]} if action.places else {}
    return dict(zip(digest.COVERED, action.covered().values, strict=True)) | places


def of_plan(plan: ActionPlan) -> dict[str, Any]:
    """Return the fields of a plan that a run uses, with the tolerances by name.

    A name that was there before gets a number: ``racks (2)``.
    """
    times = Counter[str]()
    tolerances = {}
    for tolerance in plan.tolerances:
        name = str(tolerance.get("name"))
        times[name] += 1
        tolerances[name if times[name] == 1 else f"{name} ({times[name]})"] = tolerance
    return {
        "planner": plan.planner,
        "cloud": plan.cloud,
        "on_failure": plan.on_failure,
        "limits": plan.limits,
        "tolerances": tolerances,
        **({"places": place_rules.to_dict(plan.places)} if plan.places else {}),
        "guards": plan.guards.demands(),
    }


def different(old: Any, new: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the path of each value that differs; mappings are compared key by key.

    A key that only one of them has is one difference. Lists and secret references are compared as a
    whole; 1, 1.0 and true are different.

    >>> list(different({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": 1, "c": 4}, "e": 3}))
    [('a', 'c'), ('d',), ('e',)]
    """
    if _is_compared_by_key(old) and _is_compared_by_key(new):
        for key in dict.fromkeys([*old, *new]):
            if key in old and key in new:
                yield from different(old[key], new[key], (*path, key))
            else:
                yield (*path, key)
    elif old is not new and sorted_json(old) != sorted_json(new):
        yield path


def has(value: Any, path: Path) -> bool:
    """Return whether there is a value at a path that :func:`different` yielded."""
    return path[-1] in at(value, path[:-1])


def at(value: Any, path: Path) -> Any:
    """Return the value at a path that :func:`different` yielded, None if there is none.

    >>> limits = {"limits": {"node:*": 2}}
    >>> at(limits, ("limits", "node:*")), at(limits, ("limits", "rack:*"))
    (2, None)
    """
    for key in path:
        value = value.get(key)
    return value


def _is_compared_by_key(value: Any) -> bool:
    return isinstance(value, Mapping) and secrets.reference(value) is None
