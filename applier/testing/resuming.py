# SPDX-License-Identifier: Apache-2.0
"""The part of the suite for stores that is about what an operator does after something went wrong.

See :mod:`applier.testing.stores`, which has the whole.
"""

# Tests are assertions.
# ruff: noqa: S101

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from applier.contracts import ActionOf, Report, Request
from applier.errors import ActionNotFound, PlanConflict
from applier.store import Store
from applier.testing.attempts import ends
from applier.testing.plans import MADE, new_plan
from applier.testing.runs import LATER, ME, NOW, at_once, claimed, starts, succeeds
from planner.errors import InvalidTransition
from planner.model import ActionPlan
from planner.states import ActionState, Outcome, PlanState, StateReason, Who, sources

#: Ways in which an action does not start.
NOT_RUN = (ActionState.FAILED_DEPENDENCIES, ActionState.CANCELLED, ActionState.SKIPPED)


def brought(store: Store, plan: ActionPlan, state: PlanState) -> str | None:
    """Save a plan and bring it to a state; gives the claim that it had, if any."""
    if state is PlanState.RECOMMENDED:
        store.save_plan(plan)
        return None
    if state is PlanState.PENDING:
        store.save_plan(plan)
        store.move_plan(plan.uuid, state, now=MADE)
        return None
    claim = claimed(store, plan)
    if state in (PlanState.CANCELLING, PlanState.CANCELLED):
        store.move_claimed(plan.uuid, claim, PlanState.CANCELLING, now=MADE)
    if state not in (PlanState.ONGOING, PlanState.CANCELLING):
        store.move_claimed(plan.uuid, claim, state, now=MADE)
    return claim


class HeartbeatContract:
    """Whether who runs a plan still lives."""

    def test_a_claimant_is_heard_of_when_it_claims_and_when_it_says_so(self, store: Store) -> None:
        """A time that goes backwards is taken as it is; the plan is not changed by it."""
        plan = new_plan("a")
        claim = claimed(store, plan)
        assert store.claimant(plan.uuid) == replace(ME, heartbeat_at=MADE)
        for now in (LATER, NOW):
            store.beat(plan.uuid, claim, now=now)
            assert store.claimant(plan.uuid) == replace(ME, heartbeat_at=now)
        assert store.load_plan(plan.uuid).updated_at == MADE

    def test_who_lost_its_claim_is_told_when_it_says_that_it_lives(self, store: Store) -> None:
        """Also when another has the plan now, whose heartbeat stays as it is."""
        plan = new_plan("a")
        claim = claimed(store, plan)
        store.resume_plan(plan.uuid, [], now=NOW)
        with pytest.raises(PlanConflict, match="PENDING"):
            store.beat(plan.uuid, claim, now=NOW)
        store.claim_plan(plan.uuid, ME, now=NOW)
        with pytest.raises(PlanConflict, match="ONGOING"):
            store.beat(plan.uuid, claim, now=LATER)
        assert store.claimant(plan.uuid) == replace(ME, heartbeat_at=NOW)


