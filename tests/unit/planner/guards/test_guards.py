# SPDX-License-Identifier: Apache-2.0
"""What a plan demands: read, bounded, merged, part of the plan and of its digest."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from planner import guards, make_plan
from planner.errors import InvalidInput
from planner.guards import NO_GUARDS, Guards, windows
from planner.guards.failure_budget import budget, budgets
from planner.making.guarding import with_facts_of
from planner.plan.model import ActionPlan

NOP = {"actions": [{"name": "a", "action_type": "nop"}]}
WINDOW, BUDGET = "sat 22:00-04:00 UTC", "3 in 1h"
PRAGUE = "sat 22:00-04:00 Europe/Prague"


def test_guards_of_a_document_are_part_of_the_plan_and_of_its_digest():
    demanding = make_plan({**NOP, "guards": {"approvals": 2, "labels": ["prod", "prod"]}})
    plain = make_plan(NOP)
    assert demanding.guards == Guards(approvals=2, labels=("prod",))
    assert plain.guards == NO_GUARDS
    assert demanding.digest != plain.digest
    assert "guards" not in plain.to_dict()
    assert ActionPlan.from_dict(demanding.to_dict()) == demanding


def test_an_empty_part_demands_nothing():
    assert make_plan({**NOP, "guards": {}}).digest == make_plan(NOP).digest


@pytest.mark.parametrize(
    "wrong",
    [
        {"approvals": -1},
        {"approvals": 101},
        {"approvals": "1"},
        {"approval_by_another": 1},
        {"approval_max_age_s": 0},
        {"labels": ["two words"]},
        {"labels": ["a=b"]},
        {"aprovals": 1},
        {"windows": [WINDOW.ljust(201)]},
        {"failure_budget": [BUDGET.ljust(301)]},
        {"labels": ["l" * 256]},
        {"blast_radius": {"k" * 201: 1}},
        [],
    ],
)
def test_a_wrong_guard_is_refused_with_its_place(wrong):
    with pytest.raises(InvalidInput) as refused:
        make_plan({**NOP, "guards": wrong})
    assert all(mistake.path[0] == "guards" for mistake in refused.value.mistakes)


def test_the_time_of_the_facts_is_that_of_the_plan_and_in_its_digest():
    facts = {"at": "2026-03-01T12:00:00+01:00", "hosts": {}}
    plan, other = (make_plan({**NOP, "facts": f}) for f in (facts, {"hosts": {}}))
    assert plan.facts_at == datetime(2026, 3, 1, 11, tzinfo=UTC)
    assert other.facts_at is None
    assert plan.digest != other.digest
    assert with_facts_of(plan, other).digest == other.digest
    assert ActionPlan.from_dict(plan.to_dict()).facts_at == plan.facts_at
    assert make_plan({**NOP, "facts": {"at": "noon"}}).facts_at is None


def test_of_two_demands_the_stricter_holds():
    one = Guards(approvals=2, approval_max_age_s=60, labels=("a",))
    other = Guards(approvals=1, approval_by_another=True, labels=("b", "a"))
    assert guards.both(one, other) == guards.both(other, one)._replace(labels=("a", "b"))
    assert guards.both(one, other)[:3] == (2, True, 60)
    assert guards.both(one, NO_GUARDS) == one


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("events=1", "events=1 is not planner:NAME=N"),
        ("planner:events", "planner:events is not"),
        ("size:many=1", "size:many=1 is not"),
        ("size:0=1", "size:0=1 is not"),
        ("label:prod=-1", "label:prod=-1 is not"),
        ("label:prod=101", "label:prod=101 is not"),
        ("label:=1", "label:=1 is not"),
        ("planner:\u0661=\u0661", "is not planner:NAME=N"),
    ],
)
def test_a_wrong_rule_is_told(text, told):
    with pytest.raises(ValueError, match=r"with N of 0 to 100") as refused:
        guards.approvals_for(f"planner:weight=1, {text}")
    assert told in str(refused.value)
    assert "planner:weight" not in str(refused.value)


def test_the_largest_number_that_applies_holds():
    rules = guards.approvals_for("size:10=1, size:100=3,\nlabel:prod=2, planner:events=1")

    def needed(planner="weight", size=1, labels=()):
        return guards.approvals_of(rules, planner=planner, size=size, labels=labels)

    assert [needed(size=n) for n in (9, 10, 99, 100)] == [0, 1, 1, 3]
    assert needed(planner="events") == 1
    assert needed(planner="events", labels=("prod", "x")) == 2


def test_texts_of_a_document_have_a_longest():
    def planned(**demanded):
        return make_plan({**NOP, "guards": demanded}).guards

    assert planned(windows=[WINDOW.ljust(200)]).windows == planned(windows=[WINDOW]).windows
    assert planned(failure_budget=[BUDGET.ljust(300)]).failure_budget == (BUDGET,)
    assert planned(labels=["l" * 255]).labels == ("l" * 255,)


def test_settings_reach_their_bounds():
    assert guards.read_setting("approvals", "100") == 100
    assert guards.read_setting("approvals", "0") == 0
    assert guards.read_setting("approval_by_another", "false") is False
    assert guards.read_setting("approval_max_age_s", "0.5") == 0.5


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("approvals", "101"),
        ("approvals", "-1"),
        ("approval_by_another", "yes"),
        ("approval_max_age_s", "0"),
        ("approval_max_age_s", "1e3"),
        ("approval_max_age_s", "9999999999"),
        ("approval_max_age_s", "nan"),
        ("approvals", "one"),
    ],
)
def test_a_setting_beyond_its_bounds_is_refused(name, text):
    with pytest.raises(ValueError, match=f"'{text}' is not"):
        guards.read_setting(name, text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1 in 90s", 90), ("1 in 2m", 120), ("1 in 3h", 10_800), ("1 in 2d", 172_800), ("1", None)],
)
def test_a_time_has_a_unit(text, seconds):
    assert budget(text).within_s == seconds


def test_a_budget_is_a_number_or_a_share():
    assert budget("migrate=100%")[:3] == ("migrate", None, 100)
    assert budget("migrate=100")[:3] == ("migrate", 100, None)
    assert budget("0")[:3] == (None, 0, None)


def test_a_share_of_few_actions_is_rounded_down():
    assert [budget("migrate=50%").allowed(n) for n in (0, 1, 2, 3, 200)] == [0, 0, 1, 1, 100]
    assert budget("migrate=0%").allowed(10) == 0


@pytest.mark.parametrize("text", ["1234567890", "1 in 1234567890s", "1 in 0s"])
def test_a_number_has_at_most_nine_digits(text):
    assert budget("123456789 in 123456789s").most == 123_456_789
    with pytest.raises(ValueError, match="is not N, TYPE=N"):
        budget(text)


def test_a_budget_that_is_written_twice_is_one():
    assert budgets("3 in 1h, , 3  in 1h\n2") == ("3 in 1h", "2")


@pytest.mark.parametrize(
    "text",
    [
        "22:00-04:00 Europe/Prague",
        "sat 22:00-24:00 UTC",
        "sat 22-04 UTC",
        "sat 22:00-04:00",
        "samstag 22:00-04:00 UTC",
        "sat, sun 22:00-04:00 UTC",
        "sat 22:00-04:00 Europe/Praha",
        "sat 22:00-04:00 ../etc/passwd",
        "s\u0430t 22:00-04:00 UTC",
    ],
)
def test_what_is_no_window_is_told(text):
    with pytest.raises(ValueError, match=r"DAYS FROM-TO ZONE|no zone"):
        windows.windows([text])


def test_all_wrong_windows_are_told():
    with pytest.raises(ValueError, match=r"'a' is not .*; 'b' is not"):
        windows.windows(f"a, {PRAGUE}\nb")


@pytest.mark.parametrize(
    ("text", "days"),
    [("daily", (0, 1, 2, 3, 4, 5, 6)), ("mon-fri", (0, 1, 2, 3, 4)), ("sat-mon,wed", (0, 2, 5, 6))],
)
def test_days_are_lists_and_ranges(text, days):
    assert windows.window(f"{text} 01:00-02:00 UTC").days == days
