# SPDX-License-Identifier: Apache-2.0
"""Draws a timeline as SVG: lanes with rows of bars, planned times above them, waits before them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from applier.timeline.texts import Place, Tick, cut, labels, ticks, title
from applier.timeline.values import Bar, Chart, Reason, TimeSpan
from applier.wording import count, duration
from planner.render.look import LOOKS, OUTLINED, numbered, types
from planner.render.shapes import (
    SMALL,
    document,
    element,
    group,
    head,
    rectangle,
    swatch,
    text,
    titled,
    width_of,
)

#: The width of a picture, unless another is asked for.
WIDTH = 1000
_MARGIN, _AXIS, _LETTER = 12.0, 34.0, 6.4
#: Lane names are bold, and wider than small text.
_BOLD = 1.2
#: The heights of a bar, of its planned time, and of a wait, and the space between rows, in pixels.
#: Rows and waits begin at multiples of the size of the patterns, which look the same in all rows.
BAR, PLANNED, WAIT, SPACE = 18.0, 4.0, 12.0, 6.0
_FAILED = ("FAILED", "REVERT_FAILED")
#: For each reason to wait, what the legend says, and the lines of its pattern, 6 by 6 pixels.
_REASONS = {
    Reason.NEED: ("waits for an action that it needs", "M0 3H6"),
    Reason.ORDER: ("waits for an action before it", "M0 3H2M4 3H6"),
    Reason.LIMIT: ("waits for a limit", "M-1 7L7 -1M-1 1L1 -1M5 7L7 5"),
    Reason.WORKER: ("waits for a worker", "M-1 -1L7 7M-1 5L1 7M5 -1L7 1"),
    Reason.PLAN: (
        "waits for another plan",
        "M-1 7L7 -1M-1 1L1 -1M5 7L7 5M-1 -1L7 7M-1 5L1 7M5 -1L7 1",
    ),
    Reason.PAUSE: ("waits for the plan to go on", "M1.5 0V6M4.5 0V6"),
    Reason.WINDOW: ("waits for a window", "M0 3H6M3 0V6"),
    Reason.OTHER: ("waits for something else", "M2 2h1.5M5 5h1.5"),
}


class Scale:
    """Maps seconds to horizontal positions in pixels, between ``left`` and ``right``."""

    def __init__(self, chart: Chart, left: float, right: float) -> None:
        self.left, self.right = left, right
        self._wide = (right - left) / (chart.span_s + chart.least_s)
        self.least = chart.least_s * self._wide

    def __call__(self, at_s: float) -> float:
        """Return the position of a time in seconds."""
        return self.left + at_s * self._wide

    def span(self, one: TimeSpan) -> tuple[float, float]:
        """Return the left end of a time and its width, wide enough to be seen."""
        return self(one.start_s), max(self(one.end_s) - self(one.start_s), self.least)

    def end(self, bar: Bar) -> float:
        """Return the right end of a bar, which is wide enough to be seen."""
        return max(self(bar.end_s), self(bar.first_s) + self.least)


def render(chart: Chart, width: int = WIDTH, *, own_style: bool = True) -> str:
    """Return a timeline as SVG of a width in pixels; the height follows from the rows.

    It is light or dark as the system of the reader prefers. Each bar has a title for the mouse and
    for screen readers. The same plan with other uuids has the same text. Without ``own_style``, the
    page around it has to have the style sheet.
    """
    widest = max((width_of(lane.title, SMALL) * _BOLD for lane in chart.lanes), default=0.0)
    scale = Scale(chart, _MARGIN + min(widest + 14, 0.22 * width), width - _MARGIN)
    inner = width - 2 * _MARGIN
    name = f"{chart.plan.name or chart.plan.planner}: {chart.plan.state}"
    above, head_height, _ = head(cut(name, inner * 0.58), _entries(chart), _MARGIN, inner)
    top = (head_height + _AXIS) // 6 * 6
    tops = [top]
    for lane in chart.lanes:
        tops.append(tops[-1] + len(lane.rows) * _row_height(chart) + SPACE)
    bottom = tops[-1]
    marks = ticks(chart.span_s, chart.began, (scale.right - scale.left) / _LETTER)
    bands = list(pairwise(tops))[::2]
    return document(
        name,
        width,
        bottom + _MARGIN,
        [
            element("defs", "".join(map(_pattern, Reason))),
            *above,
            *(rectangle("band", 0, start, width, end - start) for start, end in bands),
            *_grid(marks, scale, top, bottom),
            *_now(chart, scale, top, bottom),
            *_lanes(chart, scale, tops),
        ],
        own_style=own_style,
    )


def _grid(marks: Sequence[Tick], scale: Scale, top: float, bottom: float) -> Iterator[str]:
    for tick in marks:
        x = scale(tick.at_s)
        yield element("path", kind="grid", d=f"M{x:.1f} {top - 4:.1f}V{bottom:.1f}")
        half = width_of(tick.text, SMALL) / 2
        yield text("tick", min(max(x, half), scale.right - half), top - 12, tick.text)


def _now(chart: Chart, scale: Scale, top: float, bottom: float) -> Iterator[str]:
    if chart.now_s is not None:
        x = scale(chart.now_s)
        yield element("path", kind="now", d=f"M{x:.1f} {top - 4:.1f}V{bottom:.1f}")
        yield text("tick", min(x, scale.right - 10), top - 27, "now")


def _lanes(chart: Chart, scale: Scale, tops: Sequence[float]) -> Iterator[str]:
    high, numbers, of_types = _row_height(chart), numbered(chart.plan), types(chart.plan)
    for lane, top in zip(chart.lanes, tops, strict=False):
        title = _lane_name(lane.title, (scale.left - _MARGIN - 6) / _BOLD)
        parts = [text("lane-name", _MARGIN, top + high / 2, title, aria_hidden="true")]
        for n, bars in enumerate(lane.rows):
            parts += _row(chart, bars, scale, top + SPACE / 2 + n * high, numbers, of_types)
        yield group("lane", lane.title, "\n".join(parts))


def _lane_name(title: str, width: float) -> str:
    """Cut the title of a lane to a width in pixels, before its last four characters.

    Titles of neighbouring lanes often differ only at their ends.
    """
    if width_of(title, SMALL) <= width:
        return title
    end = title[-4:]
    return cut(title, width - width_of(end, SMALL)) + end


def _row_height(chart: Chart) -> float:
    """Return the height of a row with the space below it."""
    return BAR + SPACE + (PLANNED + 2 if chart.began else 0)


def _row(
    chart: Chart,
    bars: Sequence[Bar],
    scale: Scale,
    top: float,
    numbers: Mapping[str, int],
    of_types: Mapping[str, str],
) -> Iterator[str]:
    """Yield the elements of a row: each bar with its waits, and then the names of the bars."""
    at = top + (PLANNED + 2 if chart.began else 0)
    before, places = scale.left, list[Place]()
    for bar in bars:
        parts = [*_waits(bar, scale, before, at), *_planned(bar, scale, top)]
        parts += _bar(chart, bar, scale, at)
        look = of_types.get(bar.actions[0].action_type, bar.state)
        kind = f"bar {look}{' critical' * bar.is_critical}{' several' * (len(bar.actions) > 1)}"
        number = numbers[bar.actions[0].uuid]
        yield titled(kind, title(chart, bar), "".join(parts), data_r=number)
        before = scale.end(bar)
        name = bar.name + (f" x {len(bar.actions)}" if len(bar.actions) > 1 else "")
        left, inner, mark = scale(bar.first_s), scale(bar.start_s), LOOKS[bar.state].mark
        places.append(Place(left, inner, before, name, mark, bar.state in _FAILED))
    names: list[str] = []
    has_patterns = any(bar.waits or bar.state in _FAILED for bar in bars)
    for one in labels(places, scale.left, scale.right):
        if has_patterns and not one.is_inside:
            # A name is never on the pattern of a wait.
            wide = width_of(one.text, SMALL)
            names.append(rectangle("halo", one.x - 2, at + 2, wide + 4, BAR - 4))
        kind = "label inside" if one.is_inside else "label"
        names.append(text(kind, one.x, at + BAR / 2, one.text))
    yield element("g", "\n".join(names), aria_hidden="true")


def _waits(bar: Bar, scale: Scale, before: float, top: float) -> Iterator[str]:
    """Yield the waits of a bar, without the parts before ``before``, where another bar ends."""
    for wait in bar.waits:
        left, right = max(before, scale(wait.start_s)), scale(wait.end_s)
        if right - left >= 1:
            yield _wait(wait.reason, left, top + (BAR - WAIT) / 2, right - left)


def _wait(reason: Reason, left: float, top: float, width: float) -> str:
    return rectangle("wait", left, top, width, WAIT, fill=f"url(#{_pattern_name(reason)})")


def _pattern_name(reason: Reason) -> str:
    return f"wait-{reason.replace(' ', '-')}"


def _pattern(reason: Reason) -> str:
    size = {"width": 6, "height": 6, "patternUnits": "userSpaceOnUse"}
    lines = element("path", d=_REASONS[reason][1])
    return element("pattern", lines, kind="hatch", id=_pattern_name(reason), **size)


def _planned(bar: Bar, scale: Scale, top: float) -> Iterator[str]:
    if bar.planned is not None:
        left, wide = scale.span(bar.planned)
        # The planned times of two bars that follow each other are a pixel apart.
        yield rectangle("plan", left, top, max(wide - 1, scale.least), PLANNED)


def _bar(chart: Chart, bar: Bar, scale: Scale, top: float) -> Iterator[str]:
    for attempt in bar.earlier:
        left, wide = scale.span(attempt)
        yield _crossed(left, top + 3, wide, BAR - 6)
    left, right = scale(bar.start_s), scale.end(bar)
    now = None if chart.now_s is None else scale(chart.now_s)
    if bar.state in _FAILED:
        yield _crossed(left, top, right - left, BAR)
        return
    if bar.state == "ONGOING" and now is not None and left < now < right:
        yield rectangle("rest", now, top, right - now, BAR)
        right = now
    inset = 2 if bar.state in OUTLINED else 0
    yield rectangle("run", left, top + inset, right - left, BAR - 2 * inset, rx=2)


def _crossed(left: float, top: float, wide: float, high: float) -> str:
    """Return a box, and as many crosses side by side in it as have room."""
    number = max(1, int(wide // (2 * high)))
    step = wide / number
    cross = f"l{step:.1f} {high:.1f}m0 {-high:.1f}l{-step:.1f} {high:.1f}"
    path = "".join(f"M{left + n * step:.1f} {top:.1f}{cross}" for n in range(number))
    return rectangle("run", left, top, wide, high, rx=2) + element("path", kind="cross", d=path)


def _entries(chart: Chart) -> Iterator[tuple[str, str]]:
    """Yield the entries of the legend: first what the whole plan is and took, without samples."""
    bars = chart.bars
    number = sum(len(bar.actions) for bar in bars)
    yield "", count(number, "action")
    if number > len(bars):
        yield "", f"in {count(len(bars), 'bar')}: x N means N actions"
    expected = duration(chart.expected_s)
    yield "", f"expected to take {expected}" if chart.began is None else f"planned {expected}"
    if chart.began is not None:
        yield "", chart.taken
        yield "", f"{chart.began:%Y-%m-%d}, local time (UTC{chart.began:%z})"
    numbers, of_types = Counter[str](), types(chart.plan)
    for bar in bars:
        numbers[of_types.get(bar.actions[0].action_type, bar.state)] += len(bar.actions)
    names = {word: name for name, word in of_types.items()}
    for word in LOOKS:
        cross = element("path", kind="cross", d="M0 0L24 15M0 15L24 0") if word in _FAILED else ""
        if numbers[word]:
            yield swatch("bar", word, cross), f"{names.get(word, word)} ({numbers[word]})"
    yield from _signs(chart, bars)


def _signs(chart: Chart, bars: Sequence[Bar]) -> Iterator[tuple[str, str]]:
    if any(bar.is_critical for bar in bars):
        yield swatch("bar critical", "PENDING"), "critical path: decides the end"
    if any(bar.planned is not None for bar in bars):
        yield rectangle("plan", 0, 5, 24, PLANNED), "planned"
    if chart.now_s is not None:
        yield element("path", kind="now", d="M12 0V15"), "now; on the right of it: expected"
    if any(bar.earlier for bar in bars):
        yield element("g", _crossed(0, 3, 24, 10), kind="bar FAILED"), "earlier attempt"
    known = {wait.reason for bar in bars for wait in bar.waits}
    for reason, (meaning, _) in _REASONS.items():
        if reason in known:
            yield _wait(reason, 0, 0, 24), meaning
