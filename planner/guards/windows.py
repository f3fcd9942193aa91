# SPDX-License-Identifier: Apache-2.0
"""Weekly windows in which actions may start, such as ``sat 22:00-04:00 Europe/Prague``. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from planner.schemas import ranges

#: The days in the order of their numbers, from 0.
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DAILY = "daily"
_DAY = "|".join(DAYS)
_TIME = "([01][0-9]|2[0-3]):([0-5][0-9])"
_DAYS = f"{DAILY}|(?:{_DAY})(?:-(?:{_DAY}))?(?:,(?:{_DAY})(?:-(?:{_DAY}))?)*"
_FORM = re.compile(rf"(?P<days>{_DAYS})\s+{_TIME}-{_TIME}\s+(?P<zone>[A-Za-z0-9_+/-]+)")
EXPECTED = "DAYS FROM-TO ZONE, such as 'sat 22:00-04:00 Europe/Prague' or 'mon-fri 01:00-05:00 UTC'"
#: The schema of windows in a document.
SCHEMA: dict[str, Any] = {
    "type": "array",
    "items": {
        "type": "string",
        "maxLength": 200,
        "title": f"a window: {EXPECTED}",
        "pattern": rf"^\s*({_DAYS})\s+{_TIME}-{_TIME}\s+[A-Za-z0-9_+/-]+\s*$",
    },
}


class Window(NamedTuple):
    """A weekly window: it opens on ``days`` (0 is Monday) at ``start`` and closes at ``end``.

    ``start`` and ``end`` are minutes after midnight, in the local time of ``zone``. If ``end`` is
    not after ``start``, it closes on the next day. ``text`` is the window as it was written, with
    single spaces.
    """

    days: tuple[int, ...]
    start: int
    end: int
    zone: str
    text: str


def window(text: str) -> Window:
    """Read a window; raises ValueError.

    >>> window("sat,sun 22:00-04:00 Europe/Prague")[:4]
    ((5, 6), 1320, 240, 'Europe/Prague')
    """
    from zoneinfo import ZoneInfo  # it takes as long to import as all of this package

    words = " ".join(text.split())
    found = _FORM.fullmatch(words)
    if found is None:
        raise ValueError(f"{words!r} is not {EXPECTED}")
    zone = found["zone"]
    try:
        ZoneInfo(zone)
    except (OSError, ValueError, KeyError) as reason:
        raise ValueError(f"{words!r}: there is no zone {zone!r}, such as Europe/Prague") from reason
    hour, minute, to_hour, to_minute = (int(found[n]) for n in range(2, 6))
    return Window(_days(found["days"]), hour * 60 + minute, to_hour * 60 + to_minute, zone, words)


def _days(text: str) -> tuple[int, ...]:
    """Return the numbers of the days that a text names, in ascending order; 0 is Monday.

    >>> _days("fri-mon,wed")
    (0, 2, 4, 5, 6)
    """
    if text == DAILY:
        return tuple(range(7))
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        begin, end = DAYS.index(first), DAYS.index(last or first)
        found |= {day % 7 for day in range(begin, end + 1 + (7 if end < begin else 0))}
    return tuple(sorted(found))


def windows(value: str | Sequence[str]) -> tuple[str, ...]:
    """Check windows, and return the text of each, without duplicates; raises ValueError.

    In a single text, they are separated by a comma and a blank, or by line breaks.

    >>> windows("sat 22:00-04:00 UTC, mon,tue  01:00-02:00 UTC")
    ('sat 22:00-04:00 UTC', 'mon,tue 01:00-02:00 UTC')
    """
    return ranges.distinct(value, r",\s+|\n", lambda text: window(text).text)
