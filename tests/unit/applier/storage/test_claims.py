# SPDX-License-Identifier: Apache-2.0
"""When a claim ends."""

from __future__ import annotations

from applier.storage.claims import ends_claim
from planner.states import PlanState


def test_a_claim_stays_only_while_the_plan_runs():
    kept = {PlanState.ONGOING, PlanState.CANCELLING}
    assert {state for state in PlanState if not ends_claim(state)} == kept
