# SPDX-License-Identifier: Apache-2.0
"""A list of plans costs the same in a record of any size: an index gives its order."""

from __future__ import annotations

import sqlite3
from itertools import combinations

import pytest

from applier.storage import list_statements
from applier.storage.dialects import SQLITE
from applier.store import PlanFilters

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
