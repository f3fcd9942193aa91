# SPDX-License-Identifier: Apache-2.0
"""Lists of plans and pages of them, what a reference means, and when a claim ends."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from itertools import combinations

import pytest

from applier.errors import PlanNotFound
from applier.storage import claims, list_statements, references, transitions
from applier.storage.dialects import SQLITE
from applier.store import PlanFilters
from applier.store.pages import Page
from applier.testing.sample_plans import new_plan
from applier.testing.temporary_store import TemporaryStore
from planner.plan.states import PlanState

FILTERS = tuple(PlanFilters.__annotations__)


@pytest.fixture(scope="module")
def record() -> sqlite3.Connection:
    record = sqlite3.connect(":memory:")
    for statement in SQLITE.creation():
        record.execute(statement)
    return record


@pytest.mark.parametrize("number", range(4))
def test_no_list_reads_or_sorts_more_than_its_rows(record: sqlite3.Connection, number: int) -> None:
    """Two of the filters that are compared share an index: at worst, the rows of one are read."""
    for filters in combinations(FILTERS, number):
        asked = {**dict.fromkeys(filters, "2026-03-01 12:00:00"), "most": 25}
        text = f"EXPLAIN QUERY PLAN {list_statements.newest(filters)}"
        steps = [row[3] for row in record.execute(text, asked)]
        (step,) = steps
        wanted = "USING INDEX" if filters else "SCAN actionplan_plan"
        assert wanted in step, (filters, steps)
        if {"since", "until"} & set(filters):
            assert "ix_actionplan_plan_created" in step, (filters, steps)


def test_a_page_without_damage_is_not_read_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(TemporaryStore()) as store:
        store.save_plan(new_plan("a", "b"))
        monkeypatch.delattr("applier.storage.pages.Pages._head")
        assert store.plan_heads(Page(limit=9))


# Which plan a reference means.


@pytest.mark.parametrize(
    ("uuids", "short"),
    [
        ([], []),
        (["12345678-aaaa"], ["12345678"]),
        (["22345678-aaaa", "12345678-aaaa"], ["12345678", "22345678"]),
        (["12345678-aaaa", "12345678-abaa"], ["12345678-aa", "12345678-ab"]),
        (["1", "12", "123456789"], ["1", "12", "12345678"]),
        (["12345678", "123456789"], ["12345678", "123456789"]),
    ],
)
def test_beginnings_are_as_long_as_tells_them_apart(uuids, short):
    assert references.beginnings(uuids) == short


def test_a_beginning_that_is_also_a_name_of_the_same_plan_is_that_plan():
    assert references.choose("abcd", [("abcdef", "abcd")]) == "abcdef"


def test_a_name_may_be_shorter_than_a_beginning():
    assert references.choose("a", [("abcdef", None), ("bcdefg", "a")]) == "bcdefg"
    with pytest.raises(PlanNotFound, match="no plan 'b'"):
        references.choose("b", [("bcdefg", "a")])


# When a claim ends, and what those read whose claim is refused.


def test_a_claim_stays_only_while_the_plan_runs():
    kept = {PlanState.ONGOING, PlanState.CANCELLING}
    assert {state for state in PlanState if not claims.ends_claim(state)} == kept


def test_a_refusal_names_the_plan_by_the_first_eight_characters_of_its_uuid():
    uuid = "5ca1ab1e-0000-4000-8000-000000000000"
    refusals = (
        claims.cannot_claim(uuid, "PAUSED"),
        claims.lost_claim(uuid, "PAUSED"),
        claims.not_claimed(uuid, "PAUSED"),
        claims.not_waiting(uuid, "PAUSED", [PlanState.PENDING]),
    )
    for refusal in refusals:
        assert str(refusal).startswith("plan 5ca1ab1e is PAUSED")
    refusal = transitions.changed_meanwhile(uuid, "PENDING", "CANCELLED")
    assert refusal.state == "CANCELLED"
    assert str(refusal).startswith("plan 5ca1ab1e was PENDING")
