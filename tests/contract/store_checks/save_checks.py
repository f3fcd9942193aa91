# SPDX-License-Identifier: Apache-2.0
"""Checks that a plan is saved as a whole, and only once."""

# Tests are assertions.

from __future__ import annotations

from dataclasses import replace

import pytest
from refusal_checks import refused
from sample_plans import new_plan

from applier.errors import PlanConflict
from applier.storage.sql_store import SqlStore
from planner.errors import InvalidPlan


class SaveChecks:
    """Saving plans."""

    def test_a_uuid_is_saved_once(self, store: SqlStore) -> None:
        """A second plan with the uuid is refused, and the first does not change."""
        plan = new_plan("a", "b")
        store.save_plan(plan)
        with refused(PlanConflict, plan=plan.uuid, state="RECOMMENDED"):
            store.save_plan(replace(plan, name="other", actions=plan.actions[:1]))
        assert store.load_plan(plan.uuid).to_dict() == plan.to_dict()

    def test_a_plan_whose_actions_share_a_uuid_is_refused_whole(self, store: SqlStore) -> None:
        """Nothing of the plan is stored; each uuid that occurs twice is named, and no other."""
        plan = new_plan("a", "b")
        a, b = plan.actions
        with pytest.raises(InvalidPlan) as refusal:
            store.save_plan(replace(plan, actions=(a, b, b)))
        (problem,) = refusal.value.problems
        assert b.uuid in problem
        assert store.list_plans() == []
