# SPDX-License-Identifier: Apache-2.0
"""Refuses plans in which nodes could wait for each other's places for ever.

A member of a group, usually a node, holds its place from the start of its first action to the end
of its last one. Member ``g`` of a group *may wait for* a place of a group Q while it holds its own,
if an action ``b`` of a member ``h`` of Q comes before an action of ``g`` (or is one), and ``g`` can
begin with an action ``x`` before ``b`` has ended and before ``h`` has begun. If no group may wait
for itself through others, nor for itself alone, a plan never gets stuck.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from planner import graph_algorithms
from planner.errors import InvalidPlan, Mistake
from planner.model import Action, ActionPlan
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


def _only_own_links(actions: Sequence[Action]) -> bool:
    """Return whether what comes before an action with places has the same places, or none at all.

    What has none must not come after anything that has some.
    """
    places = {action.uuid: action.places for action in actions}
    for action in actions:
        groups = (action.before(), *action.needs_any)
        if any(places[uuid] not in ((), action.places) for uuids in groups for uuid in uuids):
            return False
        if not action.places and any(places[uuid] for uuids in groups for uuid in uuids):
            return False
    return True


def waits(actions: Sequence[Action]) -> list[PlaceWait]:
    """List the waits of a plan, one for each pair of members and action to begin with."""
    position = {action.uuid: i for i, action in enumerate(actions)}
    before = [
        [
            tuple([position[uuid] for uuid in group])
            for group in (action.before(), *action.needs_any)
        ]
        for action in actions
    ]
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
        for k, group in enumerate(before[i]):
            for j in group:
                awaited[i] |= awaited[j] | bit.get(j, 0)
                if not k:
                    ancestors[i] |= ancestors[j] | bit.get(j, 0)
    found: list[PlaceWait] = []
    for holder, own in members.items():
        needed = 0
        for i in own:
            needed |= awaited[i] | bit[i]
        for x in own:
            for b in _positions(needed & ~ancestors[x], positions):
                for wanted in actions[b].places:
                    if wanted != holder and wanted not in actions[x].places:
                        found.append(PlaceWait(holder, wanted, x, b))
    return found


def _positions(bits: int, positions: Sequence[int]) -> Iterator[int]:
    while bits:
        low = bits & -bits
        yield positions[low.bit_length() - 1]
        bits ^= low
