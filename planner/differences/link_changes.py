# SPDX-License-Identifier: Apache-2.0
"""The links that actions have gained and lost, grouped: many actions often gain the same ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from planner.differences.links import LinkSets, Members

#: How many members of a join a label names.
_NAMED = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Links:
    """A link of each action in ``after`` to each one in ``before``, all by their labels.

    ``kind`` is the field of an action that holds them. With ``needs_any`` they are one link to a
    group, of which one must succeed. ``outcomes`` are those of ``triggers`` and ``blocked_by``.
    """

    kind: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    outcomes: tuple[str, ...] = ()


class LinkChanges:
    """Finds what one set of links has and another lacks, among actions that both plans have.

    ``labels`` are the labels of all actions by number, ``kept`` the numbers in both plans.
    """

    def __init__(self, labels: Mapping[int, str], kept: Collection[int]) -> None:
        self._labels, self._kept = labels, kept
        self._missing: dict[tuple[Members, Members], tuple[str, ...]] = {}

    def grouped(self, actions: Iterable[tuple[int, LinkSets, LinkSets]]) -> tuple[Links, ...]:
        """Return the links that are in the first sets of each action and not in the second."""
        found: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
        for number, one, other in actions:
            if one != other:
                for key in self._between(one, other):
                    found.setdefault(key, []).append(self._labels[number])
        return tuple(
            Links(kind=kind, before=before, after=tuple(after), outcomes=outcomes)
            for (kind, before, outcomes), after in found.items()
        )

    def _between(
        self, one: LinkSets, other: LinkSets
    ) -> Iterator[tuple[str, tuple[str, ...], tuple[str, ...]]]:
        for kind in ("parents", "needs"):
            before = self._lacking(getattr(one, kind), getattr(other, kind))
            if before:
                yield kind, before, ()
        for group in self._ordered(one.needs_any - other.needs_any):
            yield "needs_any", self._alternatives(group), ()
        for kind in ("triggers", "blocked_by"):
            sources: dict[tuple[str, ...], list[Members]] = {}
            for source, outcomes in getattr(one, kind) - getattr(other, kind):
                if self._kept_leaves(source):
                    sources.setdefault(outcomes, []).append(source)
            for outcomes in sorted(sources):
                found = self._ordered(sources[outcomes])
                yield kind, tuple(self._alternatives(s)[0] for s in found), outcomes

    def _lacking(self, one: Members, other: Members) -> tuple[str, ...]:
        if one is other:
            return ()
        known = self._missing.get((one, other))
        if known is None:
            left = leaves(one - other) - leaves(other)
            kept = sorted(_number(leaf) for leaf in left if _number(leaf) in self._kept)
            known = self._missing[one, other] = tuple(self._labels[number] for number in kept)
        return known

    def _alternatives(self, group: Members) -> tuple[str, ...]:
        """Return the label of each member of a group; that of a join names what is behind it."""
        return tuple(
            self._all_of(member) if isinstance(member, frozenset) else self._labels[_number(member)]
            for member in self._ordered(group)
        )

    def _all_of(self, members: Members) -> str:
        names = [self._labels[number] for number in sorted(map(_number, leaves(members)))]
        more = f" +{len(names) - _NAMED}" if len(names) > _NAMED else ""
        return f"all of {' '.join(names[:_NAMED])}{more}"

    def _kept_leaves(self, members: Members) -> bool:
        return all(_number(leaf) in self._kept for leaf in leaves(members))

    @staticmethod
    def _ordered(members: Iterable[Any]) -> list[Any]:
        return sorted(members, key=_place)


def leaves(members: Members) -> set[Any]:
    """Return the actions in a set of links, and those in the sets within it.

    >>> sorted(leaves(frozenset({1, frozenset({2, frozenset({1, 3})})})))
    [1, 2, 3]
    """
    found, seen, ahead = set(), {members}, [members]
    while ahead:
        for member in ahead.pop():
            if not isinstance(member, frozenset):
                found.add(member)
            elif member not in seen:
                seen.add(member)
                ahead.append(member)
    return found


def _number(leaf: Any) -> int:
    number: int = leaf[0] if isinstance(leaf, tuple) else leaf
    return number


def _place(member: Any) -> list[int]:
    """Return what to sort a member by: the numbers of its actions."""
    return sorted(map(_number, leaves(frozenset([member]))))
