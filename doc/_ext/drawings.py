# SPDX-License-Identifier: Apache-2.0
"""Draws graphs as SVG: layered ones by themselves, state charts where they are placed by hand.

Pure: nodes and edges go in, text comes out, the same for the same. Colours come from the page.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

import networkx as nx

LANE, GAP, HEIGHT, MARGIN = 46, 56, 30, 14
LETTER, PADDING = 7.9, 22

Point = tuple[float, float]


class Node(NamedTuple):
    """Something with a name; ``kind`` is its class in the picture."""

    name: str
    kind: str = "action"

    @property
    def width(self) -> float:
        return 26 if self.kind == "dot" else len(self.name) * LETTER + PADDING


class Edge(NamedTuple):
    """An arrow; ``kind`` is its class in the picture: need, order, line, or who may do it."""

    first: str
    second: str
    kind: str


def layered(title: str, nodes: Sequence[Node], edges: Sequence[Edge]) -> str:
    """Draw an acyclic graph from left to right, each node as far left as its edges let it."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(node.name for node in nodes)
    graph.add_edges_from((e.first, e.second) for e in edges)
    level = {n: i for i, names in enumerate(nx.topological_generations(graph)) for n in names}
    routes, layers = _with_waypoints(nodes, edges, level)
    links = [pair for route in routes.values() for pair in itertools.pairwise(route)]
    _untangle(layers, links)
    known = {node.name: node for node in nodes}
    widths = [max((known[n].width for n in layer if n in known), default=0) for layer in layers]
    tallest = max(map(len, layers), default=1)
    places: dict[str, Point] = {}
    x: float = MARGIN
    for layer, width in zip(layers, widths, strict=True):
        top = MARGIN + (tallest - len(layer)) * LANE / 2
        for lane, name in enumerate(layer):
            places[name] = (x + width / 2, top + lane * LANE + LANE / 2)
        x += width + GAP
    lines = [_arrow(e, _route(routes[e], places, known)) for e in edges]
    boxes = [_box(node, places[node.name]) for node in nodes]
    return _svg(title, x - GAP + MARGIN, 2 * MARGIN + tallest * LANE, [*lines, *boxes])


def placed(
    title: str,
    nodes: Mapping[Node, Point],
    edges: Sequence[Edge],
    routes: Mapping[tuple[str, str], Sequence[Point]],
) -> str:
    """Draw nodes where they are put; an edge goes straight, or by way of the points given."""
    known = {node.name: (node, place) for node, place in nodes.items()}
    twins: dict[tuple[str, str], int] = {}
    lines = []
    for edge in edges:
        pair = (edge.first, edge.second)
        shift = 9 * twins.get(pair, 0)
        twins[pair] = twins.get(pair, 0) + 1
        via = [(x + shift, y + shift) for x, y in routes.get(pair, ())]
        (a, start), (b, end) = known[edge.first], known[edge.second]
        start, end = (start[0] + shift, start[1]), (end[0], end[1] + shift)
        points = [_border(a, start, [*via, end][0]), *via, _border(b, end, [start, *via][-1])]
        lines.append(_arrow(edge, points))
    boxes = [_box(node, place) for node, place in nodes.items()]
    right = max(x + node.width / 2 for node, (x, _) in nodes.items())
    bottom = max(y for _, y in [*nodes.values(), *(p for via in routes.values() for p in via)])
    return _svg(title, right + MARGIN, bottom + HEIGHT / 2 + MARGIN, [*lines, *boxes])


def _with_waypoints(
    nodes: Sequence[Node], edges: Sequence[Edge], level: Mapping[str, int]
) -> tuple[dict[Edge, list[str]], list[list[str]]]:
    """Put a waypoint into each layer that a long edge crosses."""
    layers: list[list[str]] = [[] for _ in range(max(level.values(), default=0) + 1)]
    for node in nodes:
        layers[level[node.name]].append(node.name)
    routes = {}
    for edge in edges:
        crossed = range(level[edge.first] + 1, level[edge.second])
        points = [f"{edge.first} > {edge.second} @ {i}" for i in crossed]
        for i, point in zip(crossed, points, strict=True):
            layers[i].append(point)
        routes[edge] = [edge.first, *points, edge.second]
    return routes, layers


