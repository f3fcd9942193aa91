# SPDX-License-Identifier: Apache-2.0
"""The order of moves that server groups of Nova demand, from the groups in the facts.

With the policy ``anti-affinity``, a host takes only so many members of a group, so one that comes
waits until another has left. With ``affinity``, a member moves only to a host that has another one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from planner.plan.graph_algorithms import CycleError, topological_order
from planner.plan.model import Effect, ProposedAction
from planner.planners import document_links

_DELETIONS = frozenset({"delete", "delete_instance"})


class _Move(NamedTuple):
    """An action, by its position, that takes an instance ``off`` a host ``to`` another or away."""

    action: int
    instance: str
    off: str | None
    to: str | None


class _Wait(NamedTuple):
    """``action`` comes to a host once ``earlier`` has left it."""

    action: int
    earlier: int
    why: str


class _Impossible(NamedTuple):
    """The group does not allow ``action``, whatever the order."""

    action: int
    why: str


_Demands = Iterator[_Wait | _Impossible]


def ordered(
    actions: Sequence[ProposedAction], facts: Mapping[str, Mapping[str, Any]]
) -> tuple[list[ProposedAction], list[str]]:
    """Add to actions the needs that server groups demand; warn of moves that cannot be done.

    >>> from planner.plan.model import Touch
    >>> a, b = (
    ...     ProposedAction(
    ...         name=f"move-{name}",
    ...         action_type="migrate",
    ...         touches=(Touch(f"instance:{name}"), Touch(f"node:{to}", Effect.ENTERS)),
    ...     )
    ...     for name, to in {"a": "c2", "b": "c3"}.items()
    ... )
    >>> facts = {"instances": {"a": {"host": "c1"}, "b": {"host": "c2"}},
    ...          "server_groups": {"g": {"policy": "anti-affinity", "members": ["a", "b"]}}}
    >>> [action.needs for action in ordered([a, b], facts)[0]]
    [('move-b',), ()]
    """
    at = {i: fact["host"] for i, fact in facts.get("instances", {}).items() if fact.get("host")}
    moves = defaultdict(list)
    for move in _moves(actions, dict(at)):
        moves[move.instance].append(move)
    demands: list[_Wait | _Impossible] = []
    for known_as, group in facts["server_groups"].items():
        members = dict.fromkeys(group.get("members") or ())
        ours = sorted((m for i in members for m in moves.get(i, ())), key=lambda m: m.action)
        there = {i: at[i] for i in members if i in at}
        name = f"server group {group.get('name') or known_as}"
        if group.get("policy") == "anti-affinity":
            demands += _apart(name, group.get("max_server_per_host") or 1, ours, there)
        elif group.get("policy") == "affinity":
            demands += _together(name, ours, there)
    waits, circular = _without_cycles(actions, [d for d in demands if isinstance(d, _Wait)])
    impossible = [
        f"the cloud will refuse {actions[demand.action].name}: {demand.why}"
        for demand in demands
        if isinstance(demand, _Impossible)
    ]
    return _linked(actions, waits), [*impossible, *circular]


def _moves(actions: Sequence[ProposedAction], at: dict[str, str]) -> Iterator[_Move]:
    """Yield the moves and deletions of instances; ``at`` is where they are, and is changed."""
    for i, action in enumerate(actions):
        entered = (t.resource for t in action.touches if t.effect is Effect.ENTERS)
        to = next(entered, "").partition(":")[2] or None
        if to is None and action.action_type not in _DELETIONS:
            continue
        for kind, _, instance in [touch.resource.partition(":") for touch in action.touches]:
            if kind == "instance" and (off := at.pop(instance, None)) != to:
                yield _Move(i, instance, off, to)
            if kind == "instance" and to:
                at[instance] = to


def _apart(name: str, most: int, moves: Sequence[_Move], there: Mapping[str, str]) -> _Demands:
    """Yield the demands of a group of which each host takes at most so many instances."""
    room = Counter(dict.fromkeys(there.values(), most))
    room.subtract(there.values())
    leaving = defaultdict(list)
    for move in moves:
        leaving[move.off].append(move.action)
    come: Counter[str] = Counter()
    for move in moves:
        if move.to is None:
            continue
        # The first ones take the room that there is, each other one that of one that leaves.
        place = come[move.to] - room.get(move.to, most)
        come[move.to] += 1
        if place < 0:
            continue
        why = f"{name} has at most {most} of its instances on a host"
        if place < len(leaving[move.to]):
            yield _Wait(move.action, leaving[move.to][place], why)
        else:
            yield _Impossible(move.action, f"{why}, and no other leaves {move.to}")


def _together(name: str, moves: Sequence[_Move], there: Mapping[str, str]) -> _Demands:
    """Yield the demands of a group whose instances are on one host."""
    on_host = Counter(there.values())
    for move in moves:
        own = there.get(move.instance)
        others = len(there) - (own is not None)
        if move.to and others and on_host[move.to] == (move.to == own):
            why = f"{name} keeps its instances together, and the others are not on {move.to}"
            yield _Impossible(move.action, why)


def _without_cycles(
    actions: Sequence[ProposedAction], waits: Sequence[_Wait]
) -> tuple[Sequence[_Wait], list[str]]:
    """Return those on no cycle with each other and the document's links, and warnings of others."""
    said = document_links.of(actions)
    before = [list(said.before(i)) for i in range(len(actions))]
    for wait in waits:
        before[wait.action].append(wait.earlier)
    try:
        topological_order([(tuple(earlier),) for earlier in before])
    except CycleError as error:
        cycles = error.components()
    else:
        return waits, []
    cycle_of = {i: number for number, cycle in enumerate(cycles) for i in cycle}
    kept, whys = [], defaultdict[int, dict[str, None]](dict)
    for wait in waits:
        number = cycle_of.get(wait.action)
        if number is None or number != cycle_of.get(wait.earlier):
            kept.append(wait)
        else:
            whys[number][wait.why] = None
    return kept, [
        f"the cloud will refuse one of {', '.join(actions[i].name for i in sorted(cycles[number]))}"
        f": each waits for another to leave its host, and {' and '.join(found)}; move one to "
        "another host first"
        for number, found in whys.items()
    ]


def _linked(actions: Sequence[ProposedAction], waits: Sequence[_Wait]) -> list[ProposedAction]:
    made = list(actions)
    for wait in waits:
        later, earlier = made[wait.action], actions[wait.earlier].name
        if earlier not in later.needs:
            because = {**later.because, earlier: wait.why}
            made[wait.action] = replace(later, needs=(*later.needs, earlier), because=because)
    return made
