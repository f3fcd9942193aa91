# SPDX-License-Identifier: Apache-2.0
"""The links that actions have gained and lost, grouped: many actions often gain the same ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from planner.differences.links import LinkSets, Members
from planner.graph_algorithms import reachable

#: How many members of a join a label names.
_NAMED = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkSet:
    """A link of each action in ``after`` to each one in ``before``, all by their labels.

    ``kind`` is the field of an action that holds them. With ``needs_any`` they are one link to a
    group, of which one must succeed. ``outcomes`` are those of ``triggers`` and ``blocked_by``.
    """

    kind: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    outcomes: tuple[str, ...] = ()


class LinkChanges:
    """Finds the links in one set that another lacks; ``labels`` maps action numbers to labels.

    Sets that many actions share are read once, so that the time is linear in actions and links.
    """

    def __init__(self, labels: Mapping[int, str]) -> None:
        self._labels = labels
        self._lacking: dict[tuple[Members, Members], tuple[str, ...]] = {}
        self._groups: dict[Members, tuple[str, ...]] = {}
        #: Equal tuples of labels are one object, so that its id identifies them.
        self._shared: dict[tuple[str, ...], tuple[str, ...]] = {}

    def grouped(self, actions: Iterable[tuple[int, LinkSets, LinkSets]]) -> tuple[LinkSet, ...]:
        """Return the links of actions that are in their first sets and not in their second.

        ``actions`` has the number of each action and its two sets. Actions that have the same such
        links are in one :class:`LinkSet`.
        """
        found: dict[tuple[str, int, tuple[str, ...]], tuple[tuple[str, ...], list[str]]] = {}
        for number, one, other in actions:
            if one != other:
                for kind, before, outcomes in self._between(one, other):
                    key = (kind, id(before), outcomes)
                    found.setdefault(key, (before, []))[1].append(self._labels[number])
        return tuple(
            LinkSet(kind=kind, before=before, after=tuple(after), outcomes=outcomes)
            for (kind, _, outcomes), (before, after) in found.items()
        )

    def _between(
        self, one: LinkSets, other: LinkSets
    ) -> Iterator[tuple[str, tuple[str, ...], tuple[str, ...]]]:
        for kind in ("parents", "needs"):
            before = self._only_in(getattr(one, kind), getattr(other, kind))
            if before:
                yield kind, before, ()
        for group in self._ordered(one.needs_any - other.needs_any):
            yield "needs_any", self._alternatives(group), ()
        for kind in ("triggers", "blocked_by"):
            sources: dict[tuple[str, ...], list[Members]] = {}
            for source, outcomes in getattr(one, kind) - getattr(other, kind):
                sources.setdefault(outcomes, []).append(source)
            for outcomes in sorted(sources):
                found = self._ordered(sources[outcomes])
                names = tuple(self._alternatives(source)[0] for source in found)
                yield kind, self._one(names), outcomes

    def _only_in(self, one: Members, other: Members) -> tuple[str, ...]:
        if one is other:
            return ()
        known = self._lacking.get((one, other))
        if known is None:
            left = leaves(one - other) - leaves(other)
            names = tuple(self._labels[number] for number in sorted(map(_number, left)))
            known = self._lacking[one, other] = self._one(names)
        return known

    def _alternatives(self, group: Members) -> tuple[str, ...]:
        """Return the label of each member of a group; that of a join names its predecessors."""
        known = self._groups.get(group)
        if known is None:
            names = (
                self._all_of(m) if isinstance(m, frozenset) else self._labels[_number(m)]
                for m in self._ordered(group)
            )
            known = self._groups[group] = self._one(tuple(names))
        return known

    def _all_of(self, members: Members) -> str:
        names = [self._labels[number] for number in sorted(map(_number, leaves(members)))]
        more = f" +{len(names) - _NAMED}" if len(names) > _NAMED else ""
        return f"all of {' '.join(names[:_NAMED])}{more}"

    def _one(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return self._shared.setdefault(names, names)

    @staticmethod
    def _ordered(members: Iterable[Any]) -> list[Any]:
        return sorted(members, key=_place)


def leaves(members: Members) -> set[Any]:
    """Return the members of a set of links and of all sets within it, without the sets themselves.

    >>> sorted(leaves(frozenset({1, frozenset({2, frozenset({1, 3})})})))
    [1, 2, 3]
    """
    found = reachable([members], lambda m: m if isinstance(m, frozenset) else ())
    return {member for member in found if not isinstance(member, frozenset)}


def _number(leaf: Any) -> int:
    number: int = leaf[0] if isinstance(leaf, tuple) else leaf
    return number


def _place(member: Any) -> list[int]:
    """Return the sort key of a member: the numbers of its actions."""
    return sorted(map(_number, leaves(frozenset([member]))))
