# SPDX-License-Identifier: Apache-2.0
"""Checks that operators can skip actions, and settle actions whose end is unknown."""

# Tests are assertions.

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from refusal_checks import refused
from sample_plans import new_plan

from applier.contracts import ActionOf
from applier.errors import ActionNotFound, PlanConflict, PlanNotFound
from applier.storage.sql_store import SqlStore
from planner.errors import InvalidTransition
from planner.plan.model import ActionPlan
from planner.plan.states import ActionState, Outcome, PlanState, StateReason
from store_checks.running_plans import (
    LATER,
    ME,
    NOW,
    claimed,
    ends,
    starts,
)


class SettleChecks:
    """Checks of changes of actions, which are possible while nobody runs the plan."""

    def test_a_settled_revert_settles_what_it_reverts(self, store: SqlStore) -> None:
        """The action of the other plan becomes REVERT_FAILED or REVERTED, with an event."""
        plan, rollback = new_plan("a"), new_plan("r")
        of = ActionOf(plan.uuid, plan.actions[0].uuid)
        for each, state in ((plan, ActionState.SUCCEEDED), (rollback, ActionState.UNKNOWN)):
            claim = claimed(store, each)
            (action,) = each.actions
            store.commit(each.uuid, claim, [starts(action)], now=NOW)
            store.commit(each.uuid, claim, [ends(action, state)], now=NOW)
            store.move_claimed(each.uuid, claim, PlanState.FAILED, now=NOW)
        store.subscribe("ops", now=NOW)
        revert = rollback.actions[0].uuid
        for new, then in (
            (ActionState.FAILED, ActionState.REVERT_FAILED),
            (ActionState.SUCCEEDED, ActionState.REVERTED),
        ):
            store.settle_action(
                rollback.uuid, revert, new, now=LATER, message="I looked", undoes=of
            )
            assert store.load_plan(plan.uuid).actions[0].state is then
            assert store.events().events[-1]["data"]["state"] == then

    def test_an_action_is_skipped_while_nobody_runs_the_plan(self, store: SqlStore) -> None:
        """No start and no attempt is recorded."""
        plan = new_plan("a", "b")
        store.save_plan(plan)
        store.skip_action(plan.uuid, plan.actions[0].uuid, now=NOW, message="by hand")
        loaded = store.load_plan(plan.uuid)
        a, b = loaded.actions
        assert (a.state, a.outcome, a.attempts) == (ActionState.SKIPPED, None, 0)
        assert (a.started_at, a.ended_at, a.status_message) == (None, NOW, "by hand")
        assert b == plan.actions[1]
        assert loaded.updated_at == NOW

    def test_a_skip_gets_another_message(self, store: SqlStore) -> None:
        """``reword_skip`` changes only the message, and refuses an action that is not SKIPPED."""
        plan = new_plan("a", "b")
        store.save_plan(plan)
        a, b = (action.uuid for action in plan.actions)
        store.skip_action(plan.uuid, a, now=NOW, message="first")
        before, *_ = store.load_plan(plan.uuid).actions
        for _ in range(2):
            store.reword_skip(plan.uuid, a, message="second")
        with refused(PlanConflict, plan=plan.uuid, state="PENDING"):
            store.reword_skip(plan.uuid, b, message="second")
        with refused(ActionNotFound, plan=plan.uuid, reference="none"):
            store.reword_skip(plan.uuid, "none", message="second")
        with refused(PlanNotFound, reference="none"):
            store.reword_skip("none", a, message="second")
        assert store.load_plan(plan.uuid).actions == (
            replace(before, status_message="second"),
            plan.actions[1],
        )

    def test_a_skip_that_is_not_allowed_changes_nothing(self, store: SqlStore) -> None:
        """A skip is refused if the action is missing or has ended, or the plan has a claimant."""
        plan = new_plan("a", "b")
        store.save_plan(plan)
        a, b = (action.uuid for action in plan.actions)
        with refused(ActionNotFound, plan=plan.uuid, reference="none"):
            store.skip_action(plan.uuid, "none", now=NOW, message="")
        store.skip_action(plan.uuid, a, now=NOW, message="first")
        with refused(InvalidTransition, uuid=a, old="SKIPPED"):
            store.skip_action(plan.uuid, a, now=LATER, message="second")
        store.move_plan(plan.uuid, PlanState.PENDING, now=NOW)
        store.claim_plan(plan.uuid, ME, now=NOW)
        with refused(PlanConflict, plan=plan.uuid, state="ONGOING"):
            store.skip_action(plan.uuid, b, now=LATER, message="")
        loaded = store.load_plan(plan.uuid)
        assert [x.state for x in loaded.actions] == ["SKIPPED", "PENDING"]
        assert (loaded.actions[0].status_message, loaded.updated_at) == ("first", NOW)

    def doubtful(self, store: SqlStore) -> tuple[ActionPlan, str]:
        """Save and claim a plan of an UNKNOWN and a FAILED action; return it and its claim."""
        plan = new_plan("a", "b")
        a, b = plan.actions
        claim = claimed(store, plan)
        over = [ends(a, ActionState.UNKNOWN), ends(b, ActionState.FAILED, outcome=Outcome.ERROR)]
        store.commit(plan.uuid, claim, [starts(a), starts(b), *over], now=NOW)
        return plan, claim

    def test_work_in_doubt_is_settled_either_way(self, store: SqlStore) -> None:
        """The action becomes SUCCEEDED or FAILED; its recorded attempts do not change."""
        plan, claim = self.doubtful(store)
        a, b = plan.actions
        store.move_claimed(plan.uuid, claim, PlanState.FAILED, now=NOW)
        store.settle_action(plan.uuid, a.uuid, ActionState.FAILED, now=LATER, message="I looked")
        settled = store.load_plan(plan.uuid).actions[0]
        ended: dict[str, Any] = {"started_at": NOW, "ended_at": LATER, "attempts": 1}
        failed = replace(a, state=ActionState.FAILED, outcome=Outcome.FAILED, **ended)
        failed = replace(failed, state_reason=StateReason.OPERATOR)
        assert settled == replace(failed, status_message="I looked")
        for action in (a, b):
            store.settle_action(
                plan.uuid, action.uuid, ActionState.SUCCEEDED, now=LATER, message="by hand"
            )
        loaded = store.load_plan(plan.uuid)
        assert [x.state for x in loaded.actions] == ["SUCCEEDED", "SUCCEEDED"]
        assert [x.outcome for x in loaded.actions] == ["changed", "changed"]
        assert loaded.updated_at == LATER
        tried = [store.attempts(plan.uuid, action.uuid) for action in (a, b)]
        assert [attempt.state for (attempt,) in tried] == ["UNKNOWN", "FAILED"]

    def test_what_is_not_in_doubt_is_not_settled(self, store: SqlStore) -> None:
        """Actions in other states are refused, and actions of a plan that has a claimant."""
        plan, claim = self.doubtful(store)
        a, b = (action.uuid for action in plan.actions)
        succeeded = ActionState.SUCCEEDED
        with refused(PlanConflict, plan=plan.uuid, state="ONGOING"):
            store.settle_action(plan.uuid, a, succeeded, now=LATER, message="")
        store.move_claimed(plan.uuid, claim, PlanState.PAUSED, now=NOW)
        before = store.load_plan(plan.uuid)
        for new in set(ActionState) - {ActionState.SUCCEEDED, ActionState.FAILED}:
            with pytest.raises(InvalidTransition):
                store.settle_action(plan.uuid, b, new, now=LATER, message="")
        with refused(InvalidTransition, uuid=b, old="FAILED"):
            store.settle_action(plan.uuid, b, ActionState.FAILED, now=LATER, message="")
        with refused(ActionNotFound, reference="none"):
            store.settle_action(plan.uuid, "none", succeeded, now=LATER, message="")
        assert store.load_plan(plan.uuid) == before
        store.settle_action(plan.uuid, a, succeeded, now=LATER, message="")
        with refused(InvalidTransition, uuid=a, old="SUCCEEDED"):
            store.settle_action(plan.uuid, a, ActionState.FAILED, now=LATER, message="")
