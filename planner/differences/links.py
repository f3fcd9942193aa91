# SPDX-License-Identifier: Apache-2.0
"""The links of actions as sets, by which two plans are compared, without joins.

The members of a set are numbers of actions. A join is replaced by a set within the set, which has
the predecessors of the join, so that n actions before m actions take n + m members. Equal sets are
one object.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from planner.model import JOIN, Action, Blocker, Trigger

#: A set of action numbers, of such sets, and of pairs (number, how often it was a link before).
Members = frozenset[Any]
_NONE: Members = frozenset()


class LinkSets(NamedTuple):
    """The links of one action by kind; actions in ``parents`` must have ended, but may have failed.

    Those in ``needs`` must have succeeded.
    """

    parents: Members = _NONE
    needs: Members = _NONE
    needs_any: Members = _NONE
    triggers: Members = _NONE
    blocked_by: Members = _NONE


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
        self._joins = {action.uuid: action for action in actions if is_join(action)}
        self._behind: dict[str, LinkSets] = {}
        # The tuples are those of actions that outlive the reader, so their ids are unique.
        self._shared: dict[tuple[int, ...], Any] = {}

    def links(self, action: Action) -> LinkSets:
        """Return the links of an action."""
        plain = self._plain(action)
        if not (action.needs_any or action.triggers or action.blocked_by):
            return plain
        groups = (self._shared_group(group) for group in action.needs_any)
        return plain._replace(
            needs_any=self._one(groups),
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
            if uuid in self._joins:
                ended.update(self._behind_join(uuid))
        for uuid in needs:
            if uuid in self._joins:
                behind = self._behind_join(uuid)
                ended.add(behind.parents)
                well.add(behind.needs)
        return LinkSets(self._one(ended - {_NONE}), self._one(well - {_NONE}))

    def _behind_join(self, uuid: str) -> LinkSets:
        stack = [] if uuid in self._behind else [uuid]
        while stack:
            join = self._joins[stack[-1]]
            ahead = (*join.parents, *join.needs)
            left = [u for u in ahead if u in self._joins and u not in self._behind]
            if left:
                stack += left
            else:
                self._behind.setdefault(join.uuid, self._plain(join))
                stack.pop()
        return self._behind[uuid]

    def _members(self, uuids: Iterable[str]) -> Iterator[Any]:
        """Yield the number of each action but joins; of a repeated one, with how often it came."""
        times = Counter[int]()
        for uuid in uuids:
            if uuid not in self._joins:
                number = self._numbers[uuid]
                yield (number, times[number]) if times[number] else number
                times[number] += 1

    def _shared_group(self, uuids: tuple[str, ...]) -> Members:
        found = self._shared.get((id(uuids),))
        if found is None:
            found = self._shared[id(uuids),] = self._group(uuids)
        return found

    def _group(self, uuids: Sequence[str]) -> Members:
        joins = [self._behind_join(uuid) for uuid in uuids if uuid in self._joins]
        inside = [self._one((*join.parents, *join.needs)) for join in joins]
        return self._one((*self._members(uuids), *inside))

    def _events(self, pairs: Iterable[Trigger | Blocker]) -> Iterator[Any]:
        for source, outcomes in pairs:
            yield self._group((source,)), tuple(sorted(map(str, outcomes)))

    def _one(self, members: Iterable[Any]) -> Members:
        made = frozenset(members)
        return self._known.setdefault(made, made)
