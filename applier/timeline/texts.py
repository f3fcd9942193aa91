# SPDX-License-Identifier: Apache-2.0
"""The texts of a timeline: titles of bars, where their names have room, marks of the axis. Pure."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from applier.timeline.values import Bar, Chart
from applier.wording import duration
from planner.plan.model import Action
from planner.render.shapes import SMALL, width_of

#: The maximum number of names in the title of a bar of several actions, and of characters per line.
_NAMED, _LONGEST = 8, 300


def cut(text: str, width: float) -> str:
    """Return as much of a small text as fits a width in pixels, with an ellipsis if it was cut.

    An empty text is returned if not even two characters would be left.

    >>> cut("netconfig", 80), cut("netconfig", 40), cut("netconfig", 15)
    ('netconfig', 'netco…', '')
    """
    if width_of(text, SMALL) <= width:
        return text
    while text and width_of(text, SMALL) > width - width_of("…", SMALL):
        text = text[:-1]
    return f"{text.rstrip()}…" if len(text) > 1 else ""


def times(chart: Chart, start_s: float, end_s: float) -> str:
    """Return a text with a start, an end and the duration; times of day if the plan has begun."""
    took = end_s - start_s
    first, last = (_moment(chart.began, at_s, chart.span_s) for at_s in (start_s, end_s))
    return f"{first} to {last} ({duration(took)})" if took > 0 else f"at {first}"


def _moment(began: datetime | None, at_s: float, span_s: float) -> str:
    if began is None:
        return duration(at_s)
    return clock(began + timedelta(seconds=at_s), 0.1 if span_s < 30 else 1)


def title(chart: Chart, bar: Bar) -> list[str]:
    """Return the lines of the title of a bar: names, state, times, waits, messages."""
    many, first = len(bar.actions), bar.actions[0]
    lines = [f"{first.label if many == 1 else f'{many} x {bar.name}'}: {bar.state}"]
    if many == 1 and first.description:
        lines.append(first.description)
    lines.append(_when(chart, bar))
    if bar.planned is not None:
        lines.append(f"planned {times(chart, *bar.planned)}")
    waited = "the first waited" if many > 1 else "waited"
    lines += [f"{waited} {wait.said}" for wait in bar.waits]
    attempts = max(action.attempts for action in bar.actions)
    if attempts > 1:
        lines.append(f"attempt {attempts}")
    if bar.is_critical:
        lines.append("on the critical path")
    lines += _messages(bar.actions)
    if many > 1:
        more = f" and {many - _NAMED} more" if many > _NAMED else ""
        lines.append(", ".join(a.label for a in bar.actions[:_NAMED]) + more)
    return [line[:_LONGEST] for line in lines]


def _when(chart: Chart, bar: Bar) -> str:
    when = times(chart, bar.start_s, bar.end_s)
    now_s = 0.0 if chart.began is None else chart.now_s
    if now_s is None or (bar.end_s <= now_s and bar.state != "PENDING"):
        return when
    return f"expected {when}" if bar.start_s >= now_s else f"{when}, the end is expected"


def _messages(actions: tuple[Action, ...]) -> list[str]:
    """Return the message that most of the actions have, if any has one."""
    texts = Counter(a.status_message for a in actions if a.status_message)
    return [text for text, _ in texts.most_common(1)]


#: The space on each side of a text, in pixels.
_GAP = 4.0


class Place(NamedTuple):
    """A bar in a row, in pixels, with the text that it should have and its mark.

    ``inner`` is the left end of the part for text, to the right of earlier attempts. ``is_crossed``
    is true if the bar is drawn with crosses, on which text needs an outline.
    """

    left: float
    inner: float
    right: float
    text: str
    mark: str
    is_crossed: bool = False


class BarLabel(NamedTuple):
    """A text, its left end, and whether it is inside a bar without crosses: it needs no outline."""

    x: float
    text: str
    is_inside: bool


def labels(places: Sequence[Place], left: float, right: float) -> list[BarLabel]:
    """Return the labels of a row of bars between ``left`` and ``right``; labels do not overlap.

    A text is inside its bar if it fits there, else to the right or to the left of it. A text that
    fits nowhere is cut. If too little of it is left, only the mark is shown, or nothing.
    """
    found = []
    for i, place in enumerate(places):
        beyond = places[i + 1].left if i + 1 < len(places) else right
        spaces = [
            (place.inner, place.right, True),
            (place.right, beyond, False),
            (left, place.left, False),
        ]
        text, best = _best(place, spaces)
        if text:
            start, end, is_inside = best
            is_left = end == place.left and not is_inside
            x = end - _GAP - width_of(text, SMALL) if is_left else start + _GAP
            found.append(BarLabel(x, text, is_inside and not place.is_crossed))
            left = max(left, x + width_of(text, SMALL))
        left = max(left, place.right)
    return found


_Space = tuple[float, float, bool]


def _best(place: Place, spaces: Sequence[_Space]) -> tuple[str, _Space]:
    rooms = [(end - start - 2 * _GAP, (start, end, inside)) for start, end, inside in spaces]
    whole = f"{place.mark} {place.text}".strip()
    for room, space in rooms:
        if width_of(whole, SMALL) <= room:
            return whole, space
    room, space = max(rooms, key=lambda r: r[0])
    text = cut(whole, room)
    # The mark alone is clearer than the mark, one letter and an ellipsis.
    if place.mark and len(text) < 5:
        for room, space in rooms:
            if width_of(place.mark, SMALL) <= room + _GAP:
                return place.mark, space
        return "", spaces[0]
    return (text if len(text) > 3 else ""), space


_DAY = 86400
#: The seconds between two marks.
_STEPS = (
    *(n * 10.0**e for e in (-3, -2, -1) for n in (1, 2, 5)),
    *(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800),
    *(3600, 7200, 10800, 21600, 43200, _DAY, 2 * _DAY, 7 * _DAY, 14 * _DAY, 28 * _DAY),
)


class Tick(NamedTuple):
    """A mark of the axis: its time, and the text at it."""

    at_s: float
    text: str


def ticks(span_s: float, began: datetime | None, room: float) -> list[Tick]:
    """Return marks at round times for an axis of ``span_s`` seconds.

    ``room`` is the number of letters for which the axis is long enough: marks do not overlap.

    >>> [tick.text for tick in ticks(300, None, 60)]
    ['0s', '1m00s', '2m00s', '3m00s', '4m00s', '5m00s']
    >>> from datetime import UTC
    >>> [tick.text for tick in ticks(9000, datetime(2026, 1, 2, 23, 10, tzinfo=UTC), 100)]
    ['23:30', '01-03 00:00', '00:30', '01:00', '01:30']
    """
    made: list[Tick] = []
    for step in _steps():
        if span_s / step * 2 > room:
            continue
        made = list(_marks(step, span_s, began))
        widest = max((len(tick.text) for tick in made), default=0)
        if (widest + 5) * span_s / step <= room or len(made) < 2:
            break
    return made


def _steps() -> Iterator[float]:
    yield from _STEPS
    yield from (28 * _DAY * 2.0**n for n in itertools.count(1))


def _marks(step: float, span_s: float, began: datetime | None) -> Iterator[Tick]:
    if began is None:
        for n in range(math.floor(span_s / step + 1e-9) + 1):
            yield Tick(n * step, _seconds(n * step, step))
        return
    midnight = began.replace(hour=0, minute=0, second=0, microsecond=0)
    since_s = (began - midnight).total_seconds()
    day = began.date()
    for n in range(math.ceil(since_s / step - 1e-9), math.floor((since_s + span_s) / step) + 1):
        moment = midnight + timedelta(seconds=n * step)
        text = f"{moment:%m-%d}" if step >= _DAY else clock(moment, step)
        if step < _DAY and moment.date() != day:
            text, day = f"{moment:%m-%d} {text}", moment.date()
        yield Tick(n * step - since_s, text)


def _seconds(at_s: float, step: float) -> str:
    return f"{at_s:.{-math.floor(math.log10(step))}f}s" if step < 1 else duration(at_s)


def clock(moment: datetime, step: float) -> str:
    """Return the time of day, as precise as needed for marks that are ``step`` seconds apart."""
    if step >= 60:
        return f"{moment:%H:%M}"
    fraction = f".{moment.microsecond // 1000:03d}" if step < 1 else ""
    return f"{moment:%H:%M:%S}{fraction}"
