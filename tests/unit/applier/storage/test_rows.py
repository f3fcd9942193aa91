# SPDX-License-Identifier: Apache-2.0
"""Rows of plans: a set that many actions share is written out once and read once."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from applier.storage import rows
from applier.testing.sample_plans import new_plan
from planner.plan.model import Action


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
