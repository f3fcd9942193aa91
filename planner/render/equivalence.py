# SPDX-License-Identifier: Apache-2.0
"""Finds nodes of a graph that can share one box: equivalent ones, siblings, and chains."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Mapping, Sequence

from planner.render.drawn_graph import DrawnGraph, Line

#: The maximum number of rounds of colour refinement. More would only change pictures that are too
#: large to read.
ROUNDS = 8

Depth = tuple[int, int]


def depths(graph: DrawnGraph, points: Collection[str]) -> dict[str, Depth]:
    """Return the depth of each node, which is greater than that of all its predecessors.

    A box has the depth (n, 0), where n is the maximum number of boxes before it on a path. A point
    behind it has (n, 1), a point behind that one (n, 2).
    """
    found: dict[str, Depth] = {}
    for node in graph.order():
        latest = max((found[line.tail] for line in graph.into(node)), default=(-1, 0))
        found[node] = (latest[0], latest[1] + 1) if node in points else (latest[0] + 1, 0)
    return found


def equivalent(
    graph: DrawnGraph, looks: Mapping[str, Hashable], lanes: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Map each node to the first equivalent one, and each lane to the first equivalent one.

    Nodes are equivalent if their keys (``looks``, which include the depth) are equal, they have
    lines of the same kinds from and to equivalent nodes, and their lanes are equivalent. Lanes are
    equivalent if their nodes are. ``lanes`` maps nodes to lanes. The algorithm is colour
    refinement.
    """
    colours = _firsts(looks)
    for _ in range(ROUNDS):
        refined = _firsts(
            {node: _colours_around(graph, node, colours, lanes) for node in graph.nodes}
        )
        if len(set(refined.values())) == len(set(colours.values())):
            break
        colours = refined
    inside: dict[str, Counter[str]] = defaultdict(Counter)
    for node in graph.nodes:
        if node in lanes:
            inside[lanes[node]][colours[node]] += 1
    contents = {lane: frozenset(counts.items()) for lane, counts in inside.items()}
    first_lane = _firsts(contents)
    kinds = {n: (colours[n], first_lane.get(lanes.get(n, ""), "")) for n in graph.nodes}
    return _firsts(kinds), first_lane


def _colours_around(
    graph: DrawnGraph, node: str, colours: Mapping[str, str], lanes: Mapping[str, str]
) -> Hashable:
    """Return the colour of a node, together with the set of the colours of its neighbours."""
    own = lanes.get(node)
    before = frozenset(
        (line.kind, line.label, colours[line.tail], lanes.get(line.tail) == own)
        for line in graph.into(node)
    )
    after = frozenset((colours[n], lanes.get(n) == own) for n in graph.after(node))
    return colours[node], before, after


def _firsts(keys: Mapping[str, Hashable]) -> dict[str, str]:
    """Map each name to the first name with an equal key."""
    firsts: dict[Hashable, str] = {}
    return {name: firsts.setdefault(key, name) for name, key in keys.items()}


def members(firsts: Mapping[str, str]) -> dict[str, list[str]]:
    """Map the first name of each group to all names of the group, in order: invert ``firsts``."""
    found: dict[str, list[str]] = {}
    for name, first in firsts.items():
        found.setdefault(first, []).append(name)
    return found


def siblings(boxes: Mapping[str, Hashable], lines: Sequence[Line]) -> dict[str, str]:
    """Map each box to the first one with an equal key and equal lines.

    >>> lines = [Line("a", "x", "need"), Line("a", "y", "need"), Line("a", "z", "order")]
    >>> siblings({"a": 0, "x": 1, "y": 1, "z": 1}, lines)
    {'a': 'a', 'x': 'x', 'y': 'x', 'z': 'z'}
    """
    before: dict[str, set[Hashable]] = defaultdict(set)
    after: dict[str, set[Hashable]] = defaultdict(set)
    for tail, head, kind, label in lines:
        before[head].add((tail, kind, label))
        after[tail].add((head, kind, label))
    keys = {}
    for name, key in boxes.items():
        alone = not before[name] and not after[name]
        keys[name] = (key, frozenset(before[name]), frozenset(after[name]), name if alone else "")
    return _firsts(keys)


def chains(boxes: Mapping[str, Hashable], lines: Sequence[Line]) -> dict[str, str]:
    """Map each box to the first of its chain: boxes with equal keys and a single line between them.

    ``boxes`` are in schedule order.

    >>> lines = [Line("a", "b", "need"), Line("b", "c", "need"), Line("c", "d", "need")]
    >>> chains({"a": 1, "b": 1, "c": 1, "d": 2}, lines)
    {'a': 'a', 'b': 'a', 'c': 'a', 'd': 'd'}
    """
    heads = Counter(line.head for line in lines)
    tails = Counter(line.tail for line in lines)
    before = {
        line.head: line.tail
        for line in lines
        if line.kind in ("need", "order")
        and heads[line.head] == tails[line.tail] == 1
        and line.tail in boxes
        and boxes.get(line.head) == boxes[line.tail]
    }
    found: dict[str, str] = {}
    for name in boxes:
        way = [name]
        while way[-1] in before and way[-1] not in found:
            way.append(before[way[-1]])
        first = found.get(way[-1], way[-1])
        found.update(dict.fromkeys(way, first))
    return {name: found[name] for name in boxes}


def merged(lines: Sequence[Line], firsts: Mapping[str, str]) -> list[Line]:
    """Return the lines with their ends replaced by ``firsts``, without duplicates and loops."""
    moved = (
        line._replace(tail=firsts.get(line.tail, line.tail), head=firsts.get(line.head, line.head))
        for line in lines
    )
    return list(dict.fromkeys(line for line in moved if line.tail != line.head))
