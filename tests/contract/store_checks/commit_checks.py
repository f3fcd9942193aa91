# SPDX-License-Identifier: Apache-2.0
"""Checks that starts and ends of actions are recorded as reported."""

# Tests are assertions.

from __future__ import annotations

from dataclasses import replace

from sample_plans import new_plan

from applier.contracts import Report
from planner.plan.states import ActionState, Outcome, PlanState
from store_checks.running_plans import (
    LATER,
    NOW,
    RunStoreUnderTest,
    at_once,
    claimed,
    starts,
    succeeds,
)


class CommitChecks:
    """Checks of the states, times and attempts that a commit writes."""

    def test_a_start_and_an_end_set_their_times(self, store: RunStoreUnderTest) -> None:
        """A start adds one to the attempts; an end leaves the time of the start."""
        plan = new_plan("a")
        (a,) = plan.actions
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(a)], now=NOW)
        loaded = store.load_plan(plan.uuid)
        (running,) = loaded.actions
        assert running == replace(a, state=ActionState.ONGOING, started_at=NOW, attempts=1)
        assert loaded.updated_at == NOW
        end = succeeds(a, message="moved", output="all of it")
        store.commit(plan.uuid, claim, [end], now=LATER)
        loaded = store.load_plan(plan.uuid)
        assert loaded.actions == (
            replace(
                running,
                state=ActionState.SUCCEEDED,
                outcome=Outcome.CHANGED,
                status_message="moved",
                ended_at=LATER,
            ),
        )
        assert loaded.updated_at == LATER
        assert store.attempts(plan.uuid, a.uuid)[-1].output == "all of it"

    def test_what_does_not_run_has_no_start_on_record(self, store: RunStoreUnderTest) -> None:
        """An action that ends without running has the time of its end, and no start."""
        plan = new_plan("a")
        (a,) = plan.actions
        claim = claimed(store, plan)
        failed = ActionState.FAILED_DEPENDENCIES
        report = Report(uuid=a.uuid, old=ActionState.PENDING, state=failed, message="b failed")
        store.commit(plan.uuid, claim, [report], now=NOW)
        assert store.load_plan(plan.uuid).actions == (
            replace(a, state=failed, status_message="b failed", ended_at=NOW),
        )

    def test_a_batch_is_written_in_its_order(self, store: RunStoreUnderTest) -> None:
        """An action may start and end in one batch."""
        plan = new_plan("a", "b", "c")
        a, b, c = plan.actions
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(a)], now=NOW)
        store.commit(plan.uuid, claim, [succeeds(a), starts(b), succeeds(b), starts(c)], now=LATER)
        states = [x.state for x in store.load_plan(plan.uuid).actions]
        assert states == [ActionState.SUCCEEDED, ActionState.SUCCEEDED, ActionState.ONGOING]

    def test_several_plans_run_at_once(self, store: RunStoreUnderTest) -> None:
        """Threads that commit for different plans lose no report."""
        several = [new_plan(*map(str, range(12))) for _ in range(4)]
        claims = [claimed(store, plan) for plan in several]

        def run(index: int) -> None:
            plan, claim = several[index], claims[index]
            for action in plan.actions:
                store.commit(plan.uuid, claim, [starts(action)], now=NOW)
                store.commit(plan.uuid, claim, [succeeds(action)], now=LATER)
            store.move_claimed(plan.uuid, claim, PlanState.SUCCEEDED, now=LATER)

        assert at_once(4, run) == [None] * 4
        for plan in several:
            loaded = store.load_plan(plan.uuid)
            assert loaded.state is PlanState.SUCCEEDED
            assert {a.state for a in loaded.actions} == {ActionState.SUCCEEDED}
