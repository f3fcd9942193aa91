# SPDX-License-Identifier: Apache-2.0
"""What every store has to do right, as tests that any project can run on its own.

In a test module, with pytest and hypothesis::

    from applier.testing.stores import StoreContract

    @pytest.fixture
    def store():
        return MyStore()

    class TestMyStore(StoreContract):
        pass

The store of a test is empty when the test begins, and may be used from several threads.
"""

# Tests are assertions.
# ruff: noqa: S101

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings

from applier.contracts import Request
from applier.errors import ActionNotFound, PlanConflict, PlanNotFound
from applier.store import Store
from applier.testing.attempts import AttemptContract
from applier.testing.plans import MADE, new_plan, plans
from applier.testing.queues import QueueContract, ReservationContract, ServiceContract
from applier.testing.resuming import HeartbeatContract, ResumeContract, SettleContract
from applier.testing.runs import (
    LATER,
    ME,
    NOW,
    ClaimContract,
    CommitContract,
    RequestContract,
    at_once,
    claimed,
    starts,
    succeeds,
)
from planner.errors import InvalidPlan, InvalidTransition
from planner.model import JOIN, Action, ActionPlan, Trigger
from planner.states import ActionState, Outcome, PlanState

SAME_STORE = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


class SavingContract:
    """Saving and loading: what comes back is what was kept."""

    @SAME_STORE
    @given(plan=plans())
    def test_any_plan_comes_back_as_it_was_saved(self, store: Store, plan: ActionPlan) -> None:
        """Every field, every document in it, and the digest over it."""
        store.save_plan(plan)
        loaded = store.load_plan(plan.uuid)
        assert loaded.to_dict() == plan.to_dict()
        assert loaded.digest == plan.digest

    def test_actions_come_back_in_the_order_of_the_schedule(self, store: Store) -> None:
        """Whatever their uuids are."""
        plan = new_plan(*map(str, range(300)))
        store.save_plan(plan)
        loaded = store.load_plan(plan.uuid)
        assert [action.name for action in loaded.actions] == [str(i) for i in range(300)]

    def test_equal_sets_of_links_are_one_object(self, store: Store) -> None:
        """A chunk that many actions wait for costs one tuple, not one each."""
        first = [f"first-{i}" for i in range(20)]
        chunk = tuple(first)
        links: dict[str, Any] = {"parents": chunk, "needs": chunk, "needs_any": (chunk,)}
        links["triggers"] = (Trigger("first-0", (Outcome.CHANGED, Outcome.CREATED)),)
        members = [Action(uuid=uuid, action_type="nop") for uuid in first]
        members += [Action(uuid=f"next-{i}", action_type="nop", **links) for i in range(20)]
        plan = replace(new_plan(), actions=tuple(members))
        store.save_plan(plan)
        loaded = store.load_plan(plan.uuid)
        assert loaded.actions == plan.actions
        behind = [a for a in loaded.actions if a.parents]
        sets = [s for a in behind for s in (a.parents, a.needs, a.needs_any[0])]
        assert len({id(links) for links in sets}) == 1

    def test_a_uuid_is_saved_once(self, store: Store) -> None:
        """The second is refused, and the first stays as it is."""
        plan = new_plan("a", "b")
        store.save_plan(plan)
        with pytest.raises(PlanConflict, match=plan.uuid) as refusal:
            store.save_plan(replace(plan, name="other", actions=plan.actions[:1]))
        assert refusal.value.state == "RECOMMENDED"
        assert store.load_plan(plan.uuid).to_dict() == plan.to_dict()

    def test_two_plans_may_name_their_actions_alike(self, store: Store) -> None:
        """An action is known by its uuid within its plan."""
        plan = new_plan("a")
        twin = replace(new_plan(), actions=plan.actions)
        claim = claimed(store, plan)
        store.save_plan(twin)
        store.commit(plan.uuid, claim, [starts(plan.actions[0])], now=NOW)
        assert store.load_plan(twin.uuid).actions == plan.actions

    def test_a_plan_whose_actions_share_a_uuid_is_refused_whole(self, store: Store) -> None:
        """No record could tell them apart."""
        plan = new_plan("a")
        plan = replace(plan, actions=plan.actions * 2)
        with pytest.raises(InvalidPlan, match=plan.actions[0].uuid):
            store.save_plan(plan)
        assert store.list_plans() == []

    def test_what_is_not_there_is_not_found(self, store: Store) -> None:
        """Every method that takes a uuid refuses one that is not stored."""
        for call in (
            lambda: store.load_plan("none"),
            lambda: store.move_plan("none", PlanState.PENDING, now=NOW),
            lambda: store.skip_action("none", "none", now=NOW, message=""),
            lambda: store.claim_plan("none", ME, now=NOW),
            lambda: store.claimant("none"),
            lambda: store.commit("none", "claim", [], now=NOW),
            lambda: store.move_claimed("none", "claim", PlanState.PAUSED, now=NOW),
            lambda: store.add_request("none", Request(verb="cancel", who="wanda"), now=NOW),
            lambda: store.output("none", "none"),
            lambda: store.attempts("none", "none"),
            lambda: store.beat("none", "claim", now=NOW),
            lambda: store.resume_plan("none", [], now=NOW),
            lambda: store.settle_action("none", "x", ActionState.FAILED, now=NOW, message=""),
            lambda: store.reserve("none", "claim", ["node:a"], now=NOW),
            lambda: store.held_by_others("none"),
        ):
            with pytest.raises(PlanNotFound, match="'none'"):
                call()


