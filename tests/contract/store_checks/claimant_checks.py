# SPDX-License-Identifier: Apache-2.0
"""Checks the recorded claimants of plans and their heartbeats."""

# Tests are assertions.

from __future__ import annotations

from functools import partial

import pytest
from sample_plans import MADE, new_plan

from applier.contracts import Request
from applier.errors import PlanConflict, RequestsUnread
from applier.storage.sql_store import SqlStore
from planner.plan.states import PlanState
from store_checks.running_plans import (
    LATER,
    ME,
    NOW,
    at_once,
    claimed,
    starts,
    succeeds,
)


class ClaimantChecks:
    """Checks who runs a plan, and the heartbeats of that process."""

    def test_the_claimant_of_a_plan_is_known_until_the_claim_ends(self, store: SqlStore) -> None:
        """A plan that is CANCELLING has a claimant, a PENDING or CANCELLED one has none."""
        plan = new_plan("a", state=PlanState.PENDING)
        store.save_plan(plan)
        assert store.claimant(plan.uuid) is None
        claim = store.claim_plan(plan.uuid, ME, now=NOW)
        assert store.claimant(plan.uuid) == ME._replace(heartbeat_at=NOW, claimed_at=NOW)
        store.move_claimed(plan.uuid, claim, PlanState.CANCELLING, now=NOW)
        assert store.claimant(plan.uuid) == ME._replace(heartbeat_at=NOW, claimed_at=NOW)
        store.move_claimed(plan.uuid, claim, PlanState.CANCELLED, now=NOW)
        assert store.claimant(plan.uuid) is None

    def test_of_many_who_claim_at_once_the_one_who_does_is_the_claimant(
        self, store: SqlStore
    ) -> None:
        """The recorded host, process and user are those of the caller that got the token."""
        plan = new_plan("a", state=PlanState.PENDING)
        store.save_plan(plan)
        answers = at_once(
            4, lambda index: store.claim_plan(plan.uuid, ME._replace(pid=index), now=NOW)
        )
        (winner,) = [index for index, answer in enumerate(answers) if isinstance(answer, str)]
        assert store.claimant(plan.uuid) == ME._replace(
            pid=winner, heartbeat_at=NOW, claimed_at=NOW
        )

    def test_a_claimant_is_heard_of_when_it_claims_and_when_it_says_so(
        self, store: SqlStore
    ) -> None:
        """A heartbeat is stored even if its time is before that of the last one."""
        plan = new_plan("a")
        claim = claimed(store, plan)
        assert store.claimant(plan.uuid) == ME._replace(heartbeat_at=MADE, claimed_at=MADE)
        for now in (LATER, NOW):
            store.beat(plan.uuid, claim, now=now)
            assert store.claimant(plan.uuid) == ME._replace(heartbeat_at=now, claimed_at=MADE)
        assert store.load_plan(plan.uuid).updated_at == MADE

    @pytest.mark.parametrize("interval_s", [0.5, 5.0, 3600.0])
    def test_a_claim_says_its_own_heartbeat_interval(
        self, store: SqlStore, interval_s: float
    ) -> None:
        """A later claim of the plan may have another interval; a heartbeat does not change it."""
        plan = new_plan("a", state=PlanState.PENDING)
        store.save_plan(plan)
        for says_s in (interval_s, 2 * interval_s):
            me = ME._replace(heartbeat_interval_s=says_s)
            claim = store.claim_plan(plan.uuid, me, now=NOW)
            store.beat(plan.uuid, claim, now=LATER)
            assert store.claimant(plan.uuid) == me._replace(heartbeat_at=LATER, claimed_at=NOW)
            store.move_claimed(plan.uuid, claim, PlanState.PENDING, now=LATER)
            found = store.last_claimant(plan.uuid)
            assert found is not None
            assert found.heartbeat_interval_s == says_s

    def test_a_commit_is_a_heartbeat(self, store: SqlStore) -> None:
        """A commit sets the time of the last heartbeat; a refused one does not."""
        plan = new_plan("a", "b")
        claim = claimed(store, plan)
        a, b = plan.actions
        store.commit(plan.uuid, claim, [starts(a)], now=NOW)
        assert store.claimant(plan.uuid) == ME._replace(heartbeat_at=NOW, claimed_at=MADE)
        store.commit(plan.uuid, claim, [succeeds(a), starts(b)], now=LATER)
        assert store.claimant(plan.uuid) == ME._replace(heartbeat_at=LATER, claimed_at=MADE)
        with pytest.raises(PlanConflict):
            store.commit(plan.uuid, claim, [starts(b)], now=NOW)
        assert store.claimant(plan.uuid) == ME._replace(heartbeat_at=LATER, claimed_at=MADE)

    def test_a_claim_does_not_end_over_a_request_that_was_not_read(self, store: SqlStore) -> None:
        """RequestsUnread is raised unless ``read`` is the number of the last request, or None."""
        plan = new_plan("a")
        claim = claimed(store, plan)
        for verb in ("pause", "cancel"):
            store.add_request(plan.uuid, Request(verb=verb, who="wanda"), now=NOW)
        end = partial(store.move_claimed, plan.uuid, claim, PlanState.PENDING, now=NOW)
        for read in (0, 1):
            with pytest.raises(RequestsUnread):
                end(read=read)
        assert store.load_plan(plan.uuid).state is PlanState.ONGOING
        end(read=2)
        claim = store.claim_plan(plan.uuid, ME, now=NOW)
        store.add_request(plan.uuid, Request(verb="pause", who="wanda"), now=NOW)
        store.move_claimed(plan.uuid, claim, PlanState.PAUSED, now=NOW)
        assert store.load_plan(plan.uuid).state is PlanState.PAUSED

    def test_a_plan_may_be_handed_back_by_its_claimant(self, store: SqlStore) -> None:
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
