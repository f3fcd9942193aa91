"""Where the rows of a drawing go: a coordinate along (row by row) and one across.

Within its row a thing keeps its turn and its distance, and within those goes where its neighbours
are; lanes are strips beside each other that all rows share.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from planner.render.layers import Layers, segments

SWEEPS, SPACE, LANE_SPACE = 40, 12.0, 16.0
#: As many things are moved at most, all sweeps together, but for four sweeps.
MOVES = 400_000
#: Width of the place of a line that passes.
DUMMY = 4.0


class Strip(NamedTuple):
    """The room of a lane, across."""

    start: float
    end: float


def coordinates(
    layers: Layers, sizes: Mapping[str, float], least: Mapping[int, float]
) -> tuple[dict[str, float], dict[int, Strip]]:
    """Give the middle of each thing across, and the strip of each lane, by its number.

    ``sizes`` are those of boxes and points; ``least`` is what each lane needs for its title.
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
    near = _near(layers)
    for sweep in range(max(4, min(SWEEPS, MOVES // max(1, len(size))))):
        for lane, names in parts if sweep % 2 == 0 else reversed(parts):
            _settle(names, size, strips[lane], near, middle)
    return middle, strips


def _room(names: Sequence[str], size: Mapping[str, float]) -> float:
    return sum(size[name] for name in names) + SPACE * (len(names) - 1)


def _near(layers: Layers) -> dict[str, list[str]]:
    near: dict[str, list[str]] = defaultdict(list)
    for first, second in segments(layers):
        near[first].append(second)
        near[second].append(first)
    # What stays in its lane is not pulled aside by what leaves it.
    own = {n: [o for o in others if layers.lane[o] == layers.lane[n]] for n, others in near.items()}
    return {name: own[name] or others for name, others in near.items()}


def _settle(
    names: Sequence[str],
    size: Mapping[str, float],
    strip: Strip,
    near: Mapping[str, list[str]],
    middle: dict[str, float],
) -> None:
    """Move a row's part of a lane as near to its neighbours as turn, distance and strip allow."""
    offset, shifts, wanted = 0.0, [], []
    for name in names:
        shifts.append(offset + size[name] / 2)
        offset += size[name] + SPACE
        around = sorted(middle[n] for n in near.get(name, ()))
        request = (
            (around[(len(around) - 1) // 2] + around[len(around) // 2]) / 2 if around else None
        )
        wanted.append((middle[name] if request is None else request) - shifts[-1])
    low = strip.start + LANE_SPACE
    high = strip.end - LANE_SPACE - (offset - SPACE)
    for name, place, shift in zip(names, isotonic(wanted), shifts, strict=True):
        middle[name] = min(max(place, low), max(high, low)) + shift


def isotonic(wanted: Sequence[float]) -> list[float]:
    """Give the isotonic numbers that are nearest to those wanted, by least squares.

    >>> isotonic([1, 5, 3, 9])
    [1.0, 4.0, 4.0, 9.0]
    """
    blocks: list[tuple[float, int]] = []
    for request in wanted:
        total, count = float(request), 1
        while blocks and blocks[-1][0] / blocks[-1][1] >= total / count:
            more, others = blocks.pop()
            total, count = total + more, count + others
        blocks.append((total, count))
    return [total / count for total, count in blocks for _ in range(count)]
