# SPDX-License-Identifier: Apache-2.0
"""The order graph of the open actions of a plan, and the countdown of open predecessors in it.

Joins replace n x m links. Pure; linear in links and in the sizes of the groups.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence

from planner.model import Action


def completed(actions: Sequence[Action], ended: Container[str]) -> frozenset[str]:
    """Return the ended actions all of whose predecessors are completed as well.

    An ended action with an open predecessor is not completed: an operator skipped it early, or a
    predecessor is to run again. It stays in the graph, because its successors must still wait for
    its predecessors. ``actions`` are in schedule order.

    >>> a, b, c = (Action(uuid=u, action_type="nop", parents=p) for u, p in (("a", ()),
    ...            ("b", ("a",)), ("c", ("b",))))
    >>> sorted(completed([a, b, c], {"a", "b"})), sorted(completed([a, b, c], {"b"}))
    (['a', 'b'], [])
    """
    found: set[str] = set()
    for action in actions:
        if action.uuid in ended and found.issuperset(action.before()):
            found.add(action.uuid)
    return frozenset(found)


def links(
    actions: Sequence[Action], gone: frozenset[str] = frozenset(), *, joins: bool = True
) -> dict[str, list[str]]:
    """Map each action that is not in ``gone`` to the names of its successors.

    If several actions share a set of parents or needs, the links go through a join where that saves
    links. Joins are named ``join 0``, ``join 1``, .... So the number of links is linear in the
    number of actions and the sizes of the different sets.

    >>> first = [Action(uuid=u, action_type="nop") for u in "abc"]
    >>> second = [Action(uuid=u, action_type="nop", parents=("a", "b", "c")) for u in "xyz"]
    >>> for name, after in links(first + second).items():
    ...     print(name, after)
    a ['join 0']
    b ['join 0']
    c ['join 0']
    x []
    y []
    z []
    join 0 ['x', 'y', 'z']
    """
    after: dict[str, list[str]] = {a.uuid: [] for a in actions if a.uuid not in gone}
    left = [a for a in actions if a.uuid in after]
    sets = _Sets()
    shared = _join(left, after, sets) if joins else {}
    for action in left:
        for uuid in _through_joins(action, after, sets, shared) if shared else action.before():
            if uuid in after:
                after[uuid].append(action.uuid)
    return after


def _through_joins(
    action: Action, after: dict[str, list[str]], sets: _Sets, shared: _Shared
) -> Sequence[str]:
    """Link an action to the joins of its sets; return the predecessors that no join includes."""
    rest: dict[str, None] = {}
    covered: list[frozenset[str]] = []
    for uuids in (sets.one(action.parents), sets.one(action.needs)):
        if id(uuids) not in shared:
            rest.update(dict.fromkeys(uuids))
            continue
        name, members = shared[id(uuids)]
        if members not in covered:
            after[name].append(action.uuid)
            covered.append(members)
    rest.update((t.action, None) for t in action.triggers)
    for known in covered if rest else ():
        rest = {uuid: None for uuid in rest if uuid not in known}
    return list(rest)


#: Name and members of each join, by the id() of the set that it replaces.
_Shared = dict[int, tuple[str, frozenset[str]]]


class _Sets:
    """Maps equal tuples to one object; each tuple object is read only once."""

    def __init__(self) -> None:
        self._by_value: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._by_identity: dict[int, tuple[str, ...]] = {}

    def one(self, uuids: tuple[str, ...]) -> tuple[str, ...]:
        found = self._by_identity.get(id(uuids))
        if found is None:
            found = self._by_identity[id(uuids)] = self._by_value.setdefault(uuids, uuids)
        return found


def _join(actions: Sequence[Action], after: dict[str, list[str]], sets: _Sets) -> _Shared:
    """Add a join for each set that enough actions share; return the joins by their sets."""
    users: defaultdict[int, int] = defaultdict(int)
    seen: dict[int, tuple[str, ...]] = {}
    for action in actions:
        parents, needs = sets.one(action.parents), sets.one(action.needs)
        for uuids in (parents,) if needs is parents else (parents, needs):
            users[id(uuids)] += 1
            seen[id(uuids)] = uuids
    found: _Shared = {}
    for identity, number in users.items():
        if number == 1:
            continue  # a join of its own saves no links
        uuids = seen[identity]
        members = frozenset(u for u in uuids if u in after)
        if len(members) * number > len(members) + number:
            name = f"join {len(found)}"
            found[identity] = (name, members)
            for uuid in dict.fromkeys(uuids):
                if uuid in members:
                    after[uuid].append(name)
            after[name] = []
    return found


class _Group:
    """A group of alternatives. It is open until one member has succeeded or all have ended."""

    __slots__ = ("left", "open", "waiting")

    def __init__(self, size: int) -> None:
        self.left, self.open = size, True
        self.waiting: list[str] = []


class Countdown:
    """Tracks how many links and groups each name still waits for.

    Like ``graphlib.TopologicalSorter``, but with groups of which one member is enough.

    ``after`` maps each name to its successors. ``alternatives`` maps a name to its groups: it waits
    until one member of each group has succeeded, or all have ended. An empty group is ignored. A
    group that several names share is counted only once.

    >>> countdown = Countdown({"a": ["c"], "b": ["c"], "c": [], "d": []}, {"d": [("a", "b")]})
    >>> countdown.ready(), countdown.done("a"), countdown.done("b")
    (['a', 'b'], ['d'], ['c'])
    """

    def __init__(
        self,
        after: Mapping[str, Sequence[str]],
        alternatives: Mapping[str, Iterable[tuple[str, ...]]],
    ) -> None:
        self._after = after
        self._left = dict.fromkeys(after, 0)
        for names in after.values():
            for name in names:
                self._left[name] += 1
        self._groups: defaultdict[str, list[_Group]] = defaultdict(list)
        known: dict[tuple[str, ...], _Group] = {}
        for name, sets in alternatives.items():
            for members in filter(None, sets):
                if members not in known:
                    known[members] = _Group(len(set(members)))
                    for member in set(members):
                        self._groups[member].append(known[members])
                known[members].waiting.append(name)
                self._left[name] += 1

    def __contains__(self, name: object) -> bool:
        """Return whether a name is in the graph."""
        return name in self._left

    def ready(self) -> list[str]:
        """Return the names that wait for nothing from the beginning."""
        return [name for name, left in self._left.items() if not left]

    def done(self, name: str, well: bool = True) -> list[str]:
        """Record that a name has ended; return the names that became ready by that.

        A name that is not in the graph still counts in the groups that contain it.
        """
        due = self._less(self._after.get(name, ()))
        for group in self._groups.get(name, ()):
            group.left -= 1
            if group.open and (well or not group.left):
                group.open = False
                due += self._less(group.waiting)
        return due

    def _less(self, names: Iterable[str]) -> list[str]:
        left, due = self._left, []
        for name in names:
            left[name] -= 1
            if not left[name]:
                due.append(name)
        return due
