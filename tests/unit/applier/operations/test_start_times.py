# SPDX-License-Identifier: Apache-2.0
"""With which window a plan starts: the first one that it is expected to end in."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from applier.guarding.open_times import OpenTimes
from applier.operations import start_times

#: A Saturday.
DAY = datetime(2026, 11, 28, tzinfo=UTC)
#: An hour each night, but four on Saturdays.
NIGHTS = ["mon-fri,sun 01:00-02:00 UTC", "sat 20:00-00:00 UTC"]


@pytest.fixture
def begins(site, monkeypatch):
    """Return a function for when a plan of one action starts that is started at some time."""

    def begins(moment, seconds, windows=NIGHTS):
        monkeypatch.setattr(start_times, "now", lambda: moment)
        plan = site.saved("a")
        plan = replace(plan, actions=(replace(plan.actions[0], estimate_s=seconds),))
        site.assembly.open_times = lambda _: OpenTimes([windows])
        site.assembly.policies, site.assembly.max_workers = {}, 4
        site.assembly.action_types, site.assembly.route = {}, None
        return start_times.wanted(site.assembly, site.operator, plan, None, in_window=True)

    return begins


def test_a_plan_starts_at_once_if_it_ends_in_the_window_that_is_open(site, begins):
    assert begins(DAY.replace(hour=21), 3 * 3600) is None
    assert "open now" in site.told[0]


def test_a_window_that_closes_too_soon_is_left_out(begins):
    assert begins(DAY.replace(hour=21), 3 * 3600 + 1) == DAY.replace(day=5, month=12, hour=20)
    assert begins(DAY.replace(hour=23, minute=30), 1900) == DAY.replace(day=29, hour=1)


def test_windows_that_are_too_short_are_left_out(begins):
    assert begins(DAY.replace(day=29), 7200) == DAY.replace(day=5, month=12, hour=20)


def test_what_fits_into_no_window_starts_with_the_next_one(site, begins):
    assert begins(DAY.replace(hour=21), 5 * 3600) == DAY.replace(day=29, hour=1)
    assert "goes on in the next ones" in site.told[0]
