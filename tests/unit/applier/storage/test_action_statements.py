# SPDX-License-Identifier: Apache-2.0
"""Statements about several actions: how they are cut, and that each finds its rows by their key."""

from __future__ import annotations

import pytest
from scratch_database import connected
from store_checks.running_plans import NOW, starts, succeeds

from applier.storage import schema_version
from applier.storage.action_statements import (
    AGAIN,
    AT_ONCE,
    DROP_ATTEMPT,
    END,
    KEEP_ATTEMPT,
    REOPEN,
    START,
    UNDONE,
    writes,
)
from applier.storage.connection import parse
from applier.storage.dialects import Compiled, names
from applier.storage.sql import SqlStore
from applier.storage.state_changes import writes_of
from applier.testing.sample_plans import new_plan


def test_uuids_are_cut_into_statements_in_their_order():
    uuids = [f"u{number}" for number in range(120)]
    made = list(writes(START, uuids, {"now": NOW}, at_once=50))
    assert [write.changes for write in made] == [50, 50, 20]
    named = [v for write in made for k, v in write.parameters.items() if k.startswith("uuid_")]
    assert named == uuids
    assert all(write.parameters["now"] is NOW for write in made)
    # Made once for each number of actions.
    assert made[0].statement is made[1].statement is START(50)
    assert made[2].statement is START(20)


def test_reports_that_say_the_same_are_one_statement_and_others_are_not():
    plan = new_plan(*"abcde")
    a, b, c, d, e = plan.actions
    reports = [succeeds(a), succeeds(b), succeeds(c, output="said"), starts(d), starts(e)]
    made = list(writes_of(plan.uuid, reports, NOW, 50))
    assert [write.statement for write in made] == [
        END(2),
        KEEP_ATTEMPT(2),
        END(1),
        KEEP_ATTEMPT(1),
        START(2),
    ]


def explained(url, explain, statement, named):
    """Return how a database would run a statement."""
    compiled = Compiled(statement, parse(url).dialect)
    values = compiled.parameters(dict.fromkeys(names(statement)) | named)
    with connected(url) as database:
        return database.cursor().execute(f"{explain} {compiled.text}", values).fetchall()


@pytest.mark.server
@pytest.mark.parametrize("statements", [START, END, KEEP_ATTEMPT, AGAIN])
def test_postgresql_finds_an_action_by_its_key_before_it_has_statistics(postgresql_url, statements):
    schema_version.upgrade(postgresql_url)
    named = {"plan_uuid": "p", "uuid_0": "a", "old_state": "ONGOING"}
    lines = explained(postgresql_url, "EXPLAIN", statements(AT_ONCE["postgresql"]), named)
    plan = "\n".join(line for (line,) in lines)
    (found,) = [line for line in plan.splitlines() if "Index Cond" in line and "(plan)" in line]
    assert "(uuid)::text = 'a'" in found, plan


@pytest.mark.parametrize(
    "statements", [START, REOPEN, DROP_ATTEMPT, END, AGAIN, UNDONE, KEEP_ATTEMPT]
)
def test_sqlite_reads_no_table_as_a_whole(tmp_path, statements):
    url = f"sqlite:///{tmp_path}/record.sqlite"
    SqlStore(url).close()
    steps = [step for *_, step in explained(url, "EXPLAIN QUERY PLAN", statements(2), {})]
    assert steps
    assert not [step for step in steps if step.startswith("SCAN actionplan")], steps
