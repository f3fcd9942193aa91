# SPDX-License-Identifier: Apache-2.0
"""Rows of plans: a set that many actions share is written out once and read once."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from applier.storage import rows
from applier.storage.schema import TABLES
from applier.testing.sample_plans import new_plan
from planner.plan.model import Action


def test_the_rows_of_a_plan_have_the_columns_of_its_tables():
    plan = new_plan("a")
    (row,) = rows.action_rows(plan)
    claim = {"claim", "claimant_host", "claimant_pid", "claimant_user", "claimant_jobs"}
    claim |= {"claimant_options"}
    claim |= {"heartbeat_at", "heartbeat_interval_s", "requests_before", "claimed_at"}
    order = {"overview", "number", "queued", "reserved", "last_write", "publishes", "deleted_from"}
    assert set(rows.plan_row(plan)) == {*TABLES["actionplan_plan"]} - claim - order
    assert set(row) == {*TABLES["actionplan_action"], *TABLES["actionplan_action_state"]}


def test_a_shared_set_of_links_is_one_text():
    first = [f"uuid-{i}" for i in range(3)]
    members = [Action(uuid=uuid, action_type="nop") for uuid in first]
    # Equal sets count, not only the same object: each of these is another.
    members += [Action(uuid=c, action_type="nop", parents=tuple(first)) for c in "abc"]
    written = [row["parents"] for row in rows.action_rows(replace(new_plan(), actions=members))]
    assert json.loads(written[-1]) == first
    assert len({id(text) for text in written[3:]}) == 1


@pytest.mark.parametrize("field", ["parents", "needs", "triggers", "blocked_by"])
def test_a_link_to_what_is_not_there_cannot_be_read(field):
    plan = new_plan("a")
    (row,) = rows.action_rows(plan)
    links = [["gone", ["changed"]]] if field in ("triggers", "blocked_by") else ["gone"]
    damaged = {**row, field: json.dumps(links)}
    with pytest.raises(rows.UnreadableValue, match="a link to gone, which is no action"):
        rows.plan_of(rows.plan_row(plan), [damaged])
