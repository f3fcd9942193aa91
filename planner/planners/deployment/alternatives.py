# SPDX-License-Identifier: Apache-2.0
"""Resolves dependencies of policy ``any``: chooses nodes so that the links have no cycle.

A dependency of policy ``any`` is fulfilled as soon as the task has succeeded on one of its nodes.
First all possible links are added. If that makes a cycle, only the links that are on no cycle are
kept. The others are added one by one, in document order, unless they close a cycle.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from planner.errors import Mistake
from planner.plan.graph_algorithms import CycleError, cyclic_components, once, topological_order
from planner.planners.deployment.problem import Relation
from planner.planners.deployment.task_links import Choice, Links

#: A set of alternatives gets a join if it has more members than this, and more tasks than this wait
#: for it.
MANY = 16


def settle(links: Links, choices: Sequence[Choice]) -> list[Mistake]:
    """Add the links of each choice to ``links``; return warnings.

    There is a warning for each choice of which every set would close a cycle: it adds no link.
    """
    if not choices:
        return []
    chosen: Sequence[Sequence[tuple[int, ...]]]
    chosen = [c.one_of[:1] if c.forward else c.one_of for c in choices]
    before = [[tuple(found)] for found in links.before]

    def node_of(sets: Sequence[tuple[int, ...]]) -> int:
        """Add a node that comes after the members of sets, and stands for them."""
        before.append([*sets])
        return len(before) - 1

    nodes = once(node_of)
    for choice, sets in zip(choices, chosen, strict=True):
        if choice.forward:
            for then in sets[0]:
                before[then].append((choice.of,))
        else:
            before[choice.of].append((nodes(sets),))
    try:
        topological_order(before)
    except CycleError:
        chosen = _one_by_one(links, choices)
    return _add(links, choices, chosen)


def _edges(choice: Choice, sets: Iterable[tuple[int, ...]]) -> Iterable[tuple[int, int]]:
    """Yield the links (predecessor, successor) that a choice adds for these sets."""
    for found in sets:
        for other in found:
            yield (choice.of, other) if choice.forward else (other, choice.of)


def _one_by_one(links: Links, choices: Sequence[Choice]) -> list[list[tuple[int, ...]]]:
    """Return for each choice the sets that close no cycle with the links before it.

    Of a forward choice, only the first such set is returned.
    """
    import networkx as nx

    certain = [(first, then) for then, found in enumerate(links.before) for first in found]
    possible = [edge for choice in choices for edge in _edges(choice, choice.one_of)]
    component_of = {
        position: number
        for number, component in enumerate(cyclic_components(nx.DiGraph(certain + possible)))
        for position in component
    }

    def on_a_cycle(first: int, then: int) -> bool:
        return first in component_of and component_of[first] == component_of.get(then)

    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(len(links.before)))
    graph.add_edges_from(edge for edge in certain if on_a_cycle(*edge))
    chosen = []
    for choice in choices:
        reached = nx.ancestors if choice.forward else nx.descendants
        barred = {choice.of, *reached(graph, choice.of)}
        free = [found for found in choice.one_of if barred.isdisjoint(found)]
        taken = free[:1] if choice.forward else free
        graph.add_edges_from(edge for edge in _edges(choice, taken) if on_a_cycle(*edge))
        chosen.append(taken)
    return chosen


def _add(
    links: Links, choices: Sequence[Choice], chosen: Sequence[Sequence[tuple[int, ...]]]
) -> list[Mistake]:
    warnings = []
    groups: dict[int, tuple[int, ...]] = {}
    waiting: dict[int, list[int]] = defaultdict(list)
    for choice, sets in zip(choices, chosen, strict=True):
        if not sets:
            text = f"{links.name(choice.of)} {choice.relation.text}: each would close a cycle, " + (
                "nobody waits for it" if choice.forward else "it waits for none of them"
            )
            warnings.append(Mistake(text, choice.relation.path))
        elif choice.forward:
            for then in sets[0]:
                links.before[then].setdefault(choice.of, choice.relation)
        elif links.placement.pairs[choice.of][1].is_anchor:
            for p in (p for found in sets for p in found):
                links.before[choice.of].setdefault(p, choice.relation)
        else:
            if id(sets) not in groups:  # which many tasks share
                groups[id(sets)] = tuple(_of_one_node(links, s, choice.relation) for s in sets)
            waiting[id(sets)].append(choice.of)
    shared: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for key, group in groups.items():
        shared[group] += waiting[key]
    for group, tasks in shared.items():
        if min(len(group), len(tasks)) > MANY:
            label = f"any {links.name(group[0]).partition('/')[2]}"
            join = links.join(group, label, one_is_enough=True)
            for i in tasks:
                links.before[i][join] = None
        else:
            for i in tasks:
                if group not in links.any_of[i]:
                    links.any_of[i].append(group)
    return warnings


def _of_one_node(links: Links, found: tuple[int, ...], relation: Relation) -> int:
    """Return the matching task of a node, or a join if several tasks match."""
    if len(found) == 1:
        return found[0]
    uid = links.placement.pairs[found[0]][0]
    return links.join(tuple(found), f"{relation.name}@{uid}")
