# SPDX-License-Identifier: Apache-2.0
"""What a new plan is compared with, the last of its name, and with which window a plan starts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sample_plans import MADE, new_plan

from applier.guarding.open_times import OpenTimes
from applier.operations import start_times
from applier.operations.differences import MOST_COMPARED, from_last_of_its_name
from planner.guards import Guards
from planner.guards.blast_radius import Share

AGED = Guards(approval_max_age_s=60.0, extent=(Share("hosts", 1, 2),))
LATER = MADE + timedelta(hours=1)


@pytest.fixture(params=[2, MOST_COMPARED + 1])
def plan(request, site):
    names = [f"a{i}" for i in range(request.param)]
    made = replace(new_plan(*names, uuid="6a1f"), name="nightly", guards=AGED)
    site.store.save_plan(made)
    return made


@pytest.mark.parametrize(
    "changed",
    [
        {"created_at": LATER},
        {"facts_at": LATER, "guards": AGED._replace(extent=(Share("hosts", 1, 9),))},
    ],
)
def test_a_plan_that_does_the_same_is_the_same_at_another_time(site, plan, changed):
    told = from_last_of_its_name(site.assembly, replace(plan, **changed))
    assert told.startswith("Same as plan 6a1f ")


def test_a_large_plan_of_which_the_digest_covers_no_facts_is_not_loaded(site, monkeypatch):
    names = [f"a{i}" for i in range(MOST_COMPARED + 1)]
    made = replace(new_plan(*names, uuid="6a1f"), name="nightly")
    site.store.save_plan(made)
    monkeypatch.setattr(type(site.store), "load_plan", None)
    told = from_last_of_its_name(site.assembly, replace(made, on_failure="pause", created_at=LATER))
    assert told.startswith("Differs from plan 6a1f ")


def test_a_plan_that_does_something_else_differs(site, plan):
    told = from_last_of_its_name(site.assembly, replace(plan, facts_at=LATER, on_failure="pause"))
    assert told.startswith("Differs from plan 6a1f ")


# With which window a plan starts: the first one that it is expected to end in.

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