class FindingContract:
    """Finding the plan that a person means, and listing them."""

    def save(self, store: Store, *heads: tuple[str, str | None]) -> None:
        """Save plans of these uuids and names."""
        for uuid, name in heads:
            store.save_plan(new_plan(uuid=uuid, name=name))

    def test_a_plan_is_found_by_uuid_beginning_and_name(self, store: Store) -> None:
        """A beginning has at least four characters."""
        self.save(store, ("6a1f0000", "drain"), ("6a1f1111", "Drain"), ("77e0ffff", None))
        for reference in ("77e0ffff", "77e0f", "77e0"):
            assert store.find_plan(reference) == "77e0ffff"
        assert store.find_plan("drain") == "6a1f0000"
        assert store.find_plan("Drain") == "6a1f1111"
        for reference in ("77e", "77E0", "7e0f", "77e0ffff0", "drai", "", "%", "____", "6a1f%"):
            with pytest.raises(PlanNotFound) as refusal:
                store.find_plan(reference)
            assert refusal.value.candidates == (), reference

    def test_what_fits_several_plans_is_refused_with_what_tells_them_apart(
        self, store: Store
    ) -> None:
        """Beginnings and names count alike; the candidates are short enough to type."""
        self.save(store, ("6a1f0000-1111-a", "web"), ("6a1f0000-1111-b", "77e0"))
        self.save(store, ("77e0aaaa-2222", "web"))
        for reference, candidates in {
            "6a1f": ("6a1f0000-1111-a", "6a1f0000-1111-b"),
            "web": ("6a1f0000", "77e0aaaa"),
            "77e0": ("6a1f0000", "77e0aaaa"),
        }.items():
            with pytest.raises(PlanNotFound) as refusal:
                store.find_plan(reference)
            assert refusal.value.candidates == candidates

    def test_a_whole_uuid_is_preferred(self, store: Store) -> None:
        """Though it is also the beginning of another, and the name of a third."""
        self.save(store, ("abcd", None), ("abcdef", None), ("ffff", "abcd"))
        assert store.find_plan("abcd") == "abcd"

    def test_last_is_the_plan_that_was_saved_last(self, store: Store) -> None:
        """No clock decides; removed ones do not count."""
        with pytest.raises(PlanNotFound):
            store.find_plan("last")
        self.save(store, ("first", None))
        store.save_plan(new_plan(uuid="second", created_at=MADE - timedelta(days=9)))
        assert store.find_plan("last") == "second"
        store.move_plan("second", PlanState.DELETED, now=NOW)
        assert store.find_plan("last") == "first"

    def test_a_removed_plan_is_found_by_its_whole_uuid_only(self, store: Store) -> None:
        """And its name is free for another."""
        self.save(store, ("abcd-1", "web"), ("abcd-2", "web"))
        store.move_plan("abcd-1", PlanState.DELETED, now=NOW)
        assert store.find_plan("web") == store.find_plan("abcd") == "abcd-2"
        assert store.find_plan("abcd-1") == "abcd-1"
        assert store.load_plan("abcd-1").state is PlanState.DELETED

    def test_plans_are_listed_saved_last_first_with_counts(self, store: Store) -> None:
        """One line each; removed ones only when asked for. Joins are not counted."""
        assert store.list_plans() == []
        plan = new_plan("a", "b", "c", name="web")
        join = Action(uuid=str(uuid4()), action_type=JOIN)
        plan = replace(plan, actions=(*plan.actions, join))
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(plan.actions[0])], now=NOW)
        self.save(store, ("empty", None), ("gone", None))
        store.move_plan("gone", PlanState.DELETED, now=NOW)
        empty, running = store.list_plans()
        assert (empty.uuid, empty.updated_at, dict(empty.actions)) == ("empty", None, {})
        assert (running.uuid, running.name, running.planner) == (plan.uuid, "web", "weight")
        assert (running.state, running.created_at) == (PlanState.ONGOING, MADE)
        assert running.updated_at == NOW
        assert dict(running.actions) == {ActionState.PENDING: 2, ActionState.ONGOING: 1}
        assert [s.uuid for s in store.list_plans(state=PlanState.DELETED)] == ["gone"]
        assert [s.uuid for s in store.list_plans(state=PlanState.ONGOING)] == [plan.uuid]
        assert [s.uuid for s in store.list_plans(limit=1)] == ["empty"]
        assert store.list_plans(limit=0) == []
        states = (None, PlanState.DELETED, PlanState.ONGOING, PlanState.FAILED)
        assert [store.count_plans(state=state) for state in states] == [2, 1, 1, 0]


