# SPDX-License-Identifier: Apache-2.0
"""Finds which actions need which others, by one rule for each pair of effects on a resource.

``parents`` express the order that a planner chose. ``needs`` are actions that must have succeeded
before an action may start. The table ``PAIRS`` has all rules, the most important first: if two
needs contradict each other, the one from the upper row is kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from planner.plan.graph_algorithms import CycleError, topological_order
from planner.plan.model import Effect, Touch

#: Resources that only one action may work on at a time.
SINGLE = frozenset({"instance", "volume"})
#: Resources that instances run on.
PLACES = frozenset({"node"})


class Pair(NamedTuple):
    """A rule: actions with the effect ``needing`` on a resource need those with ``needed`` on it.

    The rule holds for resources of these ``kinds``. With ``in_order``, actions with the two effects
    may follow each other in either order, and each needs the one that is scheduled before it.
    """

    needed: Effect
    needing: Effect
    kinds: frozenset[str]
    why: str
    in_order: bool = False


PAIRS = (
    Pair(Effect.USES, Effect.USES, SINGLE, "one action at a time on {resource}", in_order=True),
    Pair(Effect.TAKES_DOWN, Effect.BRINGS_UP, PLACES, "one switch of {resource} at a time", True),
    Pair(Effect.DISABLES, Effect.ENABLES, PLACES, "one switch of {resource} at a time", True),
    Pair(Effect.LEAVES, Effect.TAKES_DOWN, PLACES, "{resource} goes away after moves off it"),
    Pair(Effect.BRINGS_UP, Effect.ENTERS, PLACES, "{resource} comes up before moves onto it"),
    Pair(Effect.DISABLES, Effect.LEAVES, PLACES, "{resource} is disabled before moves off it"),
    Pair(Effect.LEAVES, Effect.ENABLES, PLACES, "{resource} is enabled after moves off it"),
    # A cloud refuses a migration to a disabled host.
    Pair(Effect.ENABLES, Effect.ENTERS, PLACES, "{resource} is enabled before moves onto it"),
    # If a host is taken down and brought up again in one plan, these needs are dropped, because
    # migrations back to it come last.
    Pair(Effect.USES, Effect.TAKES_DOWN, PLACES, "{resource} goes away after work on it"),
    Pair(Effect.ENTERS, Effect.TAKES_DOWN, PLACES, "{resource} goes away after moves onto it"),
)


class Need(NamedTuple):
    """Each action in ``needing`` needs all in ``needed``; both hold positions in schedule order.

    ``row`` is the index of the rule in ``PAIRS``: a smaller index is more important.
    """

    needed: tuple[int, ...]
    needing: tuple[int, ...]
    why: str
    row: int = 0


class Dropped(NamedTuple):
    """A need that was dropped, because other links put ``needing`` before ``needed``."""

    needed: int
    needing: int
    why: str


def find(touches: Sequence[Sequence[Touch]]) -> list[Need]:
    """Return the needs between actions, derived from their touches by :data:`PAIRS`.

    ``touches`` has the touches of each action, in schedule order. In the example, action 0 powers
    off a host after the moves 1 and 2; the moves are of one instance, so 2 comes after 1.

    >>> away = [Touch("node:c1", Effect.TAKES_DOWN)]
    >>> move = [Touch("instance:i1"), Touch("node:c1", Effect.LEAVES)]
    >>> [(n.needed, n.needing) for n in find([away, move, move])]
    [((1, 2), (0,)), ((1,), (2,))]
    """
    who: dict[str, list[int]] = defaultdict(list)
    for i, touched in enumerate(touches):
        for resource, _ in touched:
            who[resource].append(i)
    needs: list[Need] = []
    for resource, found in who.items():
        if len(found) < 2:
            continue
        by_effect = _by_effect(resource, dict.fromkeys(found), touches)
        for row, pair in _ROWS.get(resource.partition(":")[0], ()):
            if pair.needed in by_effect and pair.needing in by_effect:
                needed, needing = by_effect[pair.needed], by_effect[pair.needing]
                needs += _apply(row, pair, resource, needed, needing)
    return needs


#: Maps each kind of resource to its rows of ``PAIRS``, each with its index.
_ROWS = {
    kind: [(row, pair) for row, pair in enumerate(PAIRS) if kind in pair.kinds]
    for kind in SINGLE | PLACES
}


def _by_effect(
    resource: str, positions: Iterable[int], touches: Sequence[Sequence[Touch]]
) -> dict[Effect, list[int]]:
    """Group the actions that touch a resource by effect; for a SINGLE resource all are USES."""
    if resource.partition(":")[0] in SINGLE:
        return {Effect.USES: list(positions)}
    by_effect: dict[Effect, list[int]] = {}
    for i in positions:
        for effect in dict.fromkeys(e for touched, e in touches[i] if touched == resource):
            by_effect.setdefault(effect, []).append(i)
    return by_effect


def _apply(
    row: int, pair: Pair, resource: str, needed: list[int], needing: list[int]
) -> list[Need]:
    why = pair.why.format(resource=resource)
    if pair.in_order:
        line = needed if needed is needing else sorted({*needed, *needing})
        return [Need((a,), (b,), why, row) for a, b in pairwise(line)]
    if set(needed).isdisjoint(needing):
        return [Need(tuple(needed), tuple(needing), why, row)]
    return [Need(tuple(a for a in needed if a != b), (b,), why, row) for b in needing]


def located(
    touches: Sequence[Sequence[Touch]], facts: Mapping[str, Mapping[str, Any]]
) -> list[Sequence[Touch]]:
    """Add the host of the instance to each action that touches an instance but no node.

    Two nodes are added if they differ: the host in ``facts``, and the destination of the last
    migration that is scheduled before the action. Nothing is added unless an action takes a node
    down.

    >>> facts = {"instances": {"i1": {"host": "c1"}}}
    >>> move = [Touch("instance:i1"), Touch("node:c2", Effect.ENTERS)]
    >>> away = [Touch("node:c1", Effect.TAKES_DOWN)]
    >>> [t.resource for t in located([move, [Touch("instance:i1")], away], facts)[1]]
    ['instance:i1', 'node:c1', 'node:c2']
    """
    if not any(t.effect is Effect.TAKES_DOWN for touched in touches for t in touched):
        # The host of an instance matters only if some action takes a host down.
        return list(touches)
    at_first = {
        f"instance:{name}": f"node:{fact['host']}"
        for name, fact in (facts.get("instances") or {}).items()
        if fact.get("host")
    }
    moved: dict[str, str] = {}
    found: list[Sequence[Touch]] = []
    for touched in touches:
        instances = [t.resource for t in touched if t.resource.startswith("instance:")]
        entered = [t.resource for t in touched if t.effect is Effect.ENTERS]
        moved.update((i, node) for i in instances for node in entered)
        if any(t.resource.startswith("node:") for t in touched):
            found.append(touched)
            continue
        nodes = [known[i] for i in instances for known in (at_first, moved) if i in known]
        found.append([*touched, *map(Touch, dict.fromkeys(nodes))] if nodes else touched)
    return found


class Settled(NamedTuple):
    """The needs that were kept, an order that follows parents and needs, and the dropped needs."""

    needs: list[tuple[int, ...]]
    order: list[int]
    dropped: list[Dropped]


def settle(
    parents: Sequence[tuple[int, ...]],
    needs: Sequence[Need],
    ordered: Container[tuple[int, int]],
) -> Settled:
    """Keep the needs that contradict neither the parents nor each other; list the dropped needs.

    ``parents[i]`` are the positions of the parents of action ``i``, all smaller than ``i``.
    ``ordered`` has each pair (a, b) of a need in which ``a`` needs ``b`` and is an ancestor of it
    through parents. Of needs that contradict each other, the most important are kept first, then
    every other that contradicts none of these. The time is linear in the edges of parents and
    needs, except for cycles among needs.
    """
    dropped: list[Dropped] = []
    kept: dict[int, list[Need]] = defaultdict(list)
    for need in needs:
        for b in need.needing:
            against = {a for a in need.needed if (b, a) in ordered}
            dropped += _without(need, b, against, kept)
    before = _before(parents, kept)
    try:
        order = topological_order(before)
    except CycleError as error:
        for component in error.components():
            dropped += _break_cycles(parents, kept, component)
        try:
            order = topological_order(_before(parents, kept))
        except CycleError:
            # The parents alone have a cycle: planner.plan.graph.validate reports it.
            order = list(range(len(parents)))
    return Settled([_union(kept.get(i, ())) for i in range(len(parents))], order, dropped)


def _before(
    parents: Sequence[tuple[int, ...]], kept: Mapping[int, Sequence[Need]]
) -> list[tuple[tuple[int, ...], ...]]:
    return [
        (p, *[need.needed for need in kept[i]]) if i in kept else (p,)
        for i, p in enumerate(parents)
    ]


def _without(
    need: Need, b: int, against: Container[int], kept: dict[int, list[Need]]
) -> list[Dropped]:
    """Keep the needs of ``b`` except those in ``against``; return these as dropped."""
    if not against:
        kept[b].append(need)
        return []
    rest = tuple(a for a in need.needed if a not in against)
    if rest:
        kept[b].append(need._replace(needed=rest))
    return [Dropped(a, b, need.why) for a in need.needed if a in against]


def _break_cycles(
    parents: Sequence[tuple[int, ...]], kept: dict[int, list[Need]], component: frozenset[int]
) -> list[Dropped]:
    """Keep the needs in a component that close no cycle, the most important first.

    Return the other needs.
    """
    import networkx as nx

    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(component)
    wanted: list[tuple[int, Need]] = []
    for b in sorted(component):
        graph.add_edges_from((a, b) for a in component.intersection(parents[b]))
        wanted += [(b, need) for need in kept.pop(b, ())]
    dropped = []
    for b, need in sorted(wanted, key=lambda w: w[1].row):
        inside = component.intersection(need.needed)
        against = inside & {b, *nx.descendants(graph, b)} if inside else inside
        dropped += _without(need, b, against, kept)
        graph.add_edges_from((a, b) for a in inside - against)
    return dropped


def _union(own: Sequence[Need]) -> tuple[int, ...]:
    if len(own) == 1:
        return own[0].needed
    return tuple(dict.fromkeys(a for need in own for a in need.needed))
