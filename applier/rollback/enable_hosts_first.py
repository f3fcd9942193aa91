"""Hosts are enabled before moves go back onto them: what going backwards alone gets wrong. Pure.

A host is disabled, then emptied. Backwards, last first, it would be filled, then enabled, and a
host that is disabled takes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from planner.graph_algorithms import topological_order
from planner.model import Action, Effect, Touch


def enabled_first(
    actions: Sequence[Action], touches: Mapping[str, Sequence[Touch]]
) -> tuple[Action, ...]:
    """Let what enables a host come right before the moves onto it that it came after.

    ``actions`` stand in an order that their links allow; ``touches`` go by uuid. What enables then
    waits for all that those moves wait for, and they need it. Linear in links, times the number of
    hosts that are enabled too late, 64 at a time. Raises
    :class:`planner.graph_algorithms.CycleError` where hosts stand in each other's way.
    """
    bits = {a.uuid: 1 << i for i, a in enumerate(a for a in actions if _enables(a, touches))}
    late = _late(actions, touches, bits)
    if not late:
        return tuple(actions)
    known = {action.uuid: action for action in actions}
    after = _after(actions, late, bits)
    changed: dict[str, Action] = {}
    for uuid, moves in late.items():
        bit = bits[uuid]
        own, waits = known[uuid], (u for move in moves for u in known[move].before())
        needs = tuple(u for u in own.needs if not after[u] & bit)
        order = dict.fromkeys(u for u in (*own.parents, *waits) if not after[u] & bit)
        parents = tuple(u for u in order if u not in needs)
        changed[uuid] = replace(own, needs=needs, parents=parents)
    for uuid, moves in late.items():
        for move in moves:
            own = changed.get(move, known[move])
            parents = tuple(u for u in own.parents if u != uuid)
            changed[move] = replace(own, parents=parents, needs=(*own.needs, uuid))
    found = [changed.get(action.uuid, action) for action in actions]
    position = {action.uuid: i for i, action in enumerate(found)}
    links = [[tuple(position[u] for u in action.before())] for action in found]
    return tuple(found[i] for i in topological_order(links))


def _enables(action: Action, touches: Mapping[str, Sequence[Touch]]) -> bool:
    return any(t.effect is Effect.ENABLES for t in touches.get(action.uuid, ()))


def _late(
    actions: Sequence[Action], touches: Mapping[str, Sequence[Touch]], bits: Mapping[str, int]
) -> dict[str, list[str]]:
    """Give for each that enables a host the moves onto that host that lead to it."""
    if not bits:
        return {}
    hosts: dict[str, int] = {}
    for uuid, bit in bits.items():
        for resource, effect in touches[uuid]:
            if effect is Effect.ENABLES:
                hosts[resource] = hosts.get(resource, 0) | bit
    uuid_of = {bit: uuid for uuid, bit in bits.items()}
    leads: dict[str, int] = dict.fromkeys((a.uuid for a in actions), 0)
    late: dict[str, list[str]] = {}
    for action in reversed(actions):
        found = leads[action.uuid]
        for resource, effect in touches.get(action.uuid, ()):
            if effect is Effect.ENTERS:
                for bit in _single(found & hosts.get(resource, 0)):
                    late.setdefault(uuid_of[bit], []).append(action.uuid)
        for before in action.before():
            leads[before] |= found | bits.get(action.uuid, 0)
    return late


def _after(
    actions: Sequence[Action], late: Mapping[str, Sequence[str]], bits: Mapping[str, int]
) -> dict[str, int]:
    """Give for each action the bits of those whose moves it is, or comes after."""
    after: dict[str, int] = {}
    for uuid, moves in late.items():
        for move in moves:
            after[move] = after.get(move, 0) | bits[uuid]
    for action in actions:
        found = after.get(action.uuid, 0)
        for before in action.before():
            found |= after[before]
        after[action.uuid] = found
    return after


def _single(bits: int) -> Iterable[int]:
    while bits:
        lowest = bits & -bits
        yield lowest
        bits ^= lowest