class ResumeContract:
    """A plan goes on: after a pause, after a bad end, and after its claimant is gone."""

    @pytest.mark.parametrize(
        "state",
        [
            state
            for state in sources(PlanState.PENDING, Who.OPERATOR)
            if state not in (PlanState.RECOMMENDED, PlanState.SUCCEEDED)
        ],
    )
    def test_a_plan_that_stands_or_has_lost_its_claimant_is_resumed(
        self, store: Store, state: PlanState
    ) -> None:
        """It waits for an applier, and nobody has it."""
        plan = new_plan("a")
        brought(store, plan, state)
        store.resume_plan(plan.uuid, [], now=NOW, message="by wanda")
        loaded = store.load_plan(plan.uuid)
        assert (loaded.state, loaded.updated_at) == (PlanState.PENDING, NOW)
        assert loaded.status_message == "by wanda"
        assert store.claimant(plan.uuid) is None
        store.claim_plan(plan.uuid, ME, now=NOW)

    def test_who_runs_it_must_be_who_was_seen(self, store: Store) -> None:
        """Of two that find a claimant gone, the second does not take the plan from the first."""
        plan = new_plan("a")
        claim = claimed(store, plan)
        seen = store.claimant(plan.uuid)
        store.beat(plan.uuid, claim, now=LATER)
        for other in (None, seen):
            with pytest.raises(PlanConflict, match="in between"):
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
        self, store: Store, old: PlanState, new: PlanState, waits: ActionState, ran: ActionState
    ) -> None:
        """What ran is in doubt; its claim is void. Who was heard of in between keeps the plan."""
        plan = new_plan("a", "b")
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(plan.actions[0])], now=NOW)
        if old is PlanState.CANCELLING:
            store.move_claimed(plan.uuid, claim, old, now=NOW)
        seen = store.claimant(plan.uuid)
        store.beat(plan.uuid, claim, now=LATER)
        with pytest.raises(PlanConflict, match="in between"):
            store.move_plan(plan.uuid, new, now=LATER, seen=seen)
        seen = store.claimant(plan.uuid)
        store.move_plan(plan.uuid, new, now=LATER, message="gone", seen=seen)
        found = store.load_plan(plan.uuid)
        assert (found.state, found.status_message) == (new, "gone")
        assert [a.state for a in found.actions] == [ran, waits]
        assert store.claimant(plan.uuid) is None
        with pytest.raises(PlanConflict):
            store.commit(plan.uuid, claim, [succeeds(plan.actions[0])], now=LATER)

    @pytest.mark.parametrize(
        "state", [PlanState.RECOMMENDED, PlanState.PENDING, PlanState.SUCCEEDED]
    )
    def test_a_plan_that_needs_no_resuming_is_refused(self, store: Store, state: PlanState) -> None:
        """And stays as it is."""
        plan = new_plan("a")
        brought(store, plan, state)
        before = store.load_plan(plan.uuid)
        with pytest.raises(InvalidTransition, match=f"is {state}: only ONGOING"):
            store.resume_plan(plan.uuid, [], now=LATER)
        assert store.load_plan(plan.uuid) == before

    def test_what_a_rollback_undid_can_be_done_again(self, store: Store) -> None:
        """A plan that SUCCEEDED is resumed where there is something to run, and only there."""
        plan, rollback = new_plan("a"), new_plan("b")
        undoes = ActionOf(plan.uuid, plan.actions[0].uuid)
        for each, undone in ((plan, None), (rollback, undoes)):
            claim = claimed(store, each)
            store.commit(each.uuid, claim, [starts(each.actions[0])], now=NOW)
            end = replace(succeeds(each.actions[0]), undoes=undone)
            store.commit(each.uuid, claim, [end], now=NOW)
            store.move_claimed(each.uuid, claim, PlanState.SUCCEEDED, now=NOW)
        with pytest.raises(InvalidTransition, match="is SUCCEEDED"):
            store.resume_plan(plan.uuid, [], now=LATER)
        store.resume_plan(plan.uuid, [plan.actions[0].uuid], now=LATER)
        loaded = store.load_plan(plan.uuid)
        assert (loaded.state, loaded.actions[0].state) == (PlanState.PENDING, ActionState.PENDING)

    def test_the_named_actions_wait_again_as_if_they_had_not_run(self, store: Store) -> None:
        """Only what they printed and how often they were tried is still known."""
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

    def test_a_resume_that_does_not_fit_leaves_everything(self, store: Store) -> None:
        """An action that may not wait again, or is not there, is a reason to refuse all."""
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
            with pytest.raises(InvalidTransition, match=f"action {action.uuid[:8]} is "):
                store.resume_plan(plan.uuid, [failed.uuid, action.uuid], now=LATER)
        with pytest.raises(ActionNotFound, match="'none'"):
            store.resume_plan(plan.uuid, [failed.uuid, "none"], now=LATER)
        assert store.load_plan(plan.uuid) == before
        store.beat(plan.uuid, claim, now=LATER)  # the claim is still its own
        store.resume_plan(plan.uuid, [failed.uuid], now=LATER)
        states = [action.state for action in store.load_plan(plan.uuid).actions]
        assert states == ["SUCCEEDED", "PENDING", "ONGOING", "UNKNOWN"]

    def test_a_claimant_that_was_thought_dead_writes_nothing_more(self, store: Store) -> None:
        """Not before another has the plan, and not then."""
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
                with pytest.raises(PlanConflict, match=state):
                    write()
            if state == "PENDING":
                with pytest.raises(PlanConflict):
                    store.add_request(plan.uuid, Request(verb="pause", who="wanda"), now=NOW)
                store.claim_plan(plan.uuid, ME, now=NOW)
        assert store.load_plan(plan.uuid).actions == before.actions

    def test_of_several_who_resume_a_plan_at_once_one_does(self, store: Store) -> None:
        """The others are told; what they asked of its actions is not done."""
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

    def test_what_was_cut_off_is_in_doubt_when_its_plan_is_cancelled(self, store: Store) -> None:
        """A cancelled plan has no open action."""
        plan = new_plan("a", "b")
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(plan.actions[0])], now=NOW)
        store.resume_plan(plan.uuid, [], now=NOW)
        store.move_plan(plan.uuid, PlanState.CANCELLED, now=NOW, message="enough")
        states = {a.name: a.state for a in store.load_plan(plan.uuid).actions}
        assert states == {"a": ActionState.UNKNOWN, "b": ActionState.CANCELLED}

    def test_a_plan_may_be_handed_back_by_its_claimant(self, store: Store) -> None:
        """It waits for another, who gets it without anybody being asked."""
        plan = new_plan("a")
        claim = claimed(store, plan)
        store.reserve(plan.uuid, claim, ["node:a"], now=NOW)
        store.move_claimed(plan.uuid, claim, PlanState.PENDING, now=NOW)
        assert store.claimant(plan.uuid) is None
        assert store.pending_plans() == [plan.uuid]
        with pytest.raises(PlanConflict):
            store.beat(plan.uuid, claim, now=NOW)
        assert store.claim_plan(plan.uuid, ME, now=NOW) != claim


