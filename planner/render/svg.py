# SPDX-License-Identifier: Apache-2.0
"""The graph of a plan in SVG, made without another program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

from planner.plan.model import Action, ActionPlan
from planner.render import shapes
from planner.render.drawing import (
    KINDS,
    MOST_BOXES,
    Box,
    Drawing,
    about,
    depths_of,
    draw,
    folded,
    notes,
    tooltip,
)
from planner.render.layout import Layout, Path, Point, Size, Sizes, layout
from planner.render.look import LOOKS, MEANINGS, numbered

#: In pixels: the margin of the picture, the height of a line of text, the padding of a box. LONGEST
#: is the maximum number of characters in a line of text.
MARGIN, LINE, PADDING, LONGEST = 16.0, 15.0, 9.0, 44


def render(
    plan: ActionPlan,
    keep: Callable[[Action], bool] | None = None,
    *,
    own_style: bool = True,
) -> str:
    """Return a plan, or only those of its actions that ``keep`` accepts, as SVG.

    The text does not depend on uuids. A layer holds the actions with the same length of the longest
    path to them. Lanes are machines, groups or resources. In a plan with more than
    planner.render.drawing.MANY actions, equivalent actions share a box; with more than MOST_BOXES
    boxes, the picture is folded. Without ``own_style``, the
    page around it has to have the style sheet.
    """
    drawing = draw(plan, keep)
    if len(drawing.boxes) > MOST_BOXES:
        drawing = folded(drawing)
    found = layout(drawing, depths_of(drawing), _sizes(drawing))
    title = f"{plan.name or plan.planner}: {plan.state}"
    above, top, wide = shapes.head(title, _legend(drawing), MARGIN, max(found.size[0], 620.0))
    numbers = numbered(plan)
    lines = [*(_path(path, found.down) for path in found.paths)]
    points = (found.middles[point] for point in drawing.points)
    lines += [shapes.element("circle", kind="point", cx=at.x, cy=at.y, r=4) for at in points]
    inside = [
        *_lanes(drawing, found),
        shapes.element("g", "\n".join(lines), aria_hidden="true") if lines else "",
        *(_box(name, box, found.middles[name], numbers) for name, box in drawing.boxes.items()),
        *(_label(said, middle) for said, middle in found.labels),
    ]
    return shapes.document(
        title,
        max(found.size[0], wide) + 2 * MARGIN,
        top + found.size[1] + MARGIN,
        [
            shapes.element("defs", "".join(map(_marker, KINDS))),
            *above,
            shapes.element("g", "\n".join(inside), transform=f"translate({MARGIN:.0f} {top:.0f})"),
        ],
        own_style=own_style,
    )


def _legend(drawing: Drawing) -> Iterator[tuple[str, str]]:
    counts: Counter[str] = Counter()
    meanings = dict(MEANINGS)
    for box in drawing.boxes.values():
        counts[box.look.word] += len(box.actions)
        if box.look.word.startswith("TYPE_"):
            meanings[box.look.word] = box.actions[0].action_type
    for word in LOOKS:
        if counts[word]:
            yield shapes.swatch("sample", word), f"{meanings.get(word, word)} ({counts[word]})"
    kinds = {line.kind for line in drawing.lines}
    for kind, meaning in KINDS.items():
        if kind in kinds:
            yield shapes.element("path", kind=kind, d="M0 8L24 8", marker_end=_arrow(kind)), meaning
    yield from (("", said) for said in notes(drawing))


def _texts(box: Box) -> list[str]:
    """Return the lines of a box: its names, and its description if that differs from them."""
    rows = [_cut(row) for row in box.rows()]
    what = _cut(about(box))
    return rows if box.lane is not None or what in rows else [*rows, what]


def _cut(said: str) -> str:
    return said if len(said) <= LONGEST else f"{said[: LONGEST - 13]}…{said[-12:]}"


def _box_size(box: Box) -> Size:
    texts = _texts(box)
    mark = 2 * shapes.LETTER if box.look.mark else 0.0
    return max(map(shapes.width_of, texts)) + mark + 2 * PADDING, LINE * len(texts) + PADDING


def _sizes(drawing: Drawing) -> Sizes:
    return Sizes(
        boxes={name: _box_size(box) for name, box in drawing.boxes.items()},
        titles={
            n: (shapes.width_of(_cut(t)) + PADDING, LINE + 8) for n, t in drawing.lanes.items()
        },
        labels={x.label: (shapes.width_of(x.label) + 4, 13.0) for x in drawing.lines if x.label},
    )


def _lanes(drawing: Drawing, found: Layout) -> Iterator[str]:
    for lane, title in drawing.lanes.items():
        start, end = found.strips[lane]
        if found.down:
            strip = shapes.rectangle("strip", start, 0, end - start, found.size[1], rx=8)
            name = shapes.text("lane-name", start + PADDING, LINE, _cut(title))
        else:
            strip = shapes.rectangle("strip", 0, start, found.size[0], end - start, rx=8)
            name = shapes.text("lane-name", PADDING, (start + end) / 2, _cut(title))
        yield shapes.group("lane", title, strip + name)


def _box(name: str, box: Box, middle: Point, numbers: Mapping[str, int]) -> str:
    width, height = _box_size(box)
    left, top = middle.x - width / 2, middle.y - height / 2
    parts = []
    if len(box.actions) > len(box.names):
        parts.append(shapes.rectangle("more", left + 4, top + 4, width, height, rx=6))
    parts.append(shapes.rectangle("run", left, top, width, height, rx=6))
    if box.look.mark:
        parts.append(
            shapes.text("mark", left + PADDING + shapes.LETTER / 2, middle.y, box.look.mark)
        )
    texts, mark = _texts(box), 2 * shapes.LETTER if box.look.mark else 0.0
    listed = len(box.names) > 1
    x = left + PADDING + mark if listed else middle.x + mark / 2
    for i, said in enumerate(texts):
        kinds = ["row"] * listed + ["about"] * (i >= len(box.rows()))
        y = middle.y + (i - (len(texts) - 1) / 2) * LINE
        parts.append(shapes.text(" ".join(kinds) or "name", x, y, said))
    return shapes.titled(
        f"box {box.look.word}",
        tooltip(box),
        "".join(parts),
        id=name,
        data_r=numbers[box.actions[0].uuid],
    )


def _path(path: Path, down: bool) -> str:
    way = f"M{path.stops[0].x:.1f} {path.stops[0].y:.1f}"
    for i, (a, b) in enumerate(pairwise(path.stops)):
        way += _bent(a, b, down) if i % 2 else f"L{b.x:.1f} {b.y:.1f}"
    arrow = {"marker_end": _arrow(path.kind)} if path.arrow else {}
    return shapes.element("path", kind=path.kind, d=way, **arrow)


def _bent(a: Point, b: Point, down: bool) -> str:
    x, y = (a.x + b.x) / 2, (a.y + b.y) / 2
    if down:
        return f"C{a.x:.1f} {y:.1f} {b.x:.1f} {y:.1f} {b.x:.1f} {b.y:.1f}"
    return f"C{x:.1f} {a.y:.1f} {x:.1f} {b.y:.1f} {b.x:.1f} {b.y:.1f}"


def _label(said: str, middle: Point) -> str:
    width = shapes.width_of(said, shapes.SMALL) + 4
    halo = shapes.rectangle("halo", middle.x - width / 2, middle.y - 6.5, width, 13)
    return halo + shapes.text("tick", middle.x, middle.y, said)


def _arrow(kind: str) -> str:
    return f"url(#arrow-{kind})"


def _marker(kind: str) -> str:
    shape = "M0 1L8 4L0 7z" if kind in ("need", "any") else "M0 1L8 4L0 7L2 4z"
    size = {"markerWidth": 8, "markerHeight": 8, "markerUnits": "userSpaceOnUse"}
    end = {"viewBox": "0 0 8 8", "refX": 7.5, "refY": 4, "orient": "auto"}
    head_of_arrow = shapes.element("path", kind=f"head {kind}", d=shape)
    return shapes.element("marker", head_of_arrow, id=f"arrow-{kind}", **size, **end)
