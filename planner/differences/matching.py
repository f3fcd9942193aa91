# SPDX-License-Identifier: Apache-2.0
"""Matches the actions of two plans: by name, else by type, resource and parameters.

Uuids are ignored: each plan has its own.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import TypeVar

from planner.differences.fields import encoded
from planner.model import Action

T = TypeVar("T")
#: An action, and its type, resource and parameters as text.
_Known = tuple[Action, str]


def numbers(
    old: Collection[Action], new: Collection[Action]
) -> tuple[dict[str, int], dict[str, int]]:
    """Number the actions of two plans by uuid, so that those that match have equal numbers.

    Actions match if their names are equal and unique in both plans, else if their types, resources
    and parameters are equal. All actions that are equal in these share a number if both plans have
    such actions. A name such as ``nop-3``, a type and a number, was made by a planner, and changes
    when an action is inserted before: actions with such names match by name only if they do not
    match otherwise. Actions with a name, but no resource and no parameters, match by name only.

    >>> old = [Action(uuid="1", action_type="nop", name="a"), Action(uuid="2", action_type="stop")]
    >>> new = [Action(uuid="3", action_type="stop"), Action(uuid="4", action_type="stop", name="a")]
    >>> numbers(old, new)
    ({'1': 0, '2': 1}, {'3': 1, '4': 0})
    """
    plans = [[(action, _content(action)) for action in plan] for plan in (old, new)]
    named = [_by_name(plan) for plan in plans]
    both = named[0].keys() & named[1].keys()
    first = {name for name in both if _is_first(named[0][name], named[1][name])}
    left = [{content for action, content in plan if action.name not in first} for plan in plans]
    shared = left[0] & left[1]
    found: dict[tuple[str, str | None, int], int] = {}

    def number(action: Action, content: str, place: int) -> int:
        by_name = action.name in first or (action.name in both and content not in shared)
        is_bare = action.name and not (action.resource_id or action.input_parameters)
        if by_name or is_bare:
            key = ("name", action.name, 0)
        elif content in shared:
            key = ("content", content, 0)
        else:
            key = ("in one plan", action.uuid, place)
        return found.setdefault(key, len(found))

    before, after = (
        {a.uuid: number(a, content, place) for a, content in plan}
        for place, plan in enumerate(plans)
    )
    return before, after


def pairs(
    old: Sequence[T], new: Sequence[T], keys: Sequence[Callable[[T], Hashable]]
) -> tuple[list[tuple[T, T]], list[T], list[T]]:
    """Pair the entries of two lists by equal first keys, the rest by equal second keys, and so on.

    Entries that match by no key are paired by position. Return the pairs, the entries that are only
    in ``old``, and those only in ``new``.

    >>> pairs(["a1", "b1"], ["b2", "b1", "c1"], [str, lambda text: text[0]])
    ([('b1', 'b1'), ('a1', 'b2')], [], ['c1'])
    """
    found = []
    for key in keys if max(len(old), len(new)) > 1 else ():
        waiting: dict[Hashable, deque[int]] = defaultdict(deque)
        for i, one in enumerate(new):
            waiting[key(one)].append(i)
        left, taken = [], set()
        for one in old:
            same = waiting[key(one)]
            if same:
                taken.add(same[0])
                found.append((one, new[same.popleft()]))
            else:
                left.append(one)
        old, new = left, [one for i, one in enumerate(new) if i not in taken]
    least = min(len(old), len(new))
    found += zip(old[:least], new[:least], strict=True)
    return found, list(old[least:]), list(new[least:])


def _content(action: Action) -> str:
    return encoded([action.action_type, action.resource_id, action.input_parameters])


def _by_name(actions: Iterable[_Known]) -> dict[str, _Known]:
    """Return the actions whose names are unique, by name."""
    known = list(actions)
    times = Counter(action.name for action, _ in known)
    return {a.name: (a, text) for a, text in known if a.name is not None and times[a.name] == 1}


def _is_first(one: _Known, other: _Known) -> bool:
    """Return whether two actions of one name match by it, before any other match is tried."""
    return one[1] == other[1] or not (_is_numbered(one[0]) or _is_numbered(other[0]))


def _is_numbered(action: Action) -> bool:
    return re.fullmatch(re.escape(action.action_type) + "-[0-9]+", action.name or "") is not None
