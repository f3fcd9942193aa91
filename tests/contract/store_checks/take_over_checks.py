# SPDX-License-Identifier: Apache-2.0
"""Checks that a plan is taken from a claimant that is gone, and from no other."""

# Tests are assertions.

from __future__ import annotations

from collections.abc import Callable

import pytest
from refusal_checks import refused
from sample_plans import new_plan

from applier.contracts import Request
from applier.errors import PlanConflict
from applier.storage.sql_store import SqlStore
from planner.errors import InvalidTransition
from planner.plan.model import ActionPlan
from planner.plan.states import ActionState, PlanState
from store_checks.running_plans import (
    LATER,
    ME,
    NOW,
    at_once,
    claimed,
    ends,
    starts,
    succeeds,
)


class TakeOverChecks:
    """Checks of changes to plans whose claimant is believed to have died."""

    def test_who_runs_it_must_be_who_was_seen(self, store: SqlStore) -> None:
        """The resume is refused without ``seen``, and after another heartbeat of the claimant."""
        plan = new_plan("a")
        claim = claimed(store, plan)
        seen = store.claimant(plan.uuid)
        store.beat(plan.uuid, claim, now=LATER)
        for other in (None, seen):
            with refused(PlanConflict, plan=plan.uuid, state="ONGOING"):
                store.resume_plan(plan.uuid, [], now=LATER, seen=other)
        store.beat(plan.uuid, claim, now=LATER)
        store.resume_plan(plan.uuid, [], now=LATER, seen=store.claimant(plan.uuid))
        assert store.load_plan(plan.uuid).state is PlanState.PENDING

    @pytest.mark.parametrize(
        ("old", "new", "waits", "ran"),
        [
            (PlanState.ONGOING, PlanState.PAUSED, ActionState.PENDING, ActionState.UNKNOWN),
            (PlanState.ONGOING, PlanState.CANCELLED, ActionState.CANCELLED, ActionState.UNKNOWN),
            (PlanState.CANCELLING, PlanState.CANCELLED, ActionState.CANCELLED, ActionState.UNKNOWN),
        ],
    )
    def test_a_plan_whose_claimant_was_seen_to_be_gone_is_stopped(
        self, store: SqlStore, old: PlanState, new: PlanState, waits: ActionState, ran: ActionState
    ) -> None:
        """Running actions become UNKNOWN. After a heartbeat since ``seen``, the move is refused."""
        plan = new_plan("a", "b")
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(plan.actions[0])], now=NOW)
        if old is PlanState.CANCELLING:
            store.move_claimed(plan.uuid, claim, old, now=NOW)
        seen = store.claimant(plan.uuid)
        store.beat(plan.uuid, claim, now=LATER)
        with refused(PlanConflict, plan=plan.uuid, state=old):
            store.move_plan(plan.uuid, new, now=LATER, seen=seen)
        seen = store.claimant(plan.uuid)
        store.move_plan(plan.uuid, new, now=LATER, message="gone", seen=seen)
        found = store.load_plan(plan.uuid)
        assert (found.state, found.status_message) == (new, "gone")
        assert [a.state for a in found.actions] == [ran, waits]
        assert store.claimant(plan.uuid) is None
        with pytest.raises(PlanConflict):
            store.commit(plan.uuid, claim, [succeeds(plan.actions[0])], now=LATER)

    def test_a_claimant_that_was_thought_dead_writes_nothing_more(self, store: SqlStore) -> None:
        """Its writes are refused before and after the next claim."""
        plan = new_plan("a", "b")
        a, b = plan.actions
        old = claimed(store, plan)
        store.commit(plan.uuid, old, [starts(a)], now=NOW)
        store.resume_plan(plan.uuid, [], now=NOW)
        before = store.load_plan(plan.uuid)
        for state in ("PENDING", "ONGOING"):
            writes: tuple[Callable[[], None], ...] = (
                lambda: store.commit(plan.uuid, old, [succeeds(a), starts(b)], now=LATER),
                lambda: store.move_claimed(plan.uuid, old, PlanState.FAILED, now=LATER),
                lambda: store.reserve(plan.uuid, old, ["node:a"], now=LATER),
            )
            for write in writes:
                with refused(PlanConflict, plan=plan.uuid, state=state):
                    write()
            if state == "PENDING":
                with pytest.raises(PlanConflict):
                    store.add_request(plan.uuid, Request(verb="pause", who="wanda"), now=NOW)
                store.claim_plan(plan.uuid, ME, now=NOW)
        assert store.load_plan(plan.uuid).actions == before.actions

    def test_of_several_who_resume_a_plan_at_once_one_does(self, store: SqlStore) -> None:
        """The others are refused, and the actions that they named do not change."""
        for _ in range(5):
            plan = new_plan(*"abcd")
            claim = claimed(store, plan)
            fail = [ends(action, ActionState.FAILED) for action in plan.actions]
            store.commit(plan.uuid, claim, [*map(starts, plan.actions), *fail], now=NOW)

            def resume(index: int, plan: ActionPlan = plan) -> int:
                store.resume_plan(plan.uuid, [plan.actions[index].uuid], now=LATER)
                return index

            answers = at_once(4, resume)
            (winner,) = [answer for answer in answers if isinstance(answer, int)]
            refused = [answer for answer in answers if not isinstance(answer, int)]
            assert all(isinstance(r, PlanConflict | InvalidTransition) for r in refused), refused
            states = [action.state for action in store.load_plan(plan.uuid).actions]
            expected = ["FAILED"] * 4
            expected[winner] = "PENDING"
            assert states == expected

    def test_resources_are_released_when_the_plan_is_resumed(self, store: SqlStore) -> None:
        """Until then, the resources of the old claimant stay reserved."""
        plans = [new_plan("a"), new_plan("a")]
        for plan in plans:
            store.reserve(plan.uuid, claimed(store, plan), ["node:a"], now=NOW)
        first, second = plans
        assert [r.plan for r in store.held_by_others(second.uuid)] == [first.uuid]
        store.resume_plan(first.uuid, [], now=NOW)
        assert store.held_by_others(second.uuid) == []
