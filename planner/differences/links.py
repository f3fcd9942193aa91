# SPDX-License-Identifier: Apache-2.0
"""The links of actions as sets that two plans can be compared by, with joins seen through.

The members of a set are numbers of actions. What a join waits for is a set within the set, so that
n actions before m actions cost n + m members. Equal sets are one object.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from planner.model import JOIN, Action, Blocker, Trigger

#: Of numbers, of pairs of a number and how often it was there before, and of such sets.
Members = frozenset[Any]
_NONE: Members = frozenset()


class LinkSets(NamedTuple):
    """The links of one action by kind; what is in ``parents`` must have ended."""

    parents: Members = _NONE
    needs: Members = _NONE
    needs_any: Members = _NONE
    triggers: Members = _NONE
    blocked_by: Members = _NONE


def is_join(action: Action) -> bool:
    """Return whether an action is seen through: a join with nothing but parents and needs."""
    links = (action.needs_any, action.triggers, action.blocked_by)
    return action.action_type == JOIN and not any(links)


class LinkReader:
    """Reads the links of the actions of a plan; ``known`` is shared by the readers of two plans.

    ``numbers`` are the numbers of the actions by uuid. Joins have none.
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
        """Read parents and needs: what a join only waits for need not succeed."""
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
        """Yield the number of each action; one that is there again with how often it was."""
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
