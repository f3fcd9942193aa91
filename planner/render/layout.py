# SPDX-License-Identifier: Apache-2.0
"""Computes the geometry of a drawing, downwards or to the right, whichever fits a screen better."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from planner.render.drawing import Drawing
from planner.render.equivalence import Depth
from planner.render.layers import Layers, Route, Strip, coordinates, joint, layered

#: The distance between layers, its increase for each line that goes far sideways, its maximum.
GAP, PER_LINE, WIDEST_GAP = 30.0, 2.0, 80.0
#: The length of an arrowhead, and the distance between arrows that end at one box.
ARROW, PORT = 10.0, 14.0
#: Diameter of a point.
POINT = 8.0
#: The aspect ratio (width / height) of the screen for which the direction is chosen.
SCREEN = 1.6

#: Width and height.
Size = tuple[float, float]


class Point(NamedTuple):
    """A position in the picture."""

    x: float
    y: float


class Path(NamedTuple):
    """A line through ``stops``: straight from stop 0 to 1, curved from 1 to 2, and so on."""

    kind: str
    stops: tuple[Point, ...]
    arrow: bool


class Layout(NamedTuple):
    """All positions: the middles of boxes and points, lines, labels, lanes; and the size.

    A label is the text of a line, and its middle. If ``down``, the layers follow each other
    downwards, else to the right.
    """

    down: bool
    middles: dict[str, Point]
    paths: list[Path]
    labels: list[tuple[str, Point]]
    strips: dict[str, Strip]
    size: Size


class Sizes(NamedTuple):
    """Width and height of boxes by id, of lane titles by id, and of labels by text."""

    boxes: Mapping[str, Size]
    titles: Mapping[str, Size]
    labels: Mapping[str, Size]


def layout(drawing: Drawing, depth: Mapping[str, Depth], sizes: Sizes) -> Layout:
    """Lay a drawing out in both directions; return the layout that a screen can show larger."""
    layers = layered(depth, drawing.lines, _lane_numbers(drawing))
    ways = [_OrientedLayout(drawing, layers, sizes, down).layout() for down in (True, False)]
    return min(ways, key=lambda way: max(way.size[0] / SCREEN, way.size[1]))


def _lane_numbers(drawing: Drawing) -> dict[str, int]:
    """Map each node to its lane's number; a point without a lane gets that of most of its lines."""
    number = {lane: i for i, lane in enumerate(drawing.lanes)}
    found = {box: number.get(drawing.boxes[box].lane or "", 0) for box in drawing.boxes}
    near: dict[str, Counter[int]] = defaultdict(Counter)
    for tail, head, *_ in drawing.lines:
        near[tail][found.get(head, -1)] += 1
        near[head][found.get(tail, -1)] += 1
    for point, lane in drawing.points.items():
        known = {n: times for n, times in near[point].items() if n >= 0}
        most = max(known, key=lambda n: (known[n], -n), default=0)
        found[point] = most if lane is None else number[lane]
    return found


