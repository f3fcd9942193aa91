# SPDX-License-Identifier: Apache-2.0
"""Checks the recorded durations of action types."""

# Tests are assertions.
# ruff: noqa: S101

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from applier.testing.sample_plans import new_plan
from applier.testing.store_checks.running_plans import (
    AFTERWARDS,
    LATER,
    ME,
    NOW,
    RunStoreUnderTest,
    claimed,
    ends,
    starts,
    succeeds,
)
from planner.states import ActionState, Outcome, PlanState


class DurationChecks:
    """Durations of the attempts that changed something."""

    def test_durations_are_those_of_attempts_that_did_their_work(
        self, store: RunStoreUnderTest
    ) -> None:
        """The newest come first, in the order of the commits and not by the clock."""
        plan = new_plan(*"abcdef")
        plan = replace(plan, actions=(*plan.actions[:5], replace(plan.actions[5], action_type="x")))
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(action) for action in plan.actions], now=NOW)
        a, b, c, d, e, f = plan.actions
        last = [
            (succeeds(a), 60),
            (succeeds(b, outcome=Outcome.CREATED), 20),
            (succeeds(c, outcome=Outcome.OK), 1),
            (ends(d, ActionState.FAILED, outcome=Outcome.FAILED), 2),
            (succeeds(e), -30),
            (succeeds(f), 0.25),
        ]
        for report, after in last:
            store.commit(plan.uuid, claim, [report], now=NOW + timedelta(seconds=after))
        asked = store.durations(["nop", "x", "none"])
        assert asked == {"nop": [20.0, 60.0], "x": [0.25], "none": []}
        assert store.durations(["x", "nop"], most=2) == {"nop": [20.0], "x": [0.25]}

    def test_work_that_was_cut_off_has_no_duration(self, store: RunStoreUnderTest) -> None:
        """The next claimant finds the work done; when it was done is unknown."""
        plan = new_plan("a")
        (a,) = plan.actions
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(a)], now=NOW)
        store.move_claimed(plan.uuid, claim, PlanState.PENDING, now=NOW)
        claim = store.claim_plan(plan.uuid, ME, now=LATER)
        store.commit(plan.uuid, claim, [succeeds(a)], now=AFTERWARDS)
        assert store.durations(["nop"]) == {"nop": []}
