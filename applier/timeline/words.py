# SPDX-License-Identifier: Apache-2.0
"""The texts of a timeline: titles of bars, and names that are cut to a width and escaped."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from html import escape

from applier.timeline.axis import clock
from applier.timeline.values import Bar, Chart
from applier.wording import duration
from planner.model import Action, ActionPlan
from planner.render.svg import text_width
from planner.states import PlanState

#: The maximum number of names in the title of a bar of several actions, and of characters per line.
_NAMED, _LONGEST = 8, 300
#: The width of a letter in small text, relative to normal text.
_SMALL = 11 / 12
#: The states in which nobody runs a plan that has begun and is not over.
STILL = frozenset({PlanState.PAUSED, PlanState.PENDING})


def shown(text: str) -> str:
    r"""Return a text on one line, with unprintable characters written as Python escapes.

    >>> print(shown("a <b>\n\x1b[2J\ufffe"))
    a <b> \x1b[2J\ufffe
    """
    line = " ".join(text.split())
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


def written(text: str) -> str:
    """Return a text on one line, escaped for XML."""
    return escape(shown(text))


def small_width(text: str) -> float:
    """Estimate the width of a small text in pixels; the estimate is rather too large."""
    return text_width(text) * _SMALL


def cut(text: str, width: float) -> str:
    """Return as much of a small text as fits a width in pixels, with an ellipsis if it was cut.

    An empty text is returned if not even two characters would be left.

    >>> cut("netconfig", 80), cut("netconfig", 40), cut("netconfig", 15)
    ('netconfig', 'netco…', '')
    """
    if small_width(text) <= width:
        return text
    while text and small_width(text) > width - small_width("…"):
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


def taken(plan: ActionPlan, began: datetime, now_s: float | None, end_s: float) -> str:
    """Return a text with the time that a plan took, has run until now, or ran before it stopped.

    ``now_s`` is None if all its actions have ended, the last one at ``end_s``.
    """
    if plan.state in STILL:
        ends = [a.ended_at for a in plan.actions if a.ended_at is not None]
        ran_s = (max(ends, default=began) - began).total_seconds()
        return f"ran {duration(max(0.0, ran_s))}, and stands still"
    return f"took {duration(end_s)}" if now_s is None else f"has run {duration(now_s)}"


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