class OperatorContract:
    """What an operator may change while nobody runs the plan."""

    def test_a_move_keeps_time_and_message(self, store: Store) -> None:
        """A move without a message clears the one before."""
        plan = new_plan("a")
        store.save_plan(plan)
        store.move_plan(plan.uuid, PlanState.PENDING, now=NOW, message="at night\0")
        loaded = store.load_plan(plan.uuid)
        assert (loaded.state, loaded.updated_at) == (PlanState.PENDING, NOW)
        assert loaded.status_message == "at night\N{REPLACEMENT CHARACTER}"
        store.move_plan(plan.uuid, PlanState.CANCELLED, now=LATER)
        loaded = store.load_plan(plan.uuid)
        assert (loaded.created_at, loaded.updated_at) == (MADE, LATER)
        assert loaded.status_message is None

    def test_a_move_that_the_table_of_states_does_not_have_is_refused(self, store: Store) -> None:
        """Also one that only an applier may do."""
        plan = new_plan("a")
        store.save_plan(plan)
        for new in (PlanState.ONGOING, PlanState.SUCCEEDED, PlanState.PAUSED):
            with pytest.raises(InvalidTransition, match=f"is RECOMMENDED: .* {new}"):
                store.move_plan(plan.uuid, new, now=NOW)
        assert store.load_plan(plan.uuid).to_dict() == plan.to_dict()

    def test_of_several_who_start_a_plan_one_does(self, store: Store) -> None:
        """The others come too late, and are told."""
        plan = new_plan("a")
        store.save_plan(plan)
        answers = at_once(4, lambda _: store.move_plan(plan.uuid, PlanState.PENDING, now=NOW))
        refusals = [answer for answer in answers if answer is not None]
        assert len(refusals) == 3
        assert all(isinstance(r, PlanConflict | InvalidTransition) for r in refusals), refusals

    def test_cancelling_a_plan_cancels_what_has_not_started(self, store: Store) -> None:
        """What was skipped stays skipped."""
        plan = new_plan("a", "b", "c")
        store.save_plan(plan)
        store.skip_action(plan.uuid, plan.actions[1].uuid, now=NOW, message="done by hand")
        store.move_plan(plan.uuid, PlanState.CANCELLED, now=LATER, message="not today")
        a, b, c = store.load_plan(plan.uuid).actions
        assert [x.state for x in (a, b, c)] == ["CANCELLED", "SKIPPED", "CANCELLED"]
        assert (a.ended_at, a.started_at, a.status_message) == (LATER, None, "not today")
        assert (b.ended_at, b.status_message) == (NOW, "done by hand")

    def test_cancelling_a_paused_plan_leaves_what_ended(self, store: Store) -> None:
        """Only PENDING actions are cancelled."""
        plan = new_plan("a", "b")
        claim = claimed(store, plan)
        a, _ = plan.actions
        store.commit(plan.uuid, claim, [starts(a), succeeds(a)], now=NOW)
        store.move_claimed(plan.uuid, claim, PlanState.PAUSED, now=NOW)
        store.move_plan(plan.uuid, PlanState.CANCELLED, now=LATER)
        states = [x.state for x in store.load_plan(plan.uuid).actions]
        assert states == [ActionState.SUCCEEDED, ActionState.CANCELLED]

    def test_an_action_is_skipped_while_nobody_runs_the_plan(self, store: Store) -> None:
        """It has no start on record."""
        plan = new_plan("a", "b")
        store.save_plan(plan)
        store.skip_action(plan.uuid, plan.actions[0].uuid, now=NOW, message="by hand")
        loaded = store.load_plan(plan.uuid)
        a, b = loaded.actions
        assert (a.state, a.outcome, a.attempts) == (ActionState.SKIPPED, None, 0)
        assert (a.started_at, a.ended_at, a.status_message) == (None, NOW, "by hand")
        assert b == plan.actions[1]
        assert loaded.updated_at == NOW

    def test_a_skip_that_is_not_allowed_changes_nothing(self, store: Store) -> None:
        """Unknown, done already, or somebody runs the plan."""
        plan = new_plan("a", "b")
        store.save_plan(plan)
        a, b = (action.uuid for action in plan.actions)
        with pytest.raises(ActionNotFound, match="no action 'none'"):
            store.skip_action(plan.uuid, "none", now=NOW, message="")
        store.skip_action(plan.uuid, a, now=NOW, message="first")
        with pytest.raises(InvalidTransition, match="is SKIPPED"):
            store.skip_action(plan.uuid, a, now=LATER, message="second")
        store.move_plan(plan.uuid, PlanState.PENDING, now=NOW)
        store.claim_plan(plan.uuid, ME, now=NOW)
        with pytest.raises(PlanConflict, match="is ONGOING") as refusal:
            store.skip_action(plan.uuid, b, now=LATER, message="")
        assert refusal.value.state == "ONGOING"
        loaded = store.load_plan(plan.uuid)
        assert [x.state for x in loaded.actions] == ["SKIPPED", "PENDING"]
        assert (loaded.actions[0].status_message, loaded.updated_at) == ("first", NOW)


class StoreContract(
    SavingContract,
    FindingContract,
    OperatorContract,
    ClaimContract,
    CommitContract,
    RequestContract,
    AttemptContract,
    HeartbeatContract,
    ResumeContract,
    SettleContract,
    QueueContract,
    ReservationContract,
    ServiceContract,
):
    """All of the above, for the store of the fixture ``store``."""
