# SPDX-License-Identifier: Apache-2.0
"""Draws one row of a timeline: its bars, the planned times above them, the waits before them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from applier.timeline.labels import BarLabel, Place, labels
from applier.timeline.style import OUTLINED, pattern_name
from applier.timeline.values import Bar, Chart
from applier.timeline.words import shown, title, written
from planner.render.look import LOOKS

#: The heights of a bar, of its planned time, and of a wait, and the space between rows, in pixels.
#: Rows and waits begin at multiples of the size of the patterns, which look the same in all rows.
BAR, PLANNED, WAIT, SPACE = 18.0, 4.0, 12.0, 6.0
FAILED = ("FAILED", "REVERT_FAILED")


class Scale:
    """Maps seconds to horizontal positions in pixels, between ``left`` and ``right``."""

    def __init__(self, chart: Chart, left: float, right: float) -> None:
        self.left, self.right = left, right
        self._wide = (right - left) / (chart.span_s + chart.least_s)
        self.least = chart.least_s * self._wide

    def __call__(self, at_s: float) -> float:
        """Return the position of a time in seconds."""
        return self.left + at_s * self._wide


def row_height(chart: Chart) -> float:
    """Return the height of a row with the space below it."""
    return BAR + SPACE + (PLANNED + 2 if chart.began else 0)


def row(chart: Chart, bars: Sequence[Bar], scale: Scale, top: float) -> Iterator[str]:
    """Yield the SVG elements of a row: each bar with its waits, and then the names of the bars."""
    at = top + (PLANNED + 2 if chart.began else 0)
    before = scale.left
    for bar in bars:
        yield (
            f'<g class="bar {bar.state}{" critical" if bar.is_critical else ""}" role="img">'
            f"<title>{escape(chr(10).join(title(chart, bar)))}</title>"
            f"{''.join(_waits(bar, scale, before, at))}{_planned(bar, scale, top)}"
            f"{''.join(_bar(chart, bar, scale, at))}</g>"
        )
        before = _right(bar, scale)
    yield '<g aria-hidden="true">'
    for label in labels([_place(bar, scale) for bar in bars], scale.left, scale.right):
        yield _label(label, at + BAR / 2)
    yield "</g>"


def _right(bar: Bar, scale: Scale) -> float:
    return max(scale(bar.end_s), scale(bar.first_s) + scale.least)


def _place(bar: Bar, scale: Scale) -> Place:
    text = shown(bar.name) + (f" x {len(bar.actions)}" if len(bar.actions) > 1 else "")
    left, inner = scale(bar.first_s), scale(bar.start_s)
    return Place(left, inner, _right(bar, scale), text, LOOKS[bar.state].mark, bar.state in FAILED)


def _label(label: BarLabel, y: float) -> str:
    kind = "label inside" if label.is_inside else "label"
    return f'<text class="{kind}" x="{label.x:.1f}" y="{y:.1f}">{written(label.text)}</text>'


def _waits(bar: Bar, scale: Scale, before: float, top: float) -> Iterator[str]:
    """Yield the waits of a bar, without the parts before ``before``, where another bar ends."""
    for wait in bar.waits:
        left, right = max(before, scale(wait.start_s)), scale(wait.end_s)
        if right - left >= 1:
            yield (
                f'<rect class="wait" x="{left:.1f}" y="{top + (BAR - WAIT) / 2:.1f}" '
                f'width="{right - left:.1f}" height="{WAIT:.0f}" '
                f'fill="url(#wait-{pattern_name(wait.reason)})"/>'
            )


def _planned(bar: Bar, scale: Scale, top: float) -> str:
    if bar.planned is None:
        return ""
    left, right = (scale(at) for at in bar.planned)
    # The planned times of two bars that follow each other are a pixel apart.
    wide = max(right - left - 1, scale.least)
    return f'<rect class="plan" {_box(left, top, wide, PLANNED)}/>'


def _bar(chart: Chart, bar: Bar, scale: Scale, top: float) -> Iterator[str]:
    for attempt in bar.earlier:
        left, right = (scale(at) for at in attempt)
        yield from _crossed("run", left, top + 3, max(right - left, scale.least), BAR - 6)
    left, right = scale(bar.start_s), _right(bar, scale)
    now = None if chart.now_s is None else scale(chart.now_s)
    if bar.state in FAILED:
        yield from _crossed("run", left, top, right - left, BAR)
        return
    if bar.state == "ONGOING" and now is not None and left < now < right:
        yield f'<rect class="rest" {_box(now, top, right - now, BAR)}/>'
        right = now
    inset = 2 if bar.state in OUTLINED else 0
    yield f'<rect class="run" {_box(left, top + inset, right - left, BAR - 2 * inset)} rx="2"/>'


def _crossed(kind: str, left: float, top: float, wide: float, high: float) -> Iterator[str]:
    """Yield a box, and as many crosses side by side in it as have room."""
    yield f'<rect class="{kind}" {_box(left, top, wide, high)} rx="2"/>'
    number = max(1, int(wide // (2 * high)))
    step = wide / number
    cross = f"l{step:.1f} {high:.1f}m0 {-high:.1f}l{-step:.1f} {high:.1f}"
    path = "".join(f"M{left + n * step:.1f} {top:.1f}{cross}" for n in range(number))
    yield f'<path class="cross" d="{path}"/>'


def _box(left: float, top: float, wide: float, high: float) -> str:
    return f'x="{left:.1f}" y="{top:.1f}" width="{wide:.1f}" height="{high:.1f}"'
