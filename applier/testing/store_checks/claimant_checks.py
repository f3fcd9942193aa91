# SPDX-License-Identifier: Apache-2.0
"""Checks the recorded claimants of plans and their heartbeats."""

# Tests are assertions.
# ruff: noqa: S101

from __future__ import annotations

from dataclasses import replace

import pytest

from applier.errors import PlanConflict
from applier.store import Store
from applier.testing.sample_plans import MADE, new_plan
from applier.testing.store_checks.running_plans import (
    LATER,
    ME,
    NOW,
    at_once,
    claimed,
)
from planner.states import PlanState


class ClaimantChecks:
    """Claimants and their heartbeats."""

    def test_the_claimant_of_a_plan_is_known_until_the_claim_ends(self, store: Store) -> None:
        """A plan that is CANCELLING has a claimant, a PENDING or CANCELLED one has none."""
        plan = new_plan("a", state=PlanState.PENDING)
        store.save_plan(plan)
        assert store.claimant(plan.uuid) is None
        claim = store.claim_plan(plan.uuid, ME, now=NOW)
        assert store.claimant(plan.uuid) == replace(ME, heartbeat_at=NOW)
        store.move_claimed(plan.uuid, claim, PlanState.CANCELLING, now=NOW)
        assert store.claimant(plan.uuid) == replace(ME, heartbeat_at=NOW)
        store.move_claimed(plan.uuid, claim, PlanState.CANCELLED, now=NOW)
        assert store.claimant(plan.uuid) is None

    def test_of_many_who_claim_at_once_the_one_who_does_is_the_claimant(self, store: Store) -> None:
        """The recorded host, process and user are those of the caller that got the token."""
        plan = new_plan("a", state=PlanState.PENDING)
        store.save_plan(plan)
        answers = at_once(
            4, lambda index: store.claim_plan(plan.uuid, replace(ME, pid=index), now=NOW)
        )
        (winner,) = [index for index, answer in enumerate(answers) if isinstance(answer, str)]
        assert store.claimant(plan.uuid) == replace(ME, pid=winner, heartbeat_at=NOW)

    def test_a_claimant_is_heard_of_when_it_claims_and_when_it_says_so(self, store: Store) -> None:
        """A heartbeat earlier than the last is stored too; heartbeats do not change the plan."""
        plan = new_plan("a")
        claim = claimed(store, plan)
        assert store.claimant(plan.uuid) == replace(ME, heartbeat_at=MADE)
        for now in (LATER, NOW):
            store.beat(plan.uuid, claim, now=now)
            assert store.claimant(plan.uuid) == replace(ME, heartbeat_at=now)
        assert store.load_plan(plan.uuid).updated_at == MADE

    def test_who_lost_its_claim_is_told_when_it_says_that_it_lives(self, store: Store) -> None:
        """Its heartbeat is refused, and does not change that of the next claimant."""
        plan = new_plan("a")
        claim = claimed(store, plan)
        store.resume_plan(plan.uuid, [], now=NOW)
        with pytest.raises(PlanConflict, match="PENDING"):
            store.beat(plan.uuid, claim, now=NOW)
        store.claim_plan(plan.uuid, ME, now=NOW)
        with pytest.raises(PlanConflict, match="ONGOING"):
            store.beat(plan.uuid, claim, now=LATER)
        assert store.claimant(plan.uuid) == replace(ME, heartbeat_at=NOW)

    def test_a_plan_may_be_handed_back_by_its_claimant(self, store: Store) -> None:
        """The plan is PENDING, so that another applier can claim it."""
        plan = new_plan("a")
        claim = claimed(store, plan)
        store.reserve(plan.uuid, claim, ["node:a"], now=NOW)
        store.move_claimed(plan.uuid, claim, PlanState.PENDING, now=NOW)
        assert store.claimant(plan.uuid) is None
        assert store.pending_plans() == [plan.uuid]
        with pytest.raises(PlanConflict):
            store.beat(plan.uuid, claim, now=NOW)
        assert store.claim_plan(plan.uuid, ME, now=NOW) != claim