def _untangle(layers: list[list[str]], links: Sequence[tuple[str, str]]) -> None:
    """Order each layer by the middle of its neighbours, forwards and backwards a few times."""
    for sweep in range(6):
        forwards = sweep % 2 == 0
        for here, there in _neighbours(layers, forwards):
            lane = {name: i for i, name in enumerate(there)}
            pairs = links if forwards else [(b, a) for a, b in links]
            middle = {}
            for i, name in enumerate(here):
                near = [lane[a] for a, b in pairs if b == name and a in lane]
                middle[name] = sum(near) / len(near) if near else float(i)
            here.sort(key=middle.__getitem__)


def _neighbours(layers: list[list[str]], forwards: bool) -> list[tuple[list[str], list[str]]]:
    if forwards:
        return list(zip(layers[1:], layers[:-1], strict=True))
    return list(zip(layers[-2::-1], layers[:0:-1], strict=True))


def _route(
    route: Sequence[str], places: Mapping[str, Point], known: Mapping[str, Node]
) -> list[Point]:
    (x, y), (u, v) = places[route[0]], places[route[-1]]
    inside = [places[name] for name in route[1:-1]]
    return [(x + known[route[0]].width / 2, y), *inside, (u - known[route[-1]].width / 2, v)]


def _border(node: Node, place: Point, towards: Point) -> Point:
    """Where a line to a point leaves a box: straight up, down or across if it can, else slanted."""
    (x, y), (u, v) = place, towards
    dx, dy = u - x, v - y
    if dx and abs(dx) < node.width / 2 - 4 and abs(dy) > HEIGHT:
        return (u, y + HEIGHT / 2 * (1 if dy > 0 else -1))
    if dy and abs(dy) < HEIGHT / 2 - 4:
        return (x + node.width / 2 * (1 if dx > 0 else -1), v)
    reach = [half / abs(d) for half, d in ((node.width / 2, dx), (HEIGHT / 2, dy)) if d]
    part = min([*reach, 1.0])
    return (x + dx * part, y + dy * part)


def _arrow(edge: Edge, points: Sequence[Point]) -> str:
    curved = edge.kind in ("need", "order", "line")
    text = f"M {points[0][0]:.1f} {points[0][1]:.1f}"
    for (x, y), (u, v) in itertools.pairwise(points):
        bend = (u - x) / 2
        curve = f"C {x + bend:.1f} {y:.1f} {u - bend:.1f} {v:.1f} "
        text += f" {curve if curved else 'L '}{u:.1f} {v:.1f}"
    strong = "strong" if edge.kind in ("need", "ENGINE") else "faint"
    head = "" if edge.kind == "line" else f' marker-end="url(#arrow-{strong})"'
    first, second = escape(edge.first), escape(edge.second)
    return (
        f'<path class="{edge.kind}" data-from="{first}" data-to="{second}" d="{text}"{head}>'
        f"<title>{first} → {second}</title></path>"
    )


def _box(node: Node, place: Point) -> str:
    (x, y), name = place, escape(node.name)
    shape = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="13"/>'
    if node.kind != "dot":
        place_text = f'x="{x - node.width / 2:.1f}" y="{y - HEIGHT / 2:.1f}"'
        shape = f'<rect {place_text} width="{node.width:.1f}" height="{HEIGHT}" rx="6"/>'
    text = f'<text x="{x:.1f}" y="{y + 4.5:.1f}">{name}</text>'
    return f'<g class="{node.kind}">{shape}{text}</g>'


def _svg(title: str, width: float, height: float, parts: Sequence[str]) -> str:
    heads = "".join(
        f'<marker class="{name}" id="arrow-{name}" viewBox="0 0 8 8" refX="7.5" refY="4"'
        ' markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M 0 0.6 L 8 4 L 0 7.4 z"/></marker>'
        for name in ("strong", "faint")
    )
    return "\n".join(
        [
            f'<svg class="drawing" role="img" xmlns="http://www.w3.org/2000/svg" '
            f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">',
            f"<title>{escape(title)}</title>",
            f"<defs>{heads}</defs>",
            *parts,
            "</svg>",
        ]
    )
