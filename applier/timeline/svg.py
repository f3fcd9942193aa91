# SPDX-License-Identifier: Apache-2.0
"""Draws a timeline as SVG, which contains no script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from applier.timeline.axis import Tick, ticks
from applier.timeline.head import head
from applier.timeline.shapes import SPACE, Scale, row, row_height
from applier.timeline.style import patterns, style
from applier.timeline.values import Chart
from applier.timeline.words import cut, shown, small_width, written

#: The width of a picture, unless another is asked for.
WIDTH = 1000
_MARGIN, _AXIS, _LETTER = 12.0, 34.0, 6.4
#: Lane names are bold, and wider than small text.
_BOLD = 1.2


def render(chart: Chart, width: int = WIDTH) -> str:
    """Return a timeline as one SVG document of a width in pixels; the height follows from the rows.

    It is light or dark as the system of the reader prefers. Each bar has a title for the mouse and
    for screen readers. The same plan with other uuids has the same text.
    """
    return picture(chart, width, f"<style>{style()}</style>")


def picture(chart: Chart, width: int = WIDTH, look: str = "") -> str:
    """Return a timeline as an SVG element; ``look`` is its style element, if the page has none."""
    widest = max((small_width(shown(lane.title)) * _BOLD for lane in chart.lanes), default=0.0)
    scale = Scale(chart, _MARGIN + min(widest + 14, 0.25 * width), width - _MARGIN)
    above, head_height = head(chart, _MARGIN, width - 2 * _MARGIN)
    top = (head_height + _AXIS) // 6 * 6
    tops = [top]
    for lane in chart.lanes:
        tops.append(tops[-1] + len(lane.rows) * row_height(chart) + SPACE)
    bottom = tops[-1]
    height = bottom + _MARGIN
    marks = ticks(chart.span_s, chart.began, (scale.right - scale.left) / _LETTER)
    name = written(f"{chart.plan.name or chart.plan.planner}: {chart.plan.state}")
    return "\n".join(
        [
            '<svg xmlns="http://www.w3.org/2000/svg" role="graphics-document document" '
            f'width="{width}" height="{height:.0f}" viewBox="0 0 {width} {height:.0f}">',
            f"<title>{name}</title>",
            *([look] if look else []),
            f"<defs>{patterns()}</defs>",
            f'<rect class="page" width="{width}" height="{height:.0f}"/>',
            *above,
            *_bands(tops, width),
            *_grid(marks, scale, top, bottom),
            *_now(chart, scale, head_height, bottom),
            *_lanes(chart, scale, tops),
            "</svg>",
            "",
        ]
    )


def _bands(tops: Sequence[float], width: int) -> Iterator[str]:
    for top, bottom in list(pairwise(tops))[::2]:
        high = bottom - top
        yield f'<rect class="band" y="{top:.1f}" width="{width}" height="{high:.1f}"/>'


def _grid(marks: Sequence[Tick], scale: Scale, top: float, bottom: float) -> Iterator[str]:
    for tick in marks:
        x = scale(tick.at_s)
        yield f'<path class="grid" d="M{x:.1f} {top - 4:.1f}V{bottom:.1f}"/>'
        half = small_width(tick.text) / 2
        x = min(max(x, half), scale.right - half)
        yield f'<text class="tick" x="{x:.1f}" y="{top - 12:.1f}">{written(tick.text)}</text>'


def _now(chart: Chart, scale: Scale, top: float, bottom: float) -> Iterator[str]:
    if chart.now_s is not None:
        x = scale(chart.now_s)
        yield f'<path class="now" d="M{x:.1f} {top + 12:.1f}V{bottom:.1f}"/>'
        yield f'<text class="tick" x="{min(x, scale.right - 10):.1f}" y="{top + 4:.1f}">now</text>'


def _lanes(chart: Chart, scale: Scale, tops: Sequence[float]) -> Iterator[str]:
    high = row_height(chart)
    for lane, top in zip(chart.lanes, tops, strict=False):
        title = shown(lane.title)
        yield f'<g class="lane" role="group"><title>{written(title)}</title>'
        name = _lane_name(title, (scale.left - _MARGIN - 6) / _BOLD)
        middle = top + SPACE / 2 + (high - SPACE) / 2
        x = f'x="{_MARGIN:.1f}" y="{middle:.1f}"'
        yield f'<text class="lane-name" aria-hidden="true" {x}>{written(name)}</text>'
        for n, bars in enumerate(lane.rows):
            yield from row(chart, bars, scale, top + SPACE / 2 + n * high)
        yield "</g>"


def _lane_name(title: str, width: float) -> str:
    """Cut the title of a lane to a width in pixels, before its last four characters.

    Titles of neighbouring lanes often differ only at their ends.
    """
    if small_width(title) <= width:
        return title
    end = title[-4:]
    return cut(title, width - small_width(end)) + end
