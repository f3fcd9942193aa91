"""Layers of a drawing: what stands side by side, in which order, and where lines pass through.

A line that crosses rows takes a place in each. Lines that lead to one box, and mean the same,
share those dummies: a route.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from planner.render.drawn_graph import Line

SWEEPS = 8
#: With more dummies than this lines go straight.
MANY_NODES = 50_000


class Route(NamedTuple):
    """What leads to ``head`` and means the same: its tails, and a place in each row passed."""

    head: str
    kind: str
    label: str
    tails: tuple[str, ...]
    dummies: tuple[str, ...]


class Layers(NamedTuple):
    """Ids in order, row by row: of boxes, points and dummies; the row of each; the routes."""

    rows: list[list[str]]
    row: dict[str, int]
    routes: list[Route]
    lane: dict[str, int]


def layered(
    depth: Mapping[str, tuple[int, int]], lines: Sequence[Line], lane: Mapping[str, int]
) -> Layers:
    """Put nodes into rows by depth, and order each so that few lines cross.

    ``lane`` is the number of each node's lane: within a row, lanes stand in that order.
    """
    number = {d: i for i, d in enumerate(sorted(set(depth.values())))}
    row = {node: number[d] for node, d in depth.items()}
    lanes = dict(lane)
    routes: list[Route] = []
    found: list[list[str]] = [[] for _ in number]
    for node, i in row.items():
        found[i].append(node)
    bundles: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for tail, head, kind, label in lines:
        bundles[head, kind, label].append(tail)
    for (head, kind, label), tails in bundles.items():
        passed = range(min(row[tail] for tail in tails) + 1, row[head])
        if len(row) + len(passed) > MANY_NODES:
            passed = range(0)
        dummies = tuple(f"{len(routes)}@{i}" for i in passed)
        for place, i in zip(dummies, passed, strict=True):
            row[place], lanes[place] = i, lane[head]
            found[i].append(place)
        routes.append(Route(head, kind, label, tuple(tails), dummies))
    layers = Layers(found, row, routes, lanes)
    _reduce_crossings(layers)
    return layers


def segments(layers: Layers) -> Iterable[tuple[str, str]]:
    """Give each piece of each line, from one row to the next or, straight, further on."""
    for route in layers.routes:
        chain = [*route.dummies, route.head]
        yield from pairwise(chain)
        for tail in route.tails:
            yield tail, joint(layers, route, tail)


def joint(layers: Layers, route: Route, tail: str) -> str:
    """Name where a tail's line joins its route: a place, or the head itself."""
    if not route.dummies:
        return route.head
    skipped = layers.row[tail] + 1 - layers.row[route.dummies[0]]
    return [*route.dummies, route.head][skipped]


def _reduce_crossings(layers: Layers) -> None:
    """Order each row by the middle of its neighbours, down and up; keep the order with fewest."""
    above: dict[str, list[str]] = defaultdict(list)
    below: dict[str, list[str]] = defaultdict(list)
    for first, second in segments(layers):
        above[second].append(first)
        below[first].append(second)
    for row in layers.rows:
        row.sort(key=layers.lane.__getitem__)
    best, fewest = [list(row) for row in layers.rows], crossings(layers.rows, below)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        near = above if down else below
        for row in layers.rows if down else reversed(layers.rows):
            _sort(row, near, layers)
        count = crossings(layers.rows, below)
        if count < fewest:
            best, fewest = [list(row) for row in layers.rows], count
    layers.rows[:] = best


def _sort(row: list[str], near: Mapping[str, list[str]], layers: Layers) -> None:
    place = _ranks(layers, {layers.row[n] for name in row for n in near.get(name, ())})
    ranks = {name: i / max(1, len(row) - 1) for i, name in enumerate(row)}
    middle = {}
    for name in row:
        found = [place[n] for n in near.get(name, ())]
        middle[name] = sum(found) / len(found) if found else ranks[name]
    row.sort(key=lambda name: (layers.lane[name], middle[name]))


def _ranks(layers: Layers, numbers: Iterable[int]) -> dict[str, float]:
    """Give the place of all in some rows, from 0 at the left to 1 at the right."""
    return {
        name: i / max(1, len(layers.rows[n]) - 1)
        for n in numbers
        for i, name in enumerate(layers.rows[n])
    }


def crossings(ordered: Sequence[Sequence[str]], below: Mapping[str, Sequence[str]]) -> int:
    """Count how often pieces of lines between neighbouring rows cross.

    >>> crossings([["a", "b"], ["x", "y"]], {"a": ["y"], "b": ["x", "y"]})
    1
    """
    total = 0
    for upper, lower in pairwise(ordered):
        place = {name: i for i, name in enumerate(lower)}
        ends = [
            p for name in upper for p in sorted(place[n] for n in below.get(name, ()) if n in place)
        ]
        total += _inversions(ends, len(lower))
    return total


def _inversions(ends: Sequence[int], size: int) -> int:
    """Count the pairs that stand in the wrong order, in size x log(size) steps."""
    tree, total = [0] * (size + 1), 0
    for seen, end in enumerate(ends):
        total += seen
        i = end + 1
        while i > 0:
            total -= tree[i]
            i &= i - 1
        i = end + 1
        while i <= size:
            tree[i] += 1
            i += i & -i
    return total