class _OrientedLayout:
    """A layout in one direction; ``along`` goes from layer to layer, ``across`` within a layer."""

    def __init__(self, drawing: Drawing, layers: Layers, sizes: Sizes, down: bool) -> None:
        self._drawing, self._layers, self._sizes, self._down = drawing, layers, sizes, down
        extents = {**sizes.boxes, **dict.fromkeys(drawing.points, (POINT, POINT))}
        self._long = {name: self._turned(size)[0] for name, size in extents.items()}
        self._wide = {name: self._turned(size)[1] for name, size in extents.items()}
        titles = [self._turned(sizes.titles[lane]) for lane in drawing.lanes]
        self._head = max((title[0] for title in titles), default=0.0)
        least = {i: title[1] for i, title in enumerate(titles)}
        self._middle, self._strips = coordinates(layers, self._wide, least)
        self._ports = self._port_places()
        self._slots = self._label_slots()
        self._start, self._end = self._bands()

    def layout(self) -> Layout:
        """Return the positions of boxes and points, the paths of lines, labels, and the size."""
        named = [*self._drawing.boxes, *self._drawing.points]
        middles = {n: self._point(self._along(n), self._middle[n]) for n in named}
        paths = [path for route in self._layers.routes for path in self._paths(route)]
        labels = [self._label(route) for route in self._layers.routes if route.label]
        strips = dict(zip(self._drawing.lanes, self._strips.values(), strict=False))
        end = (self._end[-1] if self._end else 0.0) + GAP / 2
        side = max((strip.end for strip in self._strips.values()), default=0.0)
        size = self._point(end, side)
        return Layout(self._down, middles, paths, labels, strips, (size.x, size.y))

    def _turned(self, size: Size) -> Size:
        """Return a size, given as width and height, as (along, across)."""
        return (size[1], size[0]) if self._down else size

    def _point(self, along: float, place: float) -> Point:
        return Point(place, along) if self._down else Point(along, place)

    def _along(self, name: str) -> float:
        row = self._layers.row[name]
        return (self._start[row] + self._end[row]) / 2

    def _port_places(self) -> dict[Route, float]:
        """Map each route to the coordinate of its end across; ends at one box are side by side."""
        found: dict[Route, float] = {}
        into: dict[str, list[Route]] = defaultdict(list)
        for route in self._layers.routes:
            into[route.head].append(route)
        for head, routes in into.items():
            room = 0.0 if head in self._drawing.points else self._wide[head] * 0.7
            step = min(PORT, room / max(1, len(routes) - 1))
            routes.sort(key=self._from)
            for i, route in enumerate(routes):
                found[route] = self._middle[head] + (i - (len(routes) - 1) / 2) * step
        return found

    def _from(self, route: Route) -> float:
        before = route.dummies[-1:] or route.tails
        return sum(self._middle[name] for name in before) / len(before)

    def _label_slots(self) -> dict[Route, int]:
        """Assign labels before one layer to slots, so that labels in one slot do not overlap."""
        slots: dict[Route, int] = {}
        ends: dict[int, list[float]] = defaultdict(list)
        for route in sorted(
            (t for t in self._layers.routes if t.label), key=self._ports.__getitem__
        ):
            half = self._turned(self._sizes.labels[route.label])[1] / 2 + 2
            taken = ends[self._layers.row[route.head]]
            slot = next(
                (i for i, end in enumerate(taken) if end <= self._ports[route] - half), len(taken)
            )
            taken[slot : slot + 1] = [self._ports[route] + half]
            slots[route] = slot
        return slots

    def _bands(self) -> tuple[list[float], list[float]]:
        """Return the start and the end of each layer along the drawing."""
        count = len(self._layers.rows)
        room, far = [0.0] * count, [0] * count
        for route, slot in self._slots.items():
            row = self._layers.row[route.head]
            room[row] = max(room[row], (slot + 1) * self._slot_length)
        for route in self._layers.routes:
            for tail in route.tails:
                place = joint(self._layers, route, tail)
                end = self._ports[route] if place == route.head else self._middle[place]
                distance = abs(self._middle[tail] - end)
                far[min(self._layers.row[tail] + 1, count - 1)] += distance > 3 * WIDEST_GAP
        starts, ends, along = [], [], self._head + GAP / 2
        for i, names in enumerate(self._layers.rows):
            gap = min(WIDEST_GAP, GAP + PER_LINE * far[i]) + room[i] if i else 0.0
            starts.append(along + gap)
            along = starts[-1] + max(self._long.get(name, 0.0) for name in names)
            ends.append(along)
        return starts, ends

    @property
    def _slot_length(self) -> float:
        return max((self._turned(s)[0] for s in self._sizes.labels.values()), default=0.0) + 3

    def _paths(self, route: Route) -> list[Path]:
        """Return the paths of a route and of the lines that join it; a route has one arrowhead."""
        arrow = route.head not in self._drawing.points
        paths = []
        if route.dummies:
            passing = [p for name in route.dummies for p in self._pass(name)]
            paths.append(Path(route.kind, (*passing, *self._arrival(route)), arrow))
        for tail in route.tails:
            row, place = self._layers.row[tail], self._middle[tail]
            leave = self._along(tail) + self._long[tail] / 2
            start = (self._point(leave, place), self._point(self._end[row], place))
            to = joint(self._layers, route, tail)
            if to == route.head:
                end = self._arrival(route)
                paths.append(Path(route.kind, (*start, *end), arrow and not route.dummies))
            else:
                paths.append(Path(route.kind, (*start, self._pass(to)[0]), False))
        return paths

    def _pass(self, place: str) -> tuple[Point, Point]:
        row, middle = self._layers.row[place], self._middle[place]
        return self._point(self._start[row], middle), self._point(self._end[row], middle)

    def _arrival(self, route: Route) -> tuple[Point, Point]:
        """Return the last straight piece of a route: past its label, into its head."""
        slot = self._slots.get(route, -1)
        edge = self._along(route.head) - self._long[route.head] / 2
        before = self._start[self._layers.row[route.head]] - ARROW - (slot + 1) * self._slot_length
        port = self._ports[route]
        return self._point(before, port), self._point(edge, port)

    def _label(self, route: Route) -> tuple[str, Point]:
        slot = self._slots[route] + 0.5
        along = self._start[self._layers.row[route.head]] - ARROW - slot * self._slot_length
        half = self._turned(self._sizes.labels[route.label])[1] / 2
        return route.label, self._point(along, max(half, self._ports[route]))
