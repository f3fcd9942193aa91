# SPDX-License-Identifier: Apache-2.0
"""The links of actions as sets, by which two plans are compared, and the links gained and lost.

The members of a set are numbers of actions. A join is replaced by a set within the set, which has
the predecessors of the join, so that n actions before m actions take n + m members. Equal sets are
one object, and what many actions have in common is compared once: the time is linear in actions and
links.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from planner.plan.graph_algorithms import once, reachable, topological_order
from planner.plan.model import JOIN, Action, Blocker, Trigger

#: A set of action numbers, of such sets, and of pairs (number, how often it was a link before). Of
#: triggers and blockers, a set of pairs of such a set, the source, and the outcomes.
Members = frozenset[Any]
_NONE: Members = frozenset()
#: How many members of a join a label names.
_NAMED = 3


class LinkSets(NamedTuple):
    """The links of one action by kind; actions in ``parents`` must have ended, but may have failed.

    Those in ``needs`` must have succeeded.
    """

    parents: Members = _NONE
    needs: Members = _NONE
    needs_any: Members = _NONE
    triggers: Members = _NONE
    blocked_by: Members = _NONE


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


def is_join(action: Action) -> bool:
    """Return whether an action is a join that is replaced: one with only parents and needs."""
    links = (action.needs_any, action.triggers, action.blocked_by)
    return action.action_type == JOIN and not any(links)


class LinkReader:
    """Reads the links of the actions of a plan.

    ``numbers`` are the numbers of the actions by uuid. Joins have none. ``known`` maps each set to
    the object that stands for all sets equal to it; the readers of two plans share it.
    """

    def __init__(
        self,
        actions: Iterable[Action],
        numbers: Mapping[str, int],
        known: dict[Members, Members],
    ) -> None:
        self._numbers, self._known = numbers, known
        self._shared_group = once(self._group)
        # The tuples are those of actions that outlive the reader, so their ids are unique.
        self._shared: dict[tuple[int, int], LinkSets] = {}
        joins = [action for action in actions if is_join(action)]
        place = {join.uuid: i for i, join in enumerate(joins)}
        ahead = [[[place[u] for u in (*j.parents, *j.needs) if u in place]] for j in joins]
        self._joins: dict[str, LinkSets] = {}
        for i in topological_order(ahead):
            self._joins[joins[i].uuid] = self._plain(joins[i])

    def links(self, action: Action) -> LinkSets:
        """Return the links of an action."""
        plain = self._plain(action)
        if not (action.needs_any or action.triggers or action.blocked_by):
            return plain
        return plain._replace(
            needs_any=self._one(map(self._shared_group, action.needs_any)),
            triggers=self._one(self._events(action.triggers)),
            blocked_by=self._one(self._events(action.blocked_by)),
        )

    def _plain(self, action: Action) -> LinkSets:
        key = (id(action.parents), id(action.needs))
        found = self._shared.get(key)
        if found is None:
            found = self._shared[key] = self._read(action.parents, action.needs)
        return found

    def _read(self, parents: Sequence[str], needs: Sequence[str]) -> LinkSets:
        """Return the sets of parents and needs; parents of a needed join are added to parents."""
        ended, well = set(self._members(parents)), set(self._members(needs))
        for uuid in parents:
            ended.update(self._joins.get(uuid, ()))
        for uuid in needs:
            if uuid in self._joins:
                ended.add(self._joins[uuid].parents)
                well.add(self._joins[uuid].needs)
        return LinkSets(self._one(ended - {_NONE}), self._one(well - {_NONE}))

    def _members(self, uuids: Iterable[str]) -> Iterator[Any]:
        """Yield the number of each action but joins; of a repeated one, with how often it came."""
        times = Counter[int]()
        for uuid in uuids:
            if uuid not in self._joins:
                number = self._numbers[uuid]
                yield (number, times[number]) if times[number] else number
                times[number] += 1

    def _group(self, uuids: tuple[str, ...]) -> Members:
        joins = [self._joins[uuid] for uuid in uuids if uuid in self._joins]
        inside = [self._one((*join.parents, *join.needs)) for join in joins]
        return self._one((*self._members(uuids), *inside))

    def _events(self, pairs: Iterable[Trigger | Blocker]) -> Iterator[Any]:
        for source, outcomes in pairs:
            yield self._group((source,)), tuple(sorted(map(str, outcomes)))

    def _one(self, members: Iterable[Any]) -> Members:
        made = frozenset(members)
        return self._known.setdefault(made, made)


def gained(
    actions: Sequence[tuple[int, LinkSets, LinkSets]], labels: Mapping[int, str]
) -> tuple[LinkSet, ...]:
    """Return the links of actions that are in their first sets and not in their second.

    ``actions`` has the number of each action and its two sets, ``labels`` the label of each number.
    Actions that have the same such links are in one :class:`LinkSet`.
    """
    pairs: dict[tuple[str, Members, Members], list[int]] = {}
    for i, (_, one, other) in enumerate(actions):
        for kind, mine, others in zip(LinkSets._fields, one, other, strict=True):
            if mine != others:
                pairs.setdefault((kind, mine, others), []).append(i)
    found: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[int]] = {}
    for (kind, mine, others), having in pairs.items():
        for before, outcomes in _between(kind, mine, others, labels):
            found.setdefault((kind, before, outcomes), []).extend(having)
    return tuple(
        LinkSet(
            kind=kind,
            before=before,
            after=tuple([labels[actions[i][0]] for i in sorted(having)]),
            outcomes=outcomes,
        )
        for (kind, before, outcomes), having in found.items()
    )


def _between(
    kind: str, one: Members, other: Members, labels: Mapping[int, str]
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield what comes before an action by ``one`` and not by ``other``, and the outcomes."""
    if kind in ("parents", "needs"):
        left = leaves(one - other) - leaves(other)
        if left:
            yield tuple([labels[number] for number in sorted(map(_number, left))]), ()
    elif kind == "needs_any":
        for group in sorted(one - other, key=_place):
            yield _alternatives(group, labels), ()
    else:
        sources: dict[tuple[str, ...], list[Members]] = {}
        for source, outcomes in one - other:
            sources.setdefault(outcomes, []).append(source)
        for outcomes in sorted(sources):
            ordered = sorted(sources[outcomes], key=_place)
            yield tuple([_alternatives(source, labels)[0] for source in ordered]), outcomes


def _alternatives(group: Members, labels: Mapping[int, str]) -> tuple[str, ...]:
    """Return the label of each member of a group; that of a join names its predecessors."""
    found = []
    for member in sorted(group, key=_place):
        if isinstance(member, frozenset):
            names = [labels[number] for number in sorted(map(_number, leaves(member)))]
            more = f" +{len(names) - _NAMED}" if len(names) > _NAMED else ""
            found.append(f"all of {' '.join(names[:_NAMED])}{more}")
        else:
            found.append(labels[_number(member)])
    return tuple(found)


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