class SettleContract:
    """What an operator knows better than the record."""

    def doubtful(self, store: Store) -> tuple[ActionPlan, str]:
        """Make a plan of two actions that runs: UNKNOWN and FAILED."""
        plan = new_plan("a", "b")
        a, b = plan.actions
        claim = claimed(store, plan)
        over = [ends(a, ActionState.UNKNOWN), ends(b, ActionState.FAILED, outcome=Outcome.ERROR)]
        store.commit(plan.uuid, claim, [starts(a), starts(b), *over], now=NOW)
        return plan, claim

    def test_work_in_doubt_is_settled_either_way(self, store: Store) -> None:
        """It ends then; how often it was tried, and how that went, stays on record."""
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

    def test_what_is_not_in_doubt_is_not_settled(self, store: Store) -> None:
        """Nor settled as anything else, nor while somebody runs the plan."""
        plan, claim = self.doubtful(store)
        a, b = (action.uuid for action in plan.actions)
        succeeded = ActionState.SUCCEEDED
        with pytest.raises(PlanConflict, match="is ONGOING"):
            store.settle_action(plan.uuid, a, succeeded, now=LATER, message="")
        store.move_claimed(plan.uuid, claim, PlanState.PAUSED, now=NOW)
        before = store.load_plan(plan.uuid)
        for new in set(ActionState) - {ActionState.SUCCEEDED, ActionState.FAILED}:
            with pytest.raises(InvalidTransition):
                store.settle_action(plan.uuid, b, new, now=LATER, message="")
        with pytest.raises(InvalidTransition, match="is FAILED"):
            store.settle_action(plan.uuid, b, ActionState.FAILED, now=LATER, message="")
        with pytest.raises(ActionNotFound, match="'none'"):
            store.settle_action(plan.uuid, "none", succeeded, now=LATER, message="")
        assert store.load_plan(plan.uuid) == before
        store.settle_action(plan.uuid, a, succeeded, now=LATER, message="")
        with pytest.raises(InvalidTransition, match="is SUCCEEDED"):
            store.settle_action(plan.uuid, a, ActionState.FAILED, now=LATER, message="")
