# SPDX-License-Identifier: Apache-2.0
"""Computes the intervals in UTC in which windows are open, by the clocks of their zones. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from dateutil.rrule import WEEKLY, rrule

from planner.guards.windows import Window, window

#: Windows repeat each week; in that many days each of them opens, on both sides of a change of
#: clocks.
HORIZON = timedelta(days=22)
_LONGEST = timedelta(days=2)


class OpenWindow(NamedTuple):
    """An interval in which windows are open, from ``start`` to ``end``, both in UTC."""

    start: datetime
    end: datetime

    @property
    def seconds(self) -> float:
        """The length of the interval."""
        return (self.end - self.start).total_seconds()


class OpenTimes:
    """The times at which at least one window of each group is open.

    A group is a sequence of windows as texts, such as ``sat 22:00-04:00 Europe/Prague``.
    """

    def __init__(self, groups: Iterable[Sequence[str]]) -> None:
        self._groups = [[window(text) for text in group] for group in groups]
        self._known: list[OpenWindow] = []
        self._from = self._until = datetime.min.replace(tzinfo=UTC)

    @property
    def words(self) -> str:
        """The windows as they were written."""
        return " and ".join(" or ".join(w.text for w in group) for group in self._groups)

    def at(self, moment: datetime) -> OpenWindow | None:
        """Return the interval that a moment is in; None while the windows are closed."""
        found = self.next(moment)
        return found if found and found.start <= moment else None

    def next(self, moment: datetime) -> OpenWindow | None:
        """Return the interval that contains a moment, else the next one; None if none follows."""
        return next((i for i in self.intervals(moment) if i.end > moment), None)

    def opens_after(self, moment: datetime) -> datetime | None:
        """Return when an interval begins next, after a moment; None if none does."""
        return next((i.start for i in self.intervals(moment) if i.start > moment), None)

    def intervals(self, moment: datetime) -> list[OpenWindow]:
        """List the intervals around a moment and in the three weeks after it, in their order."""
        if not self._from <= moment < self._until:
            self._from, self._until = moment, moment + timedelta(days=1)
            begin, end = moment - _LONGEST, moment + HORIZON
            self._known = _all_hold([_merged(_of(g, begin, end)) for g in self._groups])
        return self._known

    def closed(self, start: datetime, end: datetime) -> Iterator[OpenWindow]:
        """Yield the times between two moments at which the windows are closed."""
        at = start
        while at < end:
            found = self.next(at)
            opens = end if found is None else min(found.start, end)
            if at < opens:
                yield OpenWindow(at, opens)
            at = end if found is None else found.end

    def longest_s(self, moment: datetime) -> float:
        """Return the seconds of the longest interval that ends after a moment; 0 if none does."""
        found = (i for i in self.intervals(moment) if i.end > moment)
        return max((i.seconds for i in found), default=0.0)


def _of(group: Iterable[Window], begin: datetime, end: datetime) -> Iterator[OpenWindow]:
    for one in group:
        zone = ZoneInfo(one.zone)
        first = begin.astimezone(zone).replace(tzinfo=None, hour=0, minute=0, second=0)
        last = end.astimezone(zone).replace(tzinfo=None)
        lasts = one.end - one.start
        lasts += 24 * 60 if lasts <= 0 else 0
        for day in rrule(
            WEEKLY, byweekday=one.days, dtstart=first.replace(microsecond=0), until=last
        ):
            # Minutes are added to the time on the clocks of the zone; then it is converted to UTC.
            opens = day + timedelta(minutes=one.start)
            closes = opens + timedelta(minutes=lasts)
            start, stop = (t.replace(tzinfo=zone).astimezone(UTC) for t in (opens, closes))
            if stop > start:
                yield OpenWindow(start, stop)


def _merged(intervals: Iterable[OpenWindow]) -> list[OpenWindow]:
    """Return intervals in their order, those that touch or overlap as one."""
    found: list[OpenWindow] = []
    for one in sorted(intervals):
        if found and one.start <= found[-1].end:
            found[-1] = OpenWindow(found[-1].start, max(found[-1].end, one.end))
        else:
            found.append(one)
    return found


def _all_hold(groups: Sequence[list[OpenWindow]]) -> list[OpenWindow]:
    """Return the intersection of groups of intervals, in the order of time."""
    found, *others = groups
    for other in others:
        shared = (
            OpenWindow(max(one.start, two.start), min(one.end, two.end))
            for one in found
            for two in other
        )
        found = [both for both in shared if both.start < both.end]
    return found
