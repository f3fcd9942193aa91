# SPDX-License-Identifier: Apache-2.0
"""Draws the head of a timeline: the name of the plan, notes about its time, and the legend."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from applier.timeline.shapes import FAILED
from applier.timeline.style import pattern_name
from applier.timeline.values import Bar, Chart, Reason
from applier.timeline.words import cut, shown, small_width, taken, written
from applier.wording import count, duration
from planner.render.look import LOOKS

_ROW, _SAMPLE = 20.0, 24.0
#: The text of the legend for each reason.
_REASONS = {
    Reason.NEED: "waits for an action that it needs",
    Reason.ORDER: "waits for an action before it",
    Reason.LIMIT: "waits for a limit",
    Reason.WORKER: "waits for a worker",
    Reason.PLAN: "waits for another plan",
    Reason.PAUSE: "waits for the plan to go on",
    Reason.WINDOW: "waits for a window",
    Reason.OTHER: "waits for something else",
}


def head(chart: Chart, left: float, width: float) -> tuple[list[str], float]:
    """Return the SVG elements above the axis, broken into lines of ``width``, and their height."""
    name = shown(f"{chart.plan.name or chart.plan.planner}: {chart.plan.state}")
    name = cut(name, width * 11 / 17 * 0.9)
    out = [f'<text class="plan-name" x="{left:.1f}" y="22">{written(name)}</text>']
    x, y = left, 48.0
    for sample, text in (*(("", note) for note in _notes(chart)), *_legend(chart)):
        room = (_SAMPLE + 6 if sample else 0) + small_width(text) + 16
        if x > left and x + room > left + width + 16:
            x, y = left, y + _ROW
        at = x
        if sample:
            out.append(f'<g transform="translate({x:.1f} {y - 8:.1f})">{sample}</g>')
            at += _SAMPLE + 6
        out.append(f'<text class="note" x="{at:.1f}" y="{y:.1f}">{written(text)}</text>')
        x += room
    return out, y + _ROW


def _bars(chart: Chart) -> list[Bar]:
    return [bar for lane in chart.lanes for row in lane.rows for bar in row]


def _notes(chart: Chart) -> Iterator[str]:
    bars = _bars(chart)
    number = sum(len(bar.actions) for bar in bars)
    yield count(number, "action")
    if number > len(bars):
        yield f"in {count(len(bars), 'bar')}: x N means N actions"
    if chart.began is None:
        yield f"expected to take {duration(chart.expected_s)}"
        return
    yield f"planned {duration(chart.expected_s)}"
    end_s = max((bar.end_s for bar in bars), default=0.0)
    yield taken(chart.plan, chart.began, chart.now_s, end_s)
    yield shown(f"{chart.began:%Y-%m-%d}, local time (UTC{chart.began:%z})")


def _legend(chart: Chart) -> Iterator[tuple[str, str]]:
    bars = _bars(chart)
    yield from _states(bars)
    if any(bar.is_critical for bar in bars):
        sample = '<g class="bar PENDING critical"><rect class="run" width="24" height="15"/></g>'
        yield sample, "critical path: decides the end"
    if any(bar.planned is not None for bar in bars):
        yield '<rect class="plan" y="5" width="24" height="4"/>', "planned"
    if chart.now_s is not None:
        yield '<path class="now" d="M12 0V15"/>', "now; on the right of it: expected"
    if any(bar.earlier for bar in bars):
        sample = (
            '<g class="bar"><rect class="run" fill="none" y="3" width="24" height="10"/>'
            '<path class="cross" d="M0 3L24 13M0 13L24 3"/></g>'
        )
        yield sample, "earlier attempt"
    known = {wait.reason for bar in bars for wait in bar.waits}
    for reason, meaning in _REASONS.items():
        if reason in known:
            fill = f'fill="url(#wait-{pattern_name(reason)})"'
            yield f'<rect class="wait" y="0" width="24" height="12" {fill}/>', meaning


def _states(bars: Sequence[Bar]) -> Iterator[tuple[str, str]]:
    numbers: Counter[str] = Counter()
    for bar in bars:
        numbers[bar.state] += len(bar.actions)
    for word, look in LOOKS.items():
        if not numbers[word]:
            continue
        cross = '<path class="cross" d="M0 0L24 15M0 15L24 0"/>' if word in FAILED else ""
        sample = (
            f'<g class="bar {word}"><rect class="run" width="24" height="15" rx="2"/>{cross}</g>'
            f'<text class="label" x="8" y="8">{look.mark}</text>'
        )
        yield sample, f"{word} ({numbers[word]})"
