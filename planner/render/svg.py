# SPDX-License-Identifier: Apache-2.0
"""A plan in SVG, made without another program; the picture contains no script."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape
from itertools import pairwise
from unicodedata import east_asian_width

from planner.model import Action, ActionPlan
from planner.render.boxes import Box, Drawing, about, printable, tooltip
from planner.render.drawing import draw
from planner.render.drawn_graph import DrawnGraph
from planner.render.equivalence import Depth, depths
from planner.render.layout import Layout, Path, Point, Size, Sizes, layout
from planner.render.legend import legend

#: In pixels: the margin of the picture, the width of a letter, the height of a line of text, the
#: padding of a box. LONGEST is the maximum number of characters in a line of text.
MARGIN, LETTER, LINE, PADDING, LONGEST = 16.0, 6.9, 15.0, 9.0, 44

STYLE = """
text { font: 12px sans-serif; fill: #1a1a1a; text-anchor: middle; dominant-baseline: central; }
.about, .label { font-size: 11px; fill: #444444; }
.plan { font-size: 17px; font-weight: bold; text-anchor: start; }
.legend, .row, .lane text { text-anchor: start; }
.lane text { font-weight: bold; }
.lane rect { fill: #f4f6f8; stroke: #d5dbe1; }
.box rect { stroke: #555555; stroke-width: 1.1; }
.box.FAILED rect, .box.UNKNOWN rect, .box.REVERT_FAILED rect { stroke: #b00000; stroke-width: 2; }
.box .more { fill: #ffffff; }
.mark { font-weight: bold; }
.point { fill: #333333; }
path { fill: none; stroke-width: 1.3; }
.need { stroke: #333333; }
.any { stroke: #333333; stroke-dasharray: 7 4; }
.order { stroke: #9aa3ad; }
.trigger { stroke: #7a3db8; stroke-dasharray: 1.5 3.5; stroke-width: 1.8; }
.halo { fill: #ffffff; fill-opacity: 0.85; stroke: none; }
.page { fill: #ffffff; }
.head { fill: #333333; stroke: none; }
.head.order { fill: #9aa3ad; }
.head.trigger { fill: #7a3db8; }
"""


def render(plan: ActionPlan, keep: Callable[[Action], bool] | None = None) -> str:
    """Return a plan, or only those of its actions that ``keep`` accepts, as one SVG document.

    The text does not depend on uuids. A layer holds the actions with the same length of the longest
    path to them. Lanes are machines, groups or resources. In a plan with more than
    planner.render.drawing.MANY actions, equivalent actions share a box.
    """
    return picture(plan, keep, f"<style>{STYLE}</style>")


def picture(plan: ActionPlan, keep: Callable[[Action], bool] | None = None, look: str = "") -> str:
    """Return the ``svg`` element of a plan.

    ``look`` is a ``style`` element to include. Without it, the page has to contain STYLE.
    """
    drawing = draw(plan, keep)
    found = layout(drawing, _depths(drawing), _sizes(drawing))
    head, top, wide = legend(plan, drawing, MARGIN, max(found.size[0], 620.0))
    width, height = max(found.size[0], wide) + 2 * MARGIN, top + found.size[1] + MARGIN
    title = escape(printable(plan.name or plan.planner))
    return "\n".join(
        [
            '<svg xmlns="http://www.w3.org/2000/svg" role="graphics-document document" '
            f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">',
            f"<title>{title}: {plan.state}</title>",
            *([look] if look else []),
            f'<rect class="page" width="{width:.0f}" height="{height:.0f}"/>',
            f"<defs>{''.join(map(_marker, ('need', 'any', 'order', 'trigger')))}</defs>",
            *head,
            f'<g transform="translate({MARGIN:.0f} {top:.0f})">',
            *_lanes(drawing, found),
            '<g aria-hidden="true">',
            *(_path(path, found.down) for path in found.paths),
            *(_point(found.middles[point]) for point in drawing.points),
            "</g>",
            *(_box(name, box, found.middles[name]) for name, box in drawing.boxes.items()),
            *(_label(label.text, label.middle) for label in found.labels),
            "</g>",
            "</svg>",
            "",
        ]
    )


def _depths(drawing: Drawing) -> dict[str, Depth]:
    graph = DrawnGraph([*drawing.boxes, *drawing.points])
    for line in drawing.lines:
        graph.line(*line)
    return depths(graph, drawing.points)


def _texts(box: Box) -> list[str]:
    """Return the lines of a box: its names, and its description if that differs from them."""
    rows = [_cut(row) for row in box.rows()]
    what = _cut(printable(about(box)))
    return rows if box.lane is not None or what in rows else [*rows, what]


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 13]}…{text[-12:]}"


def text_width(text: str) -> float:
    """Estimate the width of a text in pixels; rather too large than too small."""
    return sum(2 * LETTER if east_asian_width(c) in "WF" else LETTER for c in text)


def _box_size(box: Box) -> Size:
    texts = _texts(box)
    mark = 2 * LETTER if box.look.mark else 0.0
    return max(map(text_width, texts)) + mark + 2 * PADDING, LINE * len(texts) + PADDING


def _sizes(drawing: Drawing) -> Sizes:
    return Sizes(
        boxes={name: _box_size(box) for name, box in drawing.boxes.items()},
        titles={n: (text_width(_cut(t)) + PADDING, LINE + 8) for n, t in drawing.lanes.items()},
        labels={x.label: (text_width(x.label) + 4, 13.0) for x in drawing.lines if x.label},
    )


def _lanes(drawing: Drawing, found: Layout) -> Iterator[str]:
    for lane, title in drawing.lanes.items():
        start, end = found.strips[lane]
        long = found.size[1] if found.down else found.size[0]
        text = escape(_cut(title))
        if found.down:
            shape = f'x="{start:.1f}" y="0" width="{end - start:.1f}" height="{long:.1f}"'
            where = f'x="{start + PADDING:.1f}" y="{LINE:.1f}"'
        else:
            shape = f'x="0" y="{start:.1f}" width="{long:.1f}" height="{end - start:.1f}"'
            where = f'x="{PADDING:.1f}" y="{(start + end) / 2:.1f}"'
        yield (
            f'<g class="lane" role="group"><title>{escape(title)}</title><rect {shape} rx="8"/>'
            f"<text {where}>{text}</text></g>"
        )


def _box(name: str, box: Box, middle: Point) -> str:
    width, height = _box_size(box)
    left, top = middle.x - width / 2, middle.y - height / 2
    shape = f'width="{width:.1f}" height="{height:.1f}" rx="6"'
    parts = [f'<g class="box {box.look.word}" id="{name}" role="img">{_title(tooltip(box))}']
    if len(box.actions) > len(box.names):
        parts.append(f'<rect class="more" x="{left + 4:.1f}" y="{top + 4:.1f}" {shape}/>')
    parts.append(f'<rect x="{left:.1f}" y="{top:.1f}" {shape} fill="{box.look.fill}"/>')
    if box.look.mark:
        where = f'x="{left + PADDING + LETTER / 2:.1f}" y="{middle.y:.1f}"'
        parts.append(f'<text class="mark" {where}>{escape(box.look.mark)}</text>')
    texts = _texts(box)
    listed, x = len(box.names) > 1, middle.x + (LETTER if box.look.mark else 0.0)
    if listed:
        x = left + PADDING + (2 * LETTER if box.look.mark else 0.0)
    for i, text in enumerate(texts):
        y = middle.y + (i - (len(texts) - 1) / 2) * LINE
        kinds = ["row"] * listed + ["about"] * (i >= len(box.rows()))
        kind = f' class="{" ".join(kinds)}"' if kinds else ""
        parts.append(f'<text{kind} x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>')
    return "".join([*parts, "</g>"])


def _title(lines: Sequence[str]) -> str:
    return f"<title>{escape(chr(10).join(lines))}</title>"


def _point(middle: Point) -> str:
    return f'<circle class="point" cx="{middle.x:.1f}" cy="{middle.y:.1f}" r="4"/>'


def _path(path: Path, down: bool) -> str:
    text = f"M{path.stops[0].x:.1f} {path.stops[0].y:.1f}"
    for i, (a, b) in enumerate(pairwise(path.stops)):
        text += _bent(a, b, down) if i % 2 else f"L{b.x:.1f} {b.y:.1f}"
    arrow = f' marker-end="url(#arrow-{path.kind})"' if path.arrow else ""
    return f'<path class="{path.kind}" d="{text}"{arrow}/>'


def _bent(a: Point, b: Point, down: bool) -> str:
    x, y = (a.x + b.x) / 2, (a.y + b.y) / 2
    if down:
        return f"C{a.x:.1f} {y:.1f} {b.x:.1f} {y:.1f} {b.x:.1f} {b.y:.1f}"
    return f"C{x:.1f} {a.y:.1f} {x:.1f} {b.y:.1f} {b.x:.1f} {b.y:.1f}"


def _label(text: str, middle: Point) -> str:
    width = text_width(text) + 4
    return (
        f'<rect class="halo" x="{middle.x - width / 2:.1f}" y="{middle.y - 6.5:.1f}" '
        f'width="{width:.1f}" height="13"/>'
        f'<text class="label" x="{middle.x:.1f}" y="{middle.y:.1f}">{escape(text)}</text>'
    )


def _marker(kind: str) -> str:
    shape = "M0 1L8 4L0 7z" if kind in ("need", "any") else "M0 1L8 4L0 7L2 4z"
    return (
        f'<marker id="arrow-{kind}" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" '
        f'markerHeight="8" orient="auto" markerUnits="userSpaceOnUse">'
        f'<path class="head {kind}" d="{shape}"/></marker>'
    )
