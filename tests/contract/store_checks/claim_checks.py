# SPDX-License-Identifier: Apache-2.0
"""Checks that only the claimant of a plan writes to it."""

# Tests are assertions.

from __future__ import annotations

from collections.abc import Callable

import pytest
from refusal_checks import refused
from sample_plans import new_plan

from applier.errors import PlanConflict
from planner.errors import InvalidTransition
from planner.plan.model import ActionPlan
from planner.plan.states import PlanState
from store_checks.running_plans import (
    LATER,
    ME,
    NOW,
    RunStoreUnderTest,
    at_once,
    claimed,
    starts,
)


class ClaimChecks:
    """Claims, and writes with claims that have ended."""

    def test_a_claim_makes_the_plan_ongoing(self, store: RunStoreUnderTest) -> None:
        """The claim ends when the claimant changes the state to one other than CANCELLING."""
        plan = new_plan("a", state=PlanState.PENDING)
        store.save_plan(plan)
        claim = store.claim_plan(plan.uuid, ME, now=NOW)
        loaded = store.load_plan(plan.uuid)
        assert (loaded.state, loaded.updated_at) == (PlanState.ONGOING, NOW)
        store.move_claimed(plan.uuid, claim, PlanState.CANCELLING, now=NOW)
        store.move_claimed(plan.uuid, claim, PlanState.CANCELLED, now=LATER, message="asked to")
        loaded = store.load_plan(plan.uuid)
        assert (loaded.state, loaded.updated_at) == (PlanState.CANCELLED, LATER)
        assert loaded.status_message == "asked to"

    def test_only_a_pending_plan_can_be_claimed(self, store: RunStoreUnderTest) -> None:
        """A RECOMMENDED and an ONGOING plan are refused."""
        recommended, running = new_plan("a"), new_plan("a")
        store.save_plan(recommended)
        claimed(store, running)
        for plan, state in ((recommended, "RECOMMENDED"), (running, "ONGOING")):
            with refused(PlanConflict, plan=plan.uuid, state=state):
                store.claim_plan(plan.uuid, ME, now=NOW)

    def test_of_many_who_claim_at_once_exactly_one_does(self, store: RunStoreUnderTest) -> None:
        """The others get PlanConflict; the token of the winner is accepted in writes."""
        for _ in range(5):
            plan = new_plan("a", state=PlanState.PENDING)
            store.save_plan(plan)

            def claim(index: int, uuid: str = plan.uuid) -> str:
                return store.claim_plan(uuid, ME._replace(pid=index), now=NOW)

            answers = at_once(4, claim)
            (token,) = [answer for answer in answers if isinstance(answer, str)]
            assert all(isinstance(a, PlanConflict) for a in answers if not isinstance(a, str))
            store.commit(plan.uuid, token, [starts(plan.actions[0])], now=NOW)

    @pytest.mark.parametrize("given_up", [PlanState.PAUSED, PlanState.PENDING])
    def test_a_claim_that_has_ended_lets_nobody_write(
        self, store: RunStoreUnderTest, given_up: PlanState
    ) -> None:
        """All writes are refused, after the plan was paused and after it was made PENDING again."""
        plan = new_plan("a")
        old = claimed(store, plan)
        store.move_claimed(plan.uuid, old, given_up, now=NOW)
        self.refuses_all(store, plan, old, given_up)
        loaded = store.load_plan(plan.uuid)
        assert (loaded.actions, loaded.updated_at) == (plan.actions, NOW)

    def test_an_old_claim_lets_nobody_write_while_another_runs_the_plan(
        self, store: RunStoreUnderTest
    ) -> None:
        """After the next claim, only writes with the new token are accepted."""
        plan = new_plan("a")
        old = claimed(store, plan)
        store.move_claimed(plan.uuid, old, PlanState.PENDING, now=NOW)
        assert store.claim_plan(plan.uuid, ME, now=NOW) != old
        self.refuses_all(store, plan, old, PlanState.ONGOING)
        loaded = store.load_plan(plan.uuid)
        assert (loaded.actions, loaded.updated_at) == (plan.actions, NOW)

    def refuses_all(
        self, store: RunStoreUnderTest, plan: ActionPlan, old: str, state: PlanState
    ) -> None:
        """Assert that every write with an old claim is refused with the state of the plan."""
        writes: tuple[Callable[[], None], ...] = (
            lambda: store.commit(plan.uuid, old, [starts(plan.actions[0])], now=LATER),
            lambda: store.commit(plan.uuid, old, [], now=LATER),
            lambda: store.move_claimed(plan.uuid, old, PlanState.FAILED, now=LATER),
            lambda: store.reserve(plan.uuid, old, ["node:a"], now=LATER),
            lambda: store.beat(plan.uuid, old, now=LATER),
        )
        for write in writes:
            with refused(PlanConflict, plan=plan.uuid, state=state):
                write()

    def test_a_claimant_moves_its_plan_by_the_table_of_states(
        self, store: RunStoreUnderTest
    ) -> None:
        """Moves to states that only operators may choose are refused."""
        plan = new_plan("a")
        claim = claimed(store, plan)
        for new in (PlanState.CANCELLED, PlanState.DELETED, PlanState.RECOMMENDED):
            with refused(InvalidTransition, uuid=plan.uuid, old="ONGOING", new=new):
                store.move_claimed(plan.uuid, claim, new, now=NOW)
        assert store.load_plan(plan.uuid).state is PlanState.ONGOING
        assert store.load_plan(plan.uuid).actions == plan.actions
