"""When does one action need another: one row per pair of effects on the same resource.

``parents`` say in which order a planner wants things; ``needs`` say what makes no sense unless
something else ended well. The table is the whole rule; planners hand in what each action touches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from planner.graph import Loop, arrange, knots
from planner.model import Effect, Touch

#: Resources that only one action may work on at a time.
SINGLE = frozenset({"instance", "volume"})
#: Resources that others stand on.
PLACES = frozenset({"node"})


class Pair(NamedTuple):
    """What has the effect ``needing`` on a resource needs what has the effect ``needed`` on it.

    ``kinds`` are the kinds of resources for which it holds. With ``in_order`` the two effects may
    come either way round, and each action needs the one scheduled before it.
    """

    needed: Effect
    needing: Effect
    kinds: frozenset[str]
    why: str
    in_order: bool = False


PAIRS = (
    Pair(Effect.USES, Effect.USES, SINGLE, "one action at a time on {resource}", in_order=True),
    Pair(Effect.LEAVES, Effect.TAKES_DOWN, PLACES, "{resource} goes away after moves off it"),
    Pair(Effect.ENTERS, Effect.TAKES_DOWN, PLACES, "{resource} goes away after moves onto it"),
    Pair(Effect.USES, Effect.TAKES_DOWN, PLACES, "{resource} goes away after work on it"),
    Pair(Effect.BRINGS_UP, Effect.ENTERS, PLACES, "{resource} comes up before moves onto it"),
    Pair(Effect.DISABLES, Effect.LEAVES, PLACES, "{resource} is disabled before moves off it"),
    Pair(Effect.LEAVES, Effect.ENABLES, PLACES, "{resource} is enabled after moves off it"),
    Pair(Effect.DISABLES, Effect.ENABLES, PLACES, "one switch of {resource} at a time", True),
    Pair(Effect.TAKES_DOWN, Effect.BRINGS_UP, PLACES, "one switch of {resource} at a time", True),
)


class Need(NamedTuple):
    """All of ``needing`` need all of ``needed``; positions in schedule order."""

    needed: tuple[int, ...]
    needing: tuple[int, ...]
    why: str


class Dropped(NamedTuple):
    """A need that cannot be had: ``needing`` must come before ``needed`` for another reason."""

    needed: int
    needing: int
    why: str


def find(touches: Sequence[Sequence[Touch]]) -> list[Need]:
    """Apply the table to what the actions touch, in schedule order.

    >>> away = [Touch("node:c1", Effect.TAKES_DOWN)]
    >>> move = [Touch("instance:i1"), Touch("node:c1", Effect.LEAVES)]
    >>> [(n.needed, n.needing) for n in find([away, move, move])]
    [((1, 2), (0,)), ((1,), (2,))]
    """
    who: dict[str, dict[Effect, list[int]]] = defaultdict(dict)
    for i, touched in enumerate(touches):
        for resource, effect in touched:
            who[resource].setdefault(effect, []).append(i)
    needs = []
    for resource, by_effect in who.items():
        kind = resource.partition(":")[0]
        for pair in PAIRS:
            if kind in pair.kinds and pair.needed in by_effect and pair.needing in by_effect:
                why = pair.why.format(resource=resource)
                needs += _apply(pair, by_effect[pair.needed], by_effect[pair.needing], why)
    return needs


def _apply(pair: Pair, needed: list[int], needing: list[int], why: str) -> list[Need]:
    if pair.in_order:
        line = sorted({*needed, *needing})
        return [Need((a,), (b,), why) for a, b in pairwise(line)]
    if set(needed).isdisjoint(needing):
        return [Need(tuple(needed), tuple(needing), why)]
    return [Need(tuple(a for a in needed if a != b), (b,), why) for b in needing]


def located(touches: Sequence[Touch], facts: Mapping[str, Mapping[str, Any]]) -> Sequence[Touch]:
    """Add the node that an instance is on, where ``facts`` know it and the action names none.

    >>> facts = {"instances": {"i1": {"host": "c1"}}}
    >>> located([Touch("instance:i1")], facts)[1].resource
    'node:c1'
    """
    instances = facts.get("instances") or {}
    if not instances or any(t.resource.startswith("node:") for t in touches):
        return touches
    hosts = dict.fromkeys(
        str(instances[name]["host"])
        for kind, _, name in (t.resource.partition(":") for t in touches)
        if kind == "instance" and (instances.get(name) or {}).get("host")
    )
    return [*touches, *(Touch(f"node:{host}") for host in hosts)]


class Settled(NamedTuple):
    """Needs that can be had together with the parents, and an order that honours both."""

    needs: list[tuple[int, ...]]
    order: list[int]
    dropped: list[Dropped]


def settle(
    parents: Sequence[tuple[int, ...]],
    needs: Sequence[Need],
    precedes: Callable[[int, int], bool],
) -> Settled:
    """Keep the needs that parents and each other allow; the rest is dropped, and named.

    ``parents`` go by position and stand in an order that honours them; ``precedes(a, b)`` says
    whether parents, directly or through others, already put ``a`` before ``b``. Linear in the edges
    of parents and needs. Of needs that stand against each other those go that point backwards.
    """
    dropped: list[Dropped] = []
    kept: list[list[Need]] = [[] for _ in parents]
    for need in needs:
        for b in need.needing:
            against = [a for a in need.needed if precedes(b, a)]
            dropped += [Dropped(a, b, need.why) for a in against]
            rest = need
            if against:
                gone = set(against)
                rest = need._replace(needed=tuple(a for a in need.needed if a not in gone))
            if rest.needed:
                kept[b].append(rest)
    before = [(p, *(n.needed for n in own)) for p, own in zip(parents, kept, strict=True)]
    try:
        order = arrange(before)
    except Loop as loop:
        for knot in knots(before, loop.left):
            dropped += _straighten(kept, knot)
        before = [(p, *(n.needed for n in own)) for p, own in zip(parents, kept, strict=True)]
        order = arrange(before)
    return Settled([_union(own) for own in kept], order, dropped)


def _straighten(kept: list[list[Need]], knot: frozenset[int]) -> list[Dropped]:
    """Drop the needs inside a loop that point backwards in the order that stands."""
    dropped = []
    for b in sorted(knot):
        own = []
        for need in kept[b]:
            back = {a for a in need.needed if a in knot and a > b}
            dropped += [Dropped(a, b, need.why) for a in sorted(back)]
            rest = tuple(a for a in need.needed if a not in back) if back else need.needed
            if rest:
                own.append(need._replace(needed=rest))
        kept[b] = own
    return dropped


def _union(own: list[Need]) -> tuple[int, ...]:
    if not own:
        return ()
    if len(own) == 1:
        return own[0].needed
    return tuple(dict.fromkeys(a for need in own for a in need.needed))
