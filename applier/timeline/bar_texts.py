# SPDX-License-Identifier: Apache-2.0
"""The texts of a timeline: titles of bars, and where the name of each bar has room. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from applier.timeline.axis import clock
from applier.timeline.values import Bar, Chart
from applier.wording import duration
from planner.plan.model import Action
from planner.render.shapes import SMALL, width_of

#: The maximum number of names in the title of a bar of several actions, and of characters per line.
_NAMED, _LONGEST = 8, 300


def shown(text: str) -> str:
    r"""Return a text on one line, with unprintable characters written as Python escapes.

    >>> print(shown("a <b>\n\x1b[2J\ufffe"))
    a <b> \x1b[2J\ufffe
    """
    line = " ".join(text.split())
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


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
    """Return the lines of the title of a bar: names, state, times, waits, messages. Not escaped."""
    many, first = len(bar.actions), bar.actions[0]
    lines = [f"{first.label if many == 1 else f'{many} x {bar.name}'}: {bar.state}"]
    if many == 1 and first.description:
        lines.append(first.description)
    lines.append(_when(chart, bar))
    if bar.planned is not None:
        lines.append(f"planned {times(chart, *bar.planned)}")
    waited = "the first waited" if many > 1 else "waited"
    lines += [f"{waited} {duration(w.end_s - w.start_s)}, {w.reason}: {w.what}" for w in bar.waits]
    attempts = max(action.attempts for action in bar.actions)
    if attempts > 1:
        lines.append(f"attempt {attempts}")
    if bar.is_critical:
        lines.append("on the critical path")
    lines += _messages(bar.actions)
    if many > 1:
        more = f" and {many - _NAMED} more" if many > _NAMED else ""
        lines.append(", ".join(a.label for a in bar.actions[:_NAMED]) + more)
    return [shown(line)[:_LONGEST] for line in lines]


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
