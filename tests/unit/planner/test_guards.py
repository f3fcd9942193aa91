# SPDX-License-Identifier: Apache-2.0
"""What a plan demands: read, merged, part of the plan and of its digest."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from applier.testing.sample_plans import new_plan
from planner import guards, make_plan
from planner.errors import InvalidInput
from planner.guarding import with_facts_of
from planner.guards import NO_GUARDS, Guards
from planner.model import ActionPlan

NOP = {"actions": [{"name": "a", "action_type": "nop"}]}


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


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("approvals", "-1"),
        ("approvals", "101"),
        ("approvals", "one"),
        ("approval_by_another", "yes"),
        ("approval_max_age_s", "0"),
        ("approval_max_age_s", "1e3"),
        ("approval_max_age_s", "nan"),
    ],
)
def test_a_wrong_setting_is_told(name, text):
    with pytest.raises(ValueError, match=f"'{text}' is not"):
        guards.read_setting(name, text)


def test_guards_are_in_the_digest_of_a_plan():
    plan = new_plan("a", uuid="u")
    assert replace(plan, guards=Guards(approvals=1)).digest != plan.digest
