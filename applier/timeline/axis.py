# SPDX-License-Identifier: Apache-2.0
"""The marks of a time axis, in local time, or from 0 for a plan that has not begun. Pure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from applier.wording import duration

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
