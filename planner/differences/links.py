# SPDX-License-Identifier: Apache-2.0
"""The links of actions as sets, by which two plans are compared, and the links gained and lost.

The members of a set are numbers of actions; joins are replaced by their predecessors. Equal sets
are one object, and what many actions have in common is compared once: the time is linear in actions
and links, where joins do not follow joins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from planner.plan.graph_algorithms import once, topological_order
from planner.plan.model import JOIN, Action, Blocker, Trigger

#: A set of action numbers, and of pairs (number, how often it was a link before). In a group of
#: ``needs_any``, a set within it stands for a join. Of triggers and blockers, a set of pairs: such
#: a group, which is the source, and the outcomes.
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

    ``kind`` is the field of an action that has them. With ``needs_any`` they are one link to a
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
        self._joins: dict[str, LinkSets] = {}
        joins = [action for action in actions if is_join(action)]
        place = {join.uuid: i for i, join in enumerate(joins)}
        ahead = [[[place[u] for u in (*j.parents, *j.needs) if u in place]] for j in joins]
        for i in topological_order(ahead):
            self._joins[joins[i].uuid] = self.links(joins[i])

    def links(self, action: Action) -> LinkSets:
        """Return the links of an action."""
        key = (id(action.parents), id(action.needs))
        found = self._shared.get(key)
        if found is None:
            found = self._shared[key] = self._read(action.parents, action.needs)
        if not (action.needs_any or action.triggers or action.blocked_by):
            return found
        return found._replace(
            needs_any=self._one(map(self._shared_group, action.needs_any)),
            triggers=self._one(self._events(action.triggers)),
            blocked_by=self._one(self._events(action.blocked_by)),
        )

    def _read(self, parents: Sequence[str], needs: Sequence[str]) -> LinkSets:
        """Return the sets of parents and needs; parents of a needed join are added to parents."""
        ended, well = set(self._members(parents)), set(self._members(needs))
        for uuid in parents:
            ended.update(*self._joins.get(uuid, ()))
        for uuid in needs:
            if uuid in self._joins:
                ended |= self._joins[uuid].parents
                well |= self._joins[uuid].needs
        return LinkSets(self._one(ended), self._one(well))

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
        return self._one((*self._members(uuids), *(join.parents | join.needs for join in joins)))

    def _events(self, pairs: Iterable[Trigger | Blocker]) -> Iterator[Any]:
        for source, outcomes in pairs:
            yield self._group((source,)), tuple(sorted(map(str, outcomes)))

    def _one(self, members: Iterable[Any]) -> Members:
        made = frozenset(members)
        return self._known.setdefault(made, made)


def gained(
    actions: Iterable[tuple[int, int, LinkSets, LinkSets]], labels: Mapping[int, str]
) -> tuple[LinkSet, ...]:
    """Return the links of actions that are in their first sets and not in their second.

    ``actions`` has the place of each action in its plan, its number and its two sets, ``labels``
    the label of each number. Actions that have the same such links are in one :class:`LinkSet`.
    """
    having: dict[tuple[str, Members, Members], list[tuple[int, str]]] = {}
    for place, number, one, other in sorted(actions, key=lambda action: action[0]):
        for kind, mine, others in zip(LinkSets._fields, one, other, strict=True):
            if mine != others:
                having.setdefault((kind, mine, others), []).append((place, labels[number]))
    found: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[tuple[int, str]]] = {}
    for (kind, mine, others), after in having.items():
        for before, outcomes in _between(kind, mine - others, labels):
            found.setdefault((kind, before, outcomes), []).extend(after)
    return tuple(
        LinkSet(
            kind=kind,
            before=before,
            after=tuple([label for _, label in sorted(after)]),
            outcomes=outcomes,
        )
        for (kind, before, outcomes), after in found.items()
    )


def _between(
    kind: str, gained_members: Members, labels: Mapping[int, str]
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield what comes before an action by these members, by its labels, and the outcomes."""
    ordered = sorted(gained_members, key=_numbers)
    if kind in ("parents", "needs"):
        if ordered:
            yield _labels(gained_members, labels), ()
    elif kind == "needs_any":
        for group in ordered:
            yield _labels(group, labels), ()
    else:
        sources: dict[tuple[str, ...], list[str]] = {}
        for source, outcomes in ordered:
            sources.setdefault(outcomes, []).append(_labels(source, labels)[0])
        for outcomes in sorted(sources):
            yield tuple(sources[outcomes]), outcomes


def _labels(members: Members, labels: Mapping[int, str]) -> tuple[str, ...]:
    """Return the label of each member; that of a join names its predecessors."""
    found = []
    for member in sorted(members, key=_numbers):
        names = [labels[number] for number in _numbers(member)]
        more = f" +{len(names) - _NAMED}" if len(names) > _NAMED else ""
        is_set = isinstance(member, frozenset)
        found.append(f"all of {' '.join(names[:_NAMED])}{more}" if is_set else names[0])
    return tuple(found)


def _numbers(member: Any) -> list[int]:
    """Return the numbers of the actions in a member, ascending; members are sorted by them."""
    match member:
        case frozenset():
            return sorted(number for inner in member for number in _numbers(inner))
        case frozenset() as source, _:
            return _numbers(source)
        case number, _:
            return [number]
    return [member]
