# SPDX-License-Identifier: Apache-2.0
"""Divides the nodes of a drawing into layers, orders each layer, and places the nodes within it.

Layered graph drawing (Sugiyama, Tagawa and Toda, 1981): a line that crosses a layer has a dummy
node in it. Lines of the same kind to the same box share their dummy nodes and form a route.

Within the order of a layer and a minimum distance, each node moves to the median of its neighbours
in other layers. A lane is a strip across all layers.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from planner.render.drawn_graph import Line

#: The number of sweeps that sort the layers.
SWEEPS = 8
#: If there would be more nodes and dummies than this, lines are drawn straight, without dummies.
MANY_NODES = 50_000
#: The maximum number of sweeps that move nodes, the distance between nodes, the space at each side
#: of a lane.
MOVING_SWEEPS, SPACE, LANE_SPACE = 40, 12.0, 16.0
#: The maximum number of moves of all sweeps together. There are at least four sweeps.
MOVES = 400_000
#: Width of a dummy node.
DUMMY = 4.0


class Route(NamedTuple):
    """Lines of one kind to ``head``: their tails, and their dummy node in each crossed layer."""

    head: str
    kind: str
    label: str
    tails: tuple[str, ...]
    dummies: tuple[str, ...]


class Layers(NamedTuple):
    """Nodes (boxes, points and dummies) in layers, and the routes between them.

    ``rows`` holds the ordered ids of each layer. ``row`` maps each id to the index of its layer,
    ``lane`` to the number of its lane.
    """

    rows: list[list[str]]
    row: dict[str, int]
    routes: list[Route]
    lane: dict[str, int]


def layered(
    depth: Mapping[str, tuple[int, int]], lines: Sequence[Line], lane: Mapping[str, int]
) -> Layers:
    """Put nodes into layers by depth, and order each layer so that few lines cross.

    ``lane`` maps each node to the number of its lane; in every layer, lanes are in that order.
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
    """Yield the segments of all lines: each ends in the next layer or, without dummies, later."""
    for route in layers.routes:
        chain = [*route.dummies, route.head]
        yield from pairwise(chain)
        for tail in route.tails:
            yield tail, joint(layers, route, tail)


def joint(layers: Layers, route: Route, tail: str) -> str:
    """Return the node where the line from a tail joins its route: a dummy, or the head."""
    if not route.dummies:
        return route.head
    skipped = layers.row[tail] + 1 - layers.row[route.dummies[0]]
    return [*route.dummies, route.head][skipped]


def _reduce_crossings(layers: Layers) -> None:
    """Sort each layer by barycentres of the neighbours, downwards and upwards; keep the best."""
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
        neighbours = above if down else below
        for row in layers.rows if down else reversed(layers.rows):
            _sort(row, neighbours, layers)
        count = crossings(layers.rows, below)
        if count < fewest:
            best, fewest = [list(row) for row in layers.rows], count
    layers.rows[:] = best


def _sort(row: list[str], neighbours: Mapping[str, list[str]], layers: Layers) -> None:
    # The relative position of the nodes in the layers of the neighbours, from 0 at the left to 1.
    near = {layers.row[n] for name in row for n in neighbours.get(name, ())}
    place = {
        name: i / max(1, len(layers.rows[n]) - 1)
        for n in near
        for i, name in enumerate(layers.rows[n])
    }
    ranks = {name: i / max(1, len(row) - 1) for i, name in enumerate(row)}
    middle = {}
    for name in row:
        found = [place[n] for n in neighbours.get(name, ())]
        middle[name] = sum(found) / len(found) if found else ranks[name]
    row.sort(key=lambda name: (layers.lane[name], middle[name]))


def crossings(ordered: Sequence[Sequence[str]], below: Mapping[str, Sequence[str]]) -> int:
    """Count the crossings of segments between adjacent layers.

    >>> crossings([["a", "b"], ["x", "y"]], {"a": ["y"], "b": ["x", "y"]})
    1
    """
    total = 0
    for upper, lower in pairwise(ordered):
        place = {name: i for i, name in enumerate(lower)}
        ends = [
            p for name in upper for p in sorted(place[n] for n in below.get(name, ()) if n in place)
        ]
        seen: list[int] = []
        for end in ends:
            total += len(seen) - bisect_right(seen, end)
            insort(seen, end)
    return total


