"""Rows of a drawing: what stands side by side, in which order, and where lines pass through.

A line that crosses rows takes a place in each. Lines that lead to one box, and mean the same,
share those places: a track.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from planner.render.web import Line

SWEEPS = 8
#: With more places than this lines go straight.
MANY_PLACES = 50_000


class Track(NamedTuple):
    """What leads to ``head`` and means the same: its tails, and a place in each row passed."""

    head: str
    kind: str
    label: str
    tails: tuple[str, ...]
    places: tuple[str, ...]


class Rows(NamedTuple):
    """Ids in order, row by row: of boxes, points and places; the row of each; the tracks."""

    rows: list[list[str]]
    row: dict[str, int]
    tracks: list[Track]
    lane: dict[str, int]


def rows(
    depth: Mapping[str, tuple[int, int]], lines: Sequence[Line], lane: Mapping[str, int]
) -> Rows:
    """Put nodes into rows by depth, and order each so that few lines cross.

    ``lane`` is the number of each node's lane: within a row, lanes stand in that order.
    """
    number = {d: i for i, d in enumerate(sorted(set(depth.values())))}
    row = {node: number[d] for node, d in depth.items()}
    lanes = dict(lane)
    tracks: list[Track] = []
    found: list[list[str]] = [[] for _ in number]
    for node, i in row.items():
        found[i].append(node)
    bundles: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for tail, head, kind, label in lines:
        bundles[head, kind, label].append(tail)
    for (head, kind, label), tails in bundles.items():
        passed = range(min(row[tail] for tail in tails) + 1, row[head])
        if len(row) + len(passed) > MANY_PLACES:
            passed = range(0)
        places = tuple(f"{len(tracks)}@{i}" for i in passed)
        for place, i in zip(places, passed, strict=True):
            row[place], lanes[place] = i, lane[head]
            found[i].append(place)
        tracks.append(Track(head, kind, label, tuple(tails), places))
    made = Rows(found, row, tracks, lanes)
    _untangle(made)
    return made


def hops(made: Rows) -> Iterable[tuple[str, str]]:
    """Give each piece of each line, from one row to the next or, straight, further on."""
    for track in made.tracks:
        chain = [*track.places, track.head]
        yield from pairwise(chain)
        for tail in track.tails:
            yield tail, joined(made, track, tail)


def joined(made: Rows, track: Track, tail: str) -> str:
    """Name where a tail's line joins its track: a place, or the head itself."""
    if not track.places:
        return track.head
    skipped = made.row[tail] + 1 - made.row[track.places[0]]
    return [*track.places, track.head][skipped]


def _untangle(made: Rows) -> None:
    """Order each row by the middle of its neighbours, down and up; keep the order with fewest."""
    above: dict[str, list[str]] = defaultdict(list)
    below: dict[str, list[str]] = defaultdict(list)
    for first, second in hops(made):
        above[second].append(first)
        below[first].append(second)
    for row in made.rows:
        row.sort(key=made.lane.__getitem__)
    best, fewest = [list(row) for row in made.rows], crossings(made.rows, below)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        near = above if down else below
        for row in made.rows if down else reversed(made.rows):
            _sort(row, near, made)
        count = crossings(made.rows, below)
        if count < fewest:
            best, fewest = [list(row) for row in made.rows], count
    made.rows[:] = best


def _sort(row: list[str], near: Mapping[str, list[str]], made: Rows) -> None:
    place = _ranks(made, {made.row[n] for name in row for n in near.get(name, ())})
    ranks = {name: i / max(1, len(row) - 1) for i, name in enumerate(row)}
    middle = {}
    for name in row:
        found = [place[n] for n in near.get(name, ())]
        middle[name] = sum(found) / len(found) if found else ranks[name]
    row.sort(key=lambda name: (made.lane[name], middle[name]))


def _ranks(made: Rows, numbers: Iterable[int]) -> dict[str, float]:
    """Give the place of all in some rows, from 0 at the left to 1 at the right."""
    return {
        name: i / max(1, len(made.rows[n]) - 1)
        for n in numbers
        for i, name in enumerate(made.rows[n])
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
