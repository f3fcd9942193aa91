# SPDX-License-Identifier: Apache-2.0
"""Checks that plans are resumed after a pause, an end, or the loss of their claimant."""

# Tests are assertions.

from __future__ import annotations

from dataclasses import replace

import pytest
from refusal_checks import refused
from sample_plans import MADE, new_plan

from applier.contracts import ActionOf, Report
from applier.errors import ActionNotFound
from applier.storage.sql_store import SqlStore
from planner.errors import InvalidTransition
from planner.plan.model import ActionPlan
from planner.plan.states import ActionState, Outcome, PlanState, Who, sources
from store_checks.running_plans import (
    LATER,
    ME,
    NOW,
    claimed,
    ends,
    starts,
    succeeds,
)

#: States in which an action ends without a start.
NOT_RUN = (ActionState.FAILED_DEPENDENCIES, ActionState.CANCELLED, ActionState.SKIPPED)


def brought(store: SqlStore, plan: ActionPlan, state: PlanState) -> None:
    """Save a plan, and change its state to ``state`` by allowed transitions."""
    if state in (PlanState.RECOMMENDED, PlanState.PENDING):
        store.save_plan(replace(plan, state=state))
        return
    claim = claimed(store, plan)
    if state in (PlanState.CANCELLING, PlanState.CANCELLED):
        store.move_claimed(plan.uuid, claim, PlanState.CANCELLING, now=MADE)
    if state not in (PlanState.ONGOING, PlanState.CANCELLING):
        store.move_claimed(plan.uuid, claim, state, now=MADE)


class ResumeChecks:
    """The plans that can be resumed, and the states of their actions."""

    @pytest.mark.parametrize(
        "state",
        [
            state
            for state in sources(PlanState.PENDING, Who.OPERATOR)
            if state not in (PlanState.RECOMMENDED, PlanState.SUCCEEDED)
        ],
    )
    def test_a_plan_that_stands_or_has_lost_its_claimant_is_resumed(
        self, store: SqlStore, state: PlanState
    ) -> None:
        """The plan is PENDING and has no claimant."""
        plan = new_plan("a")
        brought(store, plan, state)
        store.resume_plan(plan.uuid, [], now=NOW, message="by wanda")
        loaded = store.load_plan(plan.uuid)
        assert (loaded.state, loaded.updated_at) == (PlanState.PENDING, NOW)
        assert loaded.status_message == "by wanda"
        assert store.claimant(plan.uuid) is None
        store.claim_plan(plan.uuid, ME, now=NOW)

    @pytest.mark.parametrize(
        "state", [PlanState.RECOMMENDED, PlanState.PENDING, PlanState.SUCCEEDED]
    )
    def test_a_plan_that_needs_no_resuming_is_refused(
        self, store: SqlStore, state: PlanState
    ) -> None:
        """InvalidTransition is raised and nothing changes."""
        plan = new_plan("a")
        brought(store, plan, state)
        before = store.load_plan(plan.uuid)
        with refused(InvalidTransition, uuid=plan.uuid, old=state):
            store.resume_plan(plan.uuid, [], now=LATER)
        assert store.load_plan(plan.uuid) == before

    def test_what_a_rollback_undid_can_be_done_again(self, store: SqlStore) -> None:
        """A SUCCEEDED plan is resumed only with actions that are to run again."""
        plan, rollback = new_plan("a"), new_plan("b")
        undoes = ActionOf(plan.uuid, plan.actions[0].uuid)
        for each, undone in ((plan, None), (rollback, undoes)):
            claim = claimed(store, each)
            store.commit(each.uuid, claim, [starts(each.actions[0])], now=NOW)
            end = succeeds(each.actions[0])._replace(undoes=undone)
            store.commit(each.uuid, claim, [end], now=NOW)
            store.move_claimed(each.uuid, claim, PlanState.SUCCEEDED, now=NOW)
        with refused(InvalidTransition, uuid=plan.uuid, old="SUCCEEDED"):
            store.resume_plan(plan.uuid, [], now=LATER)
        store.resume_plan(plan.uuid, [plan.actions[0].uuid], now=LATER)
        loaded = store.load_plan(plan.uuid)
        assert (loaded.state, loaded.actions[0].state) == (PlanState.PENDING, ActionState.PENDING)

    def test_the_named_actions_wait_again_as_if_they_had_not_run(self, store: SqlStore) -> None:
        """They are PENDING, and keep only the number of their attempts, and the output."""
        plan = new_plan(*"abcdef")
        claim = claimed(store, plan)
        done, failed, *others = plan.actions
        store.commit(plan.uuid, claim, [starts(done), starts(failed)], now=NOW)
        failure = ends(
            failed, ActionState.FAILED, outcome=Outcome.ERROR, message="broke", output="log"
        )
        unrun = [
            Report(uuid=action.uuid, old=ActionState.PENDING, state=state, message="because")
            for action, state in zip(others, NOT_RUN, strict=False)
        ]
        store.commit(plan.uuid, claim, [succeeds(done), failure, *unrun], now=NOW)
        store.move_claimed(plan.uuid, claim, PlanState.FAILED, now=NOW)
        before = store.load_plan(plan.uuid)
        again = [failed, *others[: len(NOT_RUN)]]
        store.resume_plan(plan.uuid, [action.uuid for action in again], now=LATER)
        loaded = store.load_plan(plan.uuid)
        assert loaded.actions == (
            before.actions[0],
            replace(failed, attempts=1),
            *others,
        )
        assert store.output(plan.uuid, failed.uuid) == "log"

    def test_a_resume_that_does_not_fit_leaves_everything(self, store: SqlStore) -> None:
        """If one action cannot become PENDING, or is not there, nothing changes."""
        plan = new_plan(*"abcd")
        claim = claimed(store, plan)
        done, failed, running, doubt = plan.actions
        store.commit(plan.uuid, claim, [starts(action) for action in plan.actions], now=NOW)
        unknown = ends(doubt, ActionState.UNKNOWN)
        store.commit(
            plan.uuid, claim, [succeeds(done), ends(failed, ActionState.FAILED), unknown], now=NOW
        )
        store.reserve(plan.uuid, claim, ["node:a"], now=NOW)
        before = store.load_plan(plan.uuid)
        for action in (done, running, doubt):
            with refused(InvalidTransition, uuid=action.uuid):
                store.resume_plan(plan.uuid, [failed.uuid, action.uuid], now=LATER)
        with refused(ActionNotFound, reference="none"):
            store.resume_plan(plan.uuid, [failed.uuid, "none"], now=LATER)
        assert store.load_plan(plan.uuid) == before
        store.beat(plan.uuid, claim, now=LATER)  # the claim is still its own
        store.resume_plan(plan.uuid, [failed.uuid], now=LATER)
        states = [action.state for action in store.load_plan(plan.uuid).actions]
        assert states == ["SUCCEEDED", "PENDING", "ONGOING", "UNKNOWN"]
