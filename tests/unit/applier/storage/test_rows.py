# SPDX-License-Identifier: Apache-2.0
"""Rows of plans: a set that many actions share is written out once and read once."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given

from applier.storage import rows
from applier.storage.tables import action_states, actions, plans
from applier.testing.sample_plans import MADE, new_plan
from applier.testing.sample_plans import plans as any_plan
from planner.model import Action
from planner.states import ActionState, Outcome, PlanState, StateReason


def test_the_rows_of_a_plan_have_the_columns_of_its_tables():
    plan = new_plan("a")
    (row,) = rows.action_rows(plan)
    claim = {"claim", "claimant_host", "claimant_pid", "claimant_user", "claimant_jobs"}
    claim |= {"heartbeat_at", "heartbeat_interval_s", "requests_before", "claimed_at"}
    order = {"number", "queued", "reserved", "last_write", "publishes", "deleted_from"}
    assert set(rows.plan_row(plan)) == set(plans.c.keys()) - claim - order
    assert set(row) == {*actions.c.keys(), *action_states.c.keys()}


def test_a_shared_set_of_links_is_one_text():
    first = [f"uuid-{i}" for i in range(3)]
    members = [Action(uuid=uuid, action_type="nop") for uuid in first]
    # Equal sets count, not only the same object: each of these is another.
    members += [Action(uuid=c, action_type="nop", parents=tuple(first)) for c in "abc"]
    written = [row["parents"] for row in rows.action_rows(replace(new_plan(), actions=members))]
    assert json.loads(written[-1]) == first
    assert len({id(text) for text in written[3:]}) == 1


@given(plan=any_plan())
def test_a_plan_is_read_from_its_rows(plan):
    found = rows.plan_of(rows.plan_row(plan), rows.action_rows(plan))
    assert found == plan
    sets = [links for a in found.actions for links in (a.parents, a.needs) if links]
    assert len({id(links) for links in sets}) == len(set(sets)), "equal sets are one object"


@pytest.mark.parametrize("field", ["parents", "needs", "triggers", "blocked_by"])
def test_a_link_to_what_is_not_there_cannot_be_read(field):
    plan = new_plan("a")
    (row,) = rows.action_rows(plan)
    links = [["gone", ["changed"]]] if field in ("triggers", "blocked_by") else ["gone"]
    damaged = {**row, field: json.dumps(links)}
    with pytest.raises(rows.UnreadableValue, match="a link to gone, which is no action"):
        rows.plan_of(rows.plan_row(plan), [damaged])


def test_a_plan_is_refreshed_by_states_alone():
    plan = new_plan("a", "b")
    then = {"state": ActionState.SUCCEEDED, "outcome": Outcome.OK, "attempts": 3}
    then |= {"state_reason": StateReason.OPERATOR, "status_message": "done", "started_at": MADE}
    changed = (replace(plan.actions[0], ended_at=MADE, **then), plan.actions[1])
    head = {"state": PlanState.FAILED, "updated_at": None, "status_message": "it broke"}
    now = replace(plan, actions=changed, **head)
    found = rows.refreshed(plan, rows.plan_row(now), list(rows.action_rows(now))[::-1])
    assert found == now
    assert found.actions[1] is plan.actions[1]
