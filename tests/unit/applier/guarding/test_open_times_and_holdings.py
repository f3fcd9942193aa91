# SPDX-License-Identifier: Apache-2.0
"""Open windows around daylight saving, and overlapping; several holdings are asked as one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applier.guarding.open_times import OpenTimes
from applier.run.holdings import CombinedHolding
from planner.guards.windows import window
from planner.plan.model import Action

PRAGUE = "sat 22:00-04:00 Europe/Prague"


def utc(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def opens(text, moment):
    """Return the next interval as two texts in UTC, and its hours."""
    found = OpenTimes([[text]]).next(utc(moment))
    return f"{found.start:%m-%d %H:%M}", f"{found.end:%m-%d %H:%M}", found.seconds / 3600


@pytest.mark.parametrize(
    ("moment", "start", "end", "hours"),
    [
        # Winter, the night to summer time (one hour is missing), summer, the night back.
        ("2026-03-21T12:00", "03-21 21:00", "03-22 03:00", 6),
        ("2026-03-28T12:00", "03-28 21:00", "03-29 02:00", 5),
        ("2026-04-04T12:00", "04-04 20:00", "04-05 02:00", 6),
        ("2026-10-24T12:00", "10-24 20:00", "10-25 03:00", 7),
        ("2026-10-31T12:00", "10-31 21:00", "11-01 03:00", 6),
    ],
)
def test_a_window_follows_the_clock_on_the_wall(moment, start, end, hours):
    assert opens(PRAGUE, moment) == (start, end, hours)


@pytest.mark.parametrize(
    ("text", "moment", "start", "end"),
    [
        # 02:30 does not exist in that night, and is an hour after 01:30; it is there twice in the
        # other one, and the first time counts.
        ("sun 02:30-05:00 Europe/Prague", "2026-03-28T12:00", "03-29 01:30", "03-29 03:00"),
        ("sun 01:00-02:30 Europe/Prague", "2026-03-28T12:00", "03-29 00:00", "03-29 01:30"),
        ("sun 02:30-05:00 Europe/Prague", "2026-10-24T12:00", "10-25 00:30", "10-25 04:00"),
        ("sun 01:00-02:30 Europe/Prague", "2026-10-24T12:00", "10-24 23:00", "10-25 00:30"),
        # The other hemisphere, and a zone that is not a whole hour from UTC.
        ("sun 01:00-04:00 Australia/Sydney", "2026-04-04T00:00", "04-04 14:00", "04-04 18:00"),
        ("sun 01:00-04:00 Asia/Kathmandu", "2026-04-04T00:00", "04-04 19:15", "04-04 22:15"),
    ],
)
def test_times_that_do_not_exist_or_are_there_twice(text, moment, start, end):
    assert opens(text, moment)[:2] == (start, end)


def test_at_its_start_a_window_is_open_and_at_its_end_closed():
    times = OpenTimes([["mon 01:00-02:00 UTC"]])
    assert times.at(utc("2026-11-23T01:00"))
    assert times.at(utc("2026-11-23T01:59:59"))
    assert times.at(utc("2026-11-23T02:00")) is None
    assert times.at(utc("2026-11-23T00:59:59")) is None


def test_windows_that_touch_are_one():
    times = OpenTimes([["mon 22:00-00:00 UTC", "tue 00:00-03:00 UTC", "tue 01:00-02:00 UTC"]])
    found = times.at(utc("2026-11-23T23:00"))
    assert found.seconds == 5 * 3600
    assert OpenTimes([["daily 00:00-00:00 UTC"]]).at(utc("2026-11-23T23:00")).seconds > 20 * 86400
    every_night = OpenTimes([["daily 22:00-00:00 UTC", "daily 00:00-03:00 UTC"]])
    nights = every_night.intervals(utc("2026-11-23T12:00"))[1:-1]
    assert {night.seconds for night in nights} == {5 * 3600}


def test_times_between_windows_are_closed_to_the_end_of_what_is_asked():
    times = OpenTimes([["mon 10:00-11:00 UTC", "wed 10:00-11:00 UTC"]])
    begin, end = utc("2026-11-23T10:30"), utc("2026-11-26T12:00")
    assert [
        (c.start.day, c.start.hour, c.end.day, c.end.hour) for c in times.closed(begin, end)
    ] == [
        (23, 11, 25, 10),
        (25, 11, 26, 12),
    ]
    never = OpenTimes([["mon 01:00-02:00 UTC"], ["tue 01:00-02:00 UTC"]])
    assert [(c.start, c.end) for c in never.closed(begin, end)] == [(begin, end)]


def test_windows_of_two_who_demand_some_both_have_to_be_open():
    times = OpenTimes([["mon 20:00-23:00 UTC"], ["mon 22:00-02:00 UTC", "fri 01:00-02:00 UTC"]])
    found = times.next(utc("2026-11-23T00:00"))
    assert (found.start.hour, found.end.hour) == (22, 23)
    never = OpenTimes([["mon 01:00-02:00 UTC"], ["tue 01:00-02:00 UTC"]])
    assert never.next(utc("2026-11-23T00:00")) is None
    assert never.longest_s(utc("2026-11-23T00:00")) == 0


@given(
    hours=st.integers(0, 60_000),
    days=st.sampled_from(["daily", "sat", "mon-fri", "sun,wed"]),
    start=st.integers(0, 23),
    end=st.integers(0, 23),
    zone=st.sampled_from(["UTC", "Europe/Prague", "America/New_York", "Australia/Lord_Howe"]),
)
def test_a_moment_is_inside_if_and_only_if_the_wall_clock_says_so(hours, days, start, end, zone):
    """Away from the changes of clocks, against a reading of the clock on the wall."""
    text = f"{days} {start:02}:00-{end:02}:00 {zone}"
    at = utc("2024-01-01T00:30") + timedelta(hours=hours)
    known = window(text)
    local = at.astimezone(ZoneInfo(zone))
    near = {(at + timedelta(hours=h)).astimezone(ZoneInfo(zone)).utcoffset() for h in (-26, 26)}
    if len(near) > 1:
        return
    minute = local.hour * 60 + local.minute
    if known.start < known.end:
        inside = local.weekday() in known.days and known.start <= minute < known.end
    else:
        inside = (local.weekday() in known.days and minute >= known.start) or (
            (local.weekday() - 1) % 7 in known.days and minute < known.end
        )
    assert (OpenTimes([[text]]).at(at) is not None) == inside


# Several holdings are asked as one.

ACTION = Action(uuid="a", action_type="nop")


class One:
    """Holds everything back, or nothing, and notes what it is told."""

    def __init__(self, seconds: float | None = None, *, is_closed: bool = False) -> None:
        self._seconds, self._is_closed = seconds, is_closed
        self.told: list[int | str] = []

    def holds(self, action: Action, *, begins: bool) -> bool:
        return self._is_closed and action is ACTION

    def again_s(self) -> float | None:
        return self._seconds

    def ended(self) -> None:
        self.told.append("ended")

    def tell(self, number: int) -> None:
        self.told.append(number)


@pytest.mark.parametrize(
    ("seconds", "again_s"),
    [([5.0, 3.0], 3.0), ([5.0], 5.0), ([5.0, None], None), ([None, None], None)],
)
def test_they_are_asked_again_after_the_shortest_time_unless_one_hands_the_plan_back(
    seconds, again_s
):
    assert CombinedHolding([One(each) for each in seconds]).again_s() == again_s


@pytest.mark.parametrize(("closed", "holds"), [([0, 0], False), ([0, 1], True), ([1, 1], True)])
def test_one_is_enough_to_hold_an_action_back(closed, holds):
    several = CombinedHolding([One(is_closed=bool(each)) for each in closed])
    assert several.holds(ACTION, begins=True) is holds


def test_each_is_told_what_happens():
    ones = [One(), One()]
    several = CombinedHolding(ones)
    several.tell(4)
    several.ended()
    assert [one.told for one in ones] == [[4, "ended"]] * 2
