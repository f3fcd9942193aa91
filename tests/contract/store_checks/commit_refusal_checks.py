# SPDX-License-Identifier: Apache-2.0
"""Checks that a commit is atomic, and requires the old states of its reports."""

# Tests are assertions.

from __future__ import annotations

import pytest
from refusal_checks import refused
from sample_plans import new_plan

from applier.contracts import Report
from applier.errors import ActionNotFound, PlanConflict
from applier.store import Attempt
from planner.errors import InvalidTransition
from planner.plan.states import ActionState
from store_checks.running_plans import (
    LATER,
    NOW,
    RunStoreUnderTest,
    claimed,
    starts,
    succeeds,
)


class CommitRefusalChecks:
    """The commits that are refused."""

    def test_a_report_that_does_not_fit_leaves_nothing_of_its_batch(
        self, store: RunStoreUnderTest
    ) -> None:
        """Its old state may be wrong, its action unknown, or its transition not allowed."""
        plan = new_plan("a", "b", "c", "d")
        a, b, c, _ = plan.actions
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(a), starts(b)], now=NOW)
        before = store.load_plan(plan.uuid)
        batch = [succeeds(a, output="a"), starts(b), starts(c)]
        with refused(PlanConflict, plan=plan.uuid):
            store.commit(plan.uuid, claim, batch, now=LATER)
        unknown = starts(c)._replace(uuid="none")
        with refused(ActionNotFound, reference="none"):
            store.commit(plan.uuid, claim, [succeeds(a), unknown, starts(c)], now=LATER)
        again = Report(uuid=c.uuid, old=ActionState.SUCCEEDED, state=ActionState.ONGOING)
        with pytest.raises(InvalidTransition):
            store.commit(plan.uuid, claim, [succeeds(a), again], now=LATER)
        with pytest.raises(PlanConflict):
            store.commit(plan.uuid, claim, [starts(c), starts(c)], now=LATER)
        assert store.load_plan(plan.uuid) == before
        (attempt,) = store.attempts(plan.uuid, a.uuid)
        assert attempt.ended_at is None

    def test_a_batch_is_not_written_twice(self, store: RunStoreUnderTest) -> None:
        """An equal batch with an equal time is refused as well."""
        plan = new_plan("a")
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(plan.actions[0])], now=NOW)
        with pytest.raises(PlanConflict):
            store.commit(plan.uuid, claim, [starts(plan.actions[0])], now=NOW)
        assert store.load_plan(plan.uuid).actions[0].attempts == 1

    def test_a_batch_that_does_not_fit_leaves_no_attempt(self, store: RunStoreUnderTest) -> None:
        """The reports of the batch that fit are not written either."""
        plan = new_plan("a", "b")
        a, b = plan.actions
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(a)], now=NOW)
        with refused(PlanConflict, plan=plan.uuid):
            store.commit(plan.uuid, claim, [succeeds(a), succeeds(b)], now=LATER)
        assert store.attempts(plan.uuid, a.uuid) == [Attempt(number=1, started_at=NOW)]
        assert store.attempts(plan.uuid, b.uuid) == []
