# SPDX-License-Identifier: Apache-2.0
"""When a claim ends, and what those read whose claim is refused."""

from __future__ import annotations

from applier.storage import claims, transitions
from planner.plan.states import PlanState


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
