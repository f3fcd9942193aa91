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
from typing import NamedTuple

from planner import graph_algorithms
from planner.errors import InvalidPlan, Mistake
from planner.model import JOIN, Action, ActionPlan
from planner.place_rules import HeldPlace


class PlaceWait(NamedTuple):
    """A member that may hold its place while it waits for the place of another.

    ``begins`` is the action with which it begins, ``awaits`` the one for which it then waits.
    """

    holder: HeldPlace
    wanted: HeldPlace
    begins: int
    awaits: int


def require_none(plan: ActionPlan) -> None:
    """Raise InvalidPlan if members may wait for each other's places in a circle.

    An action that is in two members of one group, or in one without a rule and a limit, is refused
    as well. The time is linear where no action of a member comes after another member's, as in all
    plans of our planners; otherwise it is quadratic in the actions that have places.
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
    edges: dict[str, dict[str, PlaceWait]] = defaultdict(dict)
    for wait in () if _only_own_links(actions) else waits(actions):
        edges[wait.holder.token].setdefault(wait.wanted.token, wait)
    tokens = sorted({*edges, *(token for found in edges.values() for token in found)})
    index = {token: i for i, token in enumerate(tokens)}
    before = [[tuple(index[t] for t in edges.get(token, ()))] for token in tokens]
    try:
        graph_algorithms.topological_order(before)
    except graph_algorithms.CycleError as error:
        path = [tokens[i] for i in error.cycles()[0]]
        found = [edges[one][other] for one in path for other in path if other in edges[one]]
        text = "; ".join(_text(wait, actions) for wait in found)
        raise InvalidPlan([Mistake(f"a deadlock: {text}")]) from error


def _text(wait: PlaceWait, actions: Sequence[Action]) -> str:
    holder, wanted = wait.holder, wait.wanted
    return (
        f"{holder.member} holds {holder.token} from {actions[wait.begins].label} on, and waits for "
        f"{actions[wait.awaits].label}, which needs {wanted.token} for {wanted.member}"
    )


def linked(actions: Sequence[Action], new_id: Callable[[], str]) -> list[Action]:
    """Return actions in whose order no member of a group begins before what it waits for there.

    The first actions of a member come after all for which it would wait, of other members of the
    same group, while it holds its place. Several of these are joined. The result is in topological
    order. Raises InvalidPlan with the path if members wait for each other.
    """
    if _only_own_links(actions):
        return list(actions)
    awaited: defaultdict[int, dict[int, PlaceWait]] = defaultdict(dict)
    for wait in waits(actions):
        if wait.holder.token == wait.wanted.token:
            awaited[wait.begins][wait.awaits] = wait
    before = [[tuple(g) for g in groups] for groups in _before(actions)]
    _refuse_cycles(actions, before, awaited)
    made, last = list(actions), _last_of(before, awaited)
    joins: dict[tuple[int, ...], str] = {}
    for begins, ends in last.items():
        token = next(iter(awaited[begins].values())).holder.token
        if len(ends) == 1:
            comes_after = actions[ends[0]].uuid
        else:
            if ends not in joins:
                join = Action(
                    uuid=new_id(),
                    name=f"join/{token}/{len(joins) + 1}",
                    action_type=JOIN,
                    parents=tuple([actions[i].uuid for i in ends]),
                    reason=f"comes before nodes that wait for all of these, by {token}",
                )
                joins[ends] = join.uuid
                made.append(join)
            comes_after = joins[ends]
        action = actions[begins]
        why = f"{token}: what it waits for has ended"
        made[begins] = replace(
            action,
            parents=(*action.parents, comes_after),
            reason=f"{action.reason}; {why}" if action.reason else why,
        )
    return [made[i] for i in graph_algorithms.topological_order(_before(made))]


def _last_of(
    before: Sequence[Sequence[tuple[int, ...]]], awaited: Mapping[int, Mapping[int, PlaceWait]]
) -> dict[int, tuple[int, ...]]:
    """Return what is awaited without what comes before other parts of it, by first action."""
    found: dict[int, tuple[int, ...]] = {}
    shared: dict[frozenset[int], tuple[int, ...]] = {}
    for begins, ends in awaited.items():
        key = frozenset(ends)
        if key not in shared:
            direct = {j for i in key for group in before[i] for j in group}
            shared[key] = tuple(sorted(key - direct))
        found[begins] = shared[key]
    return found


def _refuse_cycles(
    actions: Sequence[Action],
    before: Sequence[Sequence[tuple[int, ...]]],
    awaited: Mapping[int, Mapping[int, PlaceWait]],
) -> None:
    """Raise InvalidPlan if members of one group wait for each other."""
    with_waits = [[*groups, tuple(awaited.get(i, ()))] for i, groups in enumerate(before)]
    try:
        graph_algorithms.topological_order(with_waits)
    except graph_algorithms.CycleError as error:
        path = error.cycles()[0]
        steps = zip(path, [*path[1:], path[0]], strict=True)
        found = [awaited[after][i] for i, after in steps if i in awaited.get(after, ())]
        text = "; ".join(_text(wait, actions) for wait in found)
        raise InvalidPlan([Mistake(f"so many at a time are impossible: {text}")]) from error


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
    """Return the positions of what comes before each action, in groups that several share."""
    position = {action.uuid: i for i, action in enumerate(actions)}
    # By identity, and with the texts, so that no other tuple gets their identity.
    shared: dict[int, tuple[tuple[str, ...], tuple[int, ...]]] = {}

    def positions(uuids: tuple[str, ...]) -> tuple[int, ...]:
        if id(uuids) not in shared:
            shared[id(uuids)] = uuids, tuple([position[uuid] for uuid in uuids])
        return shared[id(uuids)][1]

    return [[positions(g) for g in (a.before(), *a.needs_any) if g] for a in actions]


def waits(actions: Sequence[Action]) -> list[PlaceWait]:
    """List the waits of a plan, by each action with which a member may begin."""
    before = _before(actions)
    members: defaultdict[HeldPlace, list[int]] = defaultdict(list)
    for i, action in enumerate(actions):
        for place in action.places:
            members[place].append(i)
    # Sets of actions are integers, one bit for each action that has places.
    bit = {i: 1 << k for k, i in enumerate(i for i, a in enumerate(actions) if a.places)}
    positions = list(bit)
    # What has certainly ended when an action starts, and what it may have to wait for besides.
    ancestors, awaited = [0] * len(actions), [0] * len(actions)
    for i in graph_algorithms.topological_order(before):
        groups = (actions[i].before(), *actions[i].needs_any)
        for k, group in enumerate(before[i]):
            certain = bool(groups[0]) and not k
            for j in group:
                awaited[i] |= awaited[j] | bit.get(j, 0)
                if certain:
                    ancestors[i] |= ancestors[j] | bit.get(j, 0)
    found: list[PlaceWait] = []
    for holder, own in members.items():
        needed = all_own = 0
        for i in own:
            needed |= awaited[i] | bit[i]
            all_own |= bit[i]
        alike = all_own if len({actions[i].places for i in own}) == 1 else 0
        for x in own:
            if ancestors[x] & all_own:
                continue  # another begins
            for b in _positions(needed & ~ancestors[x] & ~alike, positions):
                for wanted in actions[b].places:
                    if wanted != holder and wanted not in actions[x].places:
                        found.append(PlaceWait(holder, wanted, x, b))
    return found


def _positions(bits: int, positions: Sequence[int]) -> Iterator[int]:
    while bits:
        low = bits & -bits
        yield positions[low.bit_length() - 1]
        bits ^= low
