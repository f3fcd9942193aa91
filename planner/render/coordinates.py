# SPDX-License-Identifier: Apache-2.0
"""Computes the position of each node within its layer.

The order of the nodes in a layer and a minimum distance between them are given. Within these
bounds, each node moves to the median of its neighbours in other layers. A lane is a strip across
all layers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from planner.render.layers import Layers, segments

#: The maximum number of sweeps, the distance between nodes, the space at each side of a lane.
SWEEPS, SPACE, LANE_SPACE = 40, 12.0, 16.0
#: The maximum number of moves of all sweeps together. There are at least four sweeps.
MOVES = 400_000
#: Width of a dummy node.
DUMMY = 4.0


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
    for sweep in range(max(4, min(SWEEPS, MOVES // max(1, len(size))))):
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
