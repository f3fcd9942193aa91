# SPDX-License-Identifier: Apache-2.0
"""Orders or refuses plans in which nodes could wait for each other's places for ever.

A member of a group, usually a node, holds its place from the start of its first action to the end
of its last one. Member ``g`` of a group *may wait for* a place of a group Q while it holds its own,
if an action ``b`` of a member ``h`` of Q comes before an action of ``g`` (or is one), and ``g`` can
begin with an action ``x`` before ``b`` has ended and before ``h`` has begun. If no group may wait
for itself through others, nor for itself alone, a plan never gets stuck.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from planner.errors import InvalidPlan, Mistake
from planner.plan import graph_algorithms
from planner.plan.model import JOIN, Action, ActionPlan
from planner.plan.place_rules import HeldPlace


def require_none(plan: ActionPlan) -> None:
    """Raise InvalidPlan if members may wait for each other's places in a circle.

    An action that is in two members of one group, or in one without a rule and a limit, is refused
    as well. The time is linear where no action of a member comes after another member's; otherwise
    it is quadratic in the actions that have places, by 64 of them at once.
    """
    actions = plan.actions
    if not any(action.places for action in actions):
        return
    known = plan.places.keys() & plan.limits.keys()
    unknown = [
        Mistake(f"{token} has no rule or no limit in the plan", ("actions", i, "places", k))
        for i, action in enumerate(actions)
        for k, (token, _) in enumerate(action.places)
        if token not in known
    ]
    if unknown:
        raise InvalidPlan(unknown)
    twice = [
        Mistake(f"{action.label} is in two members of {action.places[0].token}", ("actions", i))
        for i, action in enumerate(actions)
        if len({place.token for place in action.places}) < len(action.places)
    ]
    if twice:
        raise InvalidPlan(twice)
    if _only_own_links(actions):
        return
    waits = PlaceWaits(actions)
    edges: dict[str, dict[str, PlaceWait]] = defaultdict(dict)
    for wait in waits:
        edges[wait.holder.token].setdefault(wait.token, wait)
    tokens = sorted({*edges, *(token for found in edges.values() for token in found)})
    index = {token: i for i, token in enumerate(tokens)}
    before = [[tuple(index[t] for t in edges.get(token, ()))] for token in tokens]
    try:
        graph_algorithms.topological_order(before)
    except graph_algorithms.CycleError as error:
        path = [tokens[i] for i in error.cycles()[0]]
        found = [edges[one][other] for one in path for other in path if other in edges[one]]
        text = "; ".join(waits.text(wait) for wait in found)
        raise InvalidPlan([Mistake(f"a deadlock: {text}")]) from error


class PlaceWait(NamedTuple):
    """A member that may hold its place while it waits for places of other members.

    ``begins`` is the action with which it begins, ``token`` that of the other places, and
    ``awaits`` is the set of actions for which it may then wait there.
    """

    holder: HeldPlace
    begins: int
    token: str
    awaits: int


class PlaceWaits:
    """The waits of actions, by each with which a member may begin. Sets of actions are integers.

    Of these, bit k stands for the k-th action that has places.
    """

    def __init__(self, actions: Sequence[Action]) -> None:
        self._actions, self.before = actions, _before(actions)
        self._held = [i for i, action in enumerate(actions) if action.places]
        self._bit = {i: 1 << k for k, i in enumerate(self._held)}
        self._members: defaultdict[HeldPlace, list[int]] = defaultdict(list)
        self._of_member: defaultdict[HeldPlace, int] = defaultdict(int)
        self._of_token: defaultdict[str, int] = defaultdict(int)
        for i, bit in self._bit.items():
            for place in actions[i].places:
                self._members[place].append(i)
                self._of_member[place] |= bit
                self._of_token[place.token] |= bit
        # What has certainly ended when an action starts, and what it may have to wait for besides.
        self._ended, self._awaited = [0] * len(actions), [0] * len(actions)
        for i in graph_algorithms.topological_order(self.before):
            for k, group in enumerate(self.before[i]):
                for j in group:
                    self._awaited[i] |= self._awaited[j] | self._bit.get(j, 0)
                    if not k:
                        self._ended[i] |= self._ended[j] | self._bit.get(j, 0)

    def __iter__(self) -> Iterator[PlaceWait]:
        """Yield the waits, at most one for each member, action to begin with, and token."""
        for holder, own in self._members.items():
            needed = mine = self._of_member[holder]
            for i in own:
                needed |= self._awaited[i]
            for begins in own:
                if self._ended[begins] & mine:
                    continue  # another begins
                places = dict(self._actions[begins].places)
                for token, bits in self._of_token.items():
                    awaits = needed & bits & ~self._ended[begins]
                    if token in places:
                        awaits &= ~self._of_member[HeldPlace(token, places[token])]
                    if awaits:
                        yield PlaceWait(holder, begins, token, awaits)

    def has(self, bits: int, i: int) -> bool:
        """Return whether an action is in a set."""
        return bool(bits & self._bit.get(i, 0))

    def last(self, bits: int) -> tuple[int, ...]:
        """Return the actions of a set without those that have ended when others of it start."""
        ended = 0
        for i in self._positions(bits):
            ended |= self._ended[i]
        return tuple(self._positions(bits & ~ended))

    def text(self, wait: PlaceWait, awaits: int | None = None) -> str:
        """Say who waits for what; ``awaits`` is the action to name, else the first."""
        i = next(self._positions(wait.awaits)) if awaits is None else awaits
        action, holder = self._actions[i], wait.holder
        waits = next(k for k in self._members[holder] if k == i or self.has(self._awaited[k], i))
        before = "" if waits == i else f" before {self._actions[waits].label}"
        return (
            f"{holder.member} holds {holder.token} from {self._actions[wait.begins].label} on, and "
            f"waits{before} for {action.label}, which needs {wait.token} for "
            f"{dict(action.places)[wait.token]}"
        )

    def _positions(self, bits: int) -> Iterator[int]:
        while bits:
            low = bits & -bits
            yield self._held[low.bit_length() - 1]
            bits ^= low


def linked(actions: Sequence[Action], new_id: Callable[[], str]) -> list[Action]:
    """Return actions in whose order no member of a group begins before what it waits for there.

    The first actions of a member come after all for which it would wait, of other members of the
    same group, while it holds its place. Several of these are joined. Actions and links are in
    topological order. Raises InvalidPlan with the path if members wait for each other.
    """
    if _only_own_links(actions):
        return list(actions)
    waits = PlaceWaits(actions)
    own: defaultdict[int, list[PlaceWait]] = defaultdict(list)
    for wait in waits:
        if wait.holder.token == wait.token:
            own[wait.begins].append(wait)
    shared: dict[int, tuple[int, ...]] = {}
    ends: dict[int, tuple[int, ...]] = {}
    for begins, found in own.items():
        bits = 0
        for wait in found:
            bits |= wait.awaits
        if bits not in shared:
            shared[bits] = waits.last(bits)
        ends[begins] = shared[bits]
    _refuse_cycles(waits, own, ends)
    made = list(actions)
    joins: dict[tuple[int, ...], str] = {}
    for begins, last in ends.items():
        token = own[begins][0].token
        if last not in joins and len(last) == 1:
            joins[last] = actions[last[0]].uuid
        elif last not in joins:
            join = Action(
                uuid=new_id(),
                name=f"join/{token}/{len(joins) + 1}",
                action_type=JOIN,
                parents=tuple([actions[i].uuid for i in last]),
                reason=f"comes before nodes that wait for all of these, by {token}",
            )
            joins[last] = join.uuid
            made.append(join)
        action = actions[begins]
        why = f"{token}: what it waits for has ended"
        made[begins] = replace(
            action,
            parents=(*action.parents, joins[last]),
            reason=f"{action.reason}; {why}" if action.reason else why,
        )
    return _in_order(made)


def _refuse_cycles(
    waits: PlaceWaits,
    own: Mapping[int, Sequence[PlaceWait]],
    ends: Mapping[int, tuple[int, ...]],
) -> None:
    """Raise InvalidPlan if members of one group wait for each other."""
    with_ends = [[*groups, ends.get(i, ())] for i, groups in enumerate(waits.before)]
    try:
        graph_algorithms.topological_order(with_ends)
    except graph_algorithms.CycleError as error:
        path = error.cycles()[0]
        steps = zip(path, [*path[1:], path[0]], strict=True)
        text = "; ".join(
            next(waits.text(wait, i) for wait in own[after] if waits.has(wait.awaits, i))
            for i, after in steps
            if i in ends.get(after, ())
        )
        told = f"nodes wait for each other while they hold places: {text}"
        raise InvalidPlan([Mistake(told)]) from error


def _in_order(actions: Sequence[Action]) -> list[Action]:
    """Return actions, and the links of each, in topological order."""
    ordered = [actions[i] for i in graph_algorithms.topological_order(_before(actions))]
    place = {action.uuid: i for i, action in enumerate(ordered)}

    @cache
    def in_order(uuids: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(sorted(uuids, key=place.__getitem__))

    return [
        replace(
            action,
            parents=in_order(action.parents),
            needs=in_order(action.needs),
            needs_any=tuple([in_order(group) for group in action.needs_any]),
        )
        for action in ordered
    ]


#: Stands for the places of more than one member.
_SEVERAL = (HeldPlace("", ""),)


def _only_own_links(actions: Sequence[Action]) -> bool:
    """Return whether what comes before each action of a member has its places or none.

    All actions of a member must have the same places. Then nothing waits for another member.
    O(actions and links), each shared group once.
    """
    of_member: dict[HeldPlace, tuple[HeldPlace, ...]] = {}
    if any(of_member.setdefault(p, a.places) != a.places for a in actions for p in a.places):
        return False
    before = _before(actions)
    came: list[tuple[HeldPlace, ...]] = [()] * len(actions)
    of_group: dict[int, tuple[HeldPlace, ...]] = {}
    for i in graph_algorithms.topological_order(before):
        for group in before[i]:
            if id(group) not in of_group:
                of_group[id(group)] = _one_of(came[j] for j in group)
            came[i] = _one_of((came[i], of_group[id(group)]))
        mine = actions[i].places
        if mine:
            if came[i] not in ((), mine):
                return False
            came[i] = mine
    return True


def _one_of(found: Iterable[tuple[HeldPlace, ...]]) -> tuple[HeldPlace, ...]:
    """Return the only places among several, besides none; _SEVERAL if they differ."""
    different = {places for places in found if places}
    return _SEVERAL if len(different) > 1 else next(iter(different), ())


def _before(actions: Sequence[Action]) -> list[list[tuple[int, ...]]]:
    """Return the positions of what comes before each action, in groups that several share.

    Of the first group all come before it, of each other group one.
    """
    position = {action.uuid: i for i, action in enumerate(actions)}

    def positions(uuids: tuple[str, ...]) -> tuple[int, ...]:
        return tuple([position[uuid] for uuid in uuids])

    shared = graph_algorithms.once(positions)
    return [[shared(g) for g in (a.before(), *a.needs_any)] for a in actions]
