# SPDX-License-Identifier: Apache-2.0
"""Checks that a rollback changes the states of the actions that it reverts."""

# Tests are assertions.

from __future__ import annotations

from sample_plans import new_plan

from applier.contracts import ActionOf
from planner.plan.states import ActionState, Outcome, PlanState
from store_checks.running_plans import (
    LATER,
    NOW,
    RunStoreUnderTest,
    claimed,
    starts,
    succeeds,
)


class RevertChecks:
    """Commits of a rollback plan."""

    def test_a_revert_tells_what_became_of_what_it_undid(self, store: RunStoreUnderTest) -> None:
        """The commit makes the original actions REVERTED or REVERT_FAILED, if they SUCCEEDED."""
        plan = new_plan(*"abcde")
        stands, fails, doubtful, failed, other = plan.actions
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(a) for a in plan.actions], now=NOW)
        ends = [succeeds(a) for a in (stands, fails, doubtful, other)]
        ends.append(succeeds(failed)._replace(state=ActionState.FAILED, outcome=Outcome.FAILED))
        store.commit(plan.uuid, claim, ends, now=NOW)
        store.move_claimed(plan.uuid, claim, PlanState.FAILED, now=NOW)
        before = store.load_plan(plan.uuid)

        rollback = new_plan(*"abcde")
        claim = claimed(store, rollback)
        store.commit(rollback.uuid, claim, [starts(a) for a in rollback.actions], now=LATER)
        ends = [
            succeeds(rollback.actions[0]),
            succeeds(rollback.actions[1])._replace(state=ActionState.FAILED, message="no route"),
            succeeds(rollback.actions[2])._replace(state=ActionState.UNKNOWN, message="cut off"),
            succeeds(rollback.actions[3]),
            succeeds(rollback.actions[4]),
        ]
        undoes = [ActionOf(plan.uuid, a.uuid) for a in (stands, fails, doubtful, failed)]
        ends = [
            *(r._replace(undoes=u) for r, u in zip(ends, undoes, strict=False)),
            ends[4]._replace(undoes=ActionOf("gone", other.uuid)),
        ]
        store.commit(rollback.uuid, claim, ends, now=LATER)
        found = store.load_plan(plan.uuid)
        assert [a.state for a in found.actions] == [
            ActionState.REVERTED,
            ActionState.REVERT_FAILED,
            ActionState.REVERT_FAILED,
            ActionState.FAILED,
            ActionState.SUCCEEDED,
        ]
        short = rollback.uuid[:8]
        assert [a.status_message for a in found.actions[:3]] == [
            f"undone (rollback plan {short})",
            f"not undone, no route (rollback plan {short})",
            f"not undone, cut off (rollback plan {short})",
        ]
        assert [(a.outcome, a.ended_at) for a in found.actions] == [
            (a.outcome, a.ended_at) for a in before.actions
        ]