class Strip(NamedTuple):
    """The space of a lane: where it begins and ends within every layer."""

    start: float
    end: float


def coordinates(
    layers: Layers, sizes: Mapping[str, float], least: Mapping[int, float]
) -> tuple[dict[str, float], dict[int, Strip]]:
    """Return the middle of each node within its layer, and the strip of each lane by its number.

    ``sizes`` are the extents of boxes and points within the layer. ``least`` maps the number of
    each lane to the space that its title needs. All numbers are pixels.
    """
    size = {name: sizes.get(name, DUMMY) for row in layers.rows for name in row}
    parts = [
        (lane, list(names))
        for row in layers.rows
        for lane, names in groupby(row, layers.lane.__getitem__)
    ]
    wide = dict(least)
    for lane, names in parts:
        wide[lane] = max(wide.get(lane, 0.0), _room(names, size))
    strips, start = {}, 0.0
    for lane in sorted(wide):
        strips[lane] = Strip(start, start + wide[lane] + 2 * LANE_SPACE)
        start = strips[lane].end + LANE_SPACE
    middle: dict[str, float] = {}
    for lane, names in parts:
        left = (strips[lane].start + strips[lane].end - _room(names, size)) / 2
        for name in names:
            middle[name] = left + size[name] / 2
            left += size[name] + SPACE
    neighbours = _neighbours(layers)
    for sweep in range(max(4, min(MOVING_SWEEPS, MOVES // max(1, len(size))))):
        for lane, names in parts if sweep % 2 == 0 else reversed(parts):
            _align(names, size, strips[lane], neighbours, middle)
    return middle, strips


def _room(names: Sequence[str], size: Mapping[str, float]) -> float:
    return sum(size[name] for name in names) + SPACE * (len(names) - 1)


def _neighbours(layers: Layers) -> dict[str, list[str]]:
    neighbours: dict[str, list[str]] = defaultdict(list)
    for first, second in segments(layers):
        neighbours[first].append(second)
        neighbours[second].append(first)
    # A node with neighbours in its own lane ignores those in other lanes.
    own = {
        n: [o for o in others if layers.lane[o] == layers.lane[n]]
        for n, others in neighbours.items()
    }
    return {name: own[name] or others for name, others in neighbours.items()}


def _align(
    names: Sequence[str],
    size: Mapping[str, float],
    strip: Strip,
    neighbours: Mapping[str, list[str]],
    middle: dict[str, float],
) -> None:
    """Move the nodes of one lane in one layer as close to their neighbours as the bounds allow."""
    offset, shifts, wanted = 0.0, [], []
    for name in names:
        shifts.append(offset + size[name] / 2)
        offset += size[name] + SPACE
        around = sorted(middle[n] for n in neighbours.get(name, ()))
        median = (around[(len(around) - 1) // 2] + around[len(around) // 2]) / 2 if around else None
        wanted.append((middle[name] if median is None else median) - shifts[-1])
    low = strip.start + LANE_SPACE
    high = strip.end - LANE_SPACE - (offset - SPACE)
    for name, place, shift in zip(names, isotonic(wanted), shifts, strict=True):
        middle[name] = min(max(place, low), max(high, low)) + shift


def isotonic(wanted: Sequence[float]) -> list[float]:
    """Return the non-decreasing numbers that are closest to the wanted ones, by least squares.

    Isotonic regression by the pool-adjacent-violators algorithm.

    >>> isotonic([1, 5, 3, 9])
    [1.0, 4.0, 4.0, 9.0]
    """
    blocks: list[tuple[float, int]] = []
    for value in wanted:
        total, count = float(value), 1
        while blocks and blocks[-1][0] / blocks[-1][1] >= total / count:
            more, others = blocks.pop()
            total, count = total + more, count + others
        blocks.append((total, count))
    return [total / count for total, count in blocks for _ in range(count)]
