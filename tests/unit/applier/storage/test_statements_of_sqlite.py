# SPDX-License-Identifier: Apache-2.0
"""Statements find rows by their keys: of actions, lists and pages; what a reference means."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from itertools import combinations

import pytest
from sample_plans import new_plan
from scratch_database import connected
from store_checks.running_plans import NOW, starts, succeeds
from temporary_store import TemporaryStore

from applier.storage import list_statements, schema_version
from applier.storage.connection import parse
from applier.storage.schema import SQLITE
from applier.storage.sql_store import SqlStore
from applier.storage.state_changes import writes_of
from applier.storage.statements import (
    AGAIN,
    AT_ONCE,
    DROP_ATTEMPT,
    END,
    KEEP_ATTEMPT,
    REOPEN,
    START,
    UNDONE,
    Compiled,
    about,
    writes,
)
from applier.store import PlanFilters
from applier.store.plans import Page, beginnings


def test_uuids_are_cut_into_statements_in_their_order():
    uuids = [f"u{number}" for number in range(120)]
    made = list(writes(START, uuids, {"now": NOW}, at_once=50))
    assert [write.changes for write in made] == [50, 50, 20]
    named = [v for write in made for k, v in write.parameters.items() if k.startswith("uuid_")]
    assert named == uuids
    assert all(write.parameters["now"] is NOW for write in made)
    # Made once for each number of actions.
    assert made[0].statement is made[1].statement is about(START, 50)
    assert made[2].statement is about(START, 20)


def test_reports_that_say_the_same_are_one_statement_and_others_are_not():
    plan = new_plan(*"abcde")
    a, b, c, d, e = plan.actions
    reports = [succeeds(a), succeeds(b), succeeds(c, output="said"), starts(d), starts(e)]
    made = list(writes_of(plan.uuid, reports, NOW, 50))
    assert [write.statement for write in made] == [
        about(END, 2),
        about(KEEP_ATTEMPT, 2),
        about(END, 1),
        about(KEEP_ATTEMPT, 1),
        about(START, 2),
    ]


def explained(url, explain, statement, named):
    """Return how a database would run a statement."""
    compiled = Compiled(statement, parse(url).dialect)
    values = compiled.parameters(dict.fromkeys(compiled.names) | named)
    with connected(url) as database:
        return database.cursor().execute(f"{explain} {compiled.text}", values).fetchall()


@pytest.mark.server
@pytest.mark.parametrize("statement", [START, END, KEEP_ATTEMPT, AGAIN])
def test_postgresql_finds_an_action_by_its_key_before_it_has_statistics(postgresql_url, statement):
    schema_version.upgrade(postgresql_url)
    named = {"plan_uuid": "p", "uuid_0": "a", "old_state": "ONGOING"}
    lines = explained(postgresql_url, "EXPLAIN", about(statement, AT_ONCE["postgresql"]), named)
    plan = "\n".join(line for (line,) in lines)
    (found,) = [line for line in plan.splitlines() if "Index Cond" in line and "(plan)" in line]
    assert "(uuid)::text = 'a'" in found, plan


@pytest.mark.parametrize(
    "statement", [START, REOPEN, DROP_ATTEMPT, END, AGAIN, UNDONE, KEEP_ATTEMPT]
)
def test_sqlite_reads_no_table_as_a_whole(tmp_path, statement):
    url = f"sqlite:///{tmp_path}/record.sqlite"
    SqlStore(url).close()
    steps = [step for *_, step in explained(url, "EXPLAIN QUERY PLAN", about(statement, 2), {})]
    assert steps
    assert not [step for step in steps if step.startswith("SCAN actionplan")], steps


# Lists of plans and pages of them, what a reference means, and when a claim ends.

#: All filters, without the one that looks at the states of actions.
FILTERS = tuple(name for name in PlanFilters.__annotations__ if name != "needs_you")


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
        wanted = "USING INDEX" if {*filters} - {"search"} else "SCAN actionplan_plan"
        assert wanted in step, (filters, steps)
        if {"since", "until"} & set(filters):
            assert "ix_actionplan_plan_created" in step, (filters, steps)
        text = f"EXPLAIN QUERY PLAN {list_statements.newest(filters, is_rest=True)}"
        (step, *marks) = (row[3] for row in record.execute(text, {**asked, "after": "u"}))
        assert step.startswith("SEARCH actionplan_plan USING I"), (filters, step)
        assert not [mark for mark in marks if "SCAN actionplan" in mark or "B-TREE" in mark], marks


def test_a_page_without_damage_is_not_read_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(TemporaryStore()) as store:
        store.save_plan(new_plan("a", "b"))
        monkeypatch.delattr("applier.storage.list_pages.Pages._head")
        assert store.plan_heads(Page(limit=9))


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
    assert beginnings(uuids) == short
