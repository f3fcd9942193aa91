# SPDX-License-Identifier: Apache-2.0
"""Rows of plans: a set that many actions share is written out once and read once."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import given

from applier.storage import rows
from applier.storage.tables import actions, plans
from applier.testing.plans import new_plan
from applier.testing.plans import plans as any_plan
from planner.model import Action


def test_the_rows_of_a_plan_have_the_columns_of_its_tables():
    plan = new_plan("a")
    (row,) = rows.action_rows(plan)
    claim = {"claim", "claimant_host", "claimant_pid", "claimant_user"}
    claim |= {"heartbeat_at", "claimed_at"}
    order = {"number", "queued", "reserved", "last_write"}
    assert set(rows.plan_row(plan)) == set(plans.c.keys()) - claim - order
    assert set(row) == set(actions.c.keys())


def test_a_shared_set_of_links_is_one_text():
    first = [f"uuid-{i}" for i in range(3)]
    members = [Action(uuid=uuid, action_type="nop") for uuid in first]
    # Equal sets count, not only the same object: each of these is another.
    members += [Action(uuid=c, action_type="nop", parents=tuple(first)) for c in "abc"]
    written = [row["parents"] for row in rows.action_rows(replace(new_plan(), actions=members))]
    assert json.loads(written[-1]) == first
    assert len({id(text) for text in written[3:]}) == 1


@given(plan=any_plan())
def test_rows_may_come_back_in_any_order(plan):
    backwards = list(rows.action_rows(plan))[::-1]
    assert rows.plan_of(rows.plan_row(plan), backwards) == plan
