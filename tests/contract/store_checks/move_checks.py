# SPDX-License-Identifier: Apache-2.0
"""Checks that operators can start, cancel and remove plans that nobody runs."""

# Tests are assertions.

from __future__ import annotations

from collections.abc import Callable

import pytest
from refusal_checks import refused
from sample_plans import MADE, new_plan

from applier.contracts import Report, Request
from applier.errors import PlanConflict, PlanNotFound
from applier.storage.sql_store import SqlStore
from planner.errors import InvalidTransition
from planner.plan.states import ActionState, PlanState, StateReason
from store_checks.running_plans import (
    LATER,
    NOW,
    at_once,
    claimed,
    starts,
    succeeds,
)


class MoveChecks:
    """Changes of the state of a plan."""

    def test_a_move_keeps_time_and_message(self, store: SqlStore) -> None:
        """A move without a message clears the last message."""
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

    def test_a_move_that_the_table_of_states_does_not_have_is_refused(
        self, store: SqlStore
    ) -> None:
        """Moves that only a claimant may make are refused as well."""
        plan = new_plan("a")
        store.save_plan(plan)
        for new in (PlanState.ONGOING, PlanState.SUCCEEDED, PlanState.PAUSED):
            with refused(InvalidTransition, uuid=plan.uuid, old="RECOMMENDED", new=new):
                store.move_plan(plan.uuid, new, now=NOW)
        assert store.load_plan(plan.uuid).to_dict() == plan.to_dict()

    def test_of_several_who_start_a_plan_one_does(self, store: SqlStore) -> None:
        """The others get PlanConflict or InvalidTransition."""
        plan = new_plan("a")
        store.save_plan(plan)
        answers = at_once(4, lambda _: store.move_plan(plan.uuid, PlanState.PENDING, now=NOW))
        refusals = [answer for answer in answers if answer is not None]
        assert len(refusals) == 3
        assert all(isinstance(r, PlanConflict | InvalidTransition) for r in refusals), refusals

    def test_a_plan_that_somebody_runs_is_not_moved(self, store: SqlStore) -> None:
        """Only its claimant moves it; operators send requests."""
        plan = new_plan("a")
        claimed(store, plan)
        with refused(InvalidTransition, uuid=plan.uuid, old="ONGOING"):
            store.move_plan(plan.uuid, PlanState.DELETED, now=NOW)
        for new in (PlanState.PENDING, PlanState.PAUSED, PlanState.CANCELLED):
            with refused(PlanConflict, plan=plan.uuid, state="ONGOING"):
                store.move_plan(plan.uuid, new, now=NOW)
        assert store.load_plan(plan.uuid).state is PlanState.ONGOING
        assert store.load_plan(plan.uuid).actions == plan.actions

    def test_cancelling_a_plan_cancels_what_has_not_started(self, store: SqlStore) -> None:
        """SKIPPED actions stay SKIPPED."""
        plan = new_plan("a", "b", "c")
        store.save_plan(plan)
        store.skip_action(plan.uuid, plan.actions[1].uuid, now=NOW, message="done by hand")
        store.move_plan(plan.uuid, PlanState.CANCELLED, now=LATER, message="not today")
        a, b, c = store.load_plan(plan.uuid).actions
        assert [x.state for x in (a, b, c)] == ["CANCELLED", "SKIPPED", "CANCELLED"]
        assert (a.ended_at, a.started_at, a.status_message) == (LATER, None, "not today")
        assert (b.ended_at, b.status_message) == (NOW, "done by hand")

    def test_cancelling_a_paused_plan_leaves_what_ended(self, store: SqlStore) -> None:
        """Only PENDING actions are cancelled."""
        plan = new_plan("a", "b")
        claim = claimed(store, plan)
        a, _ = plan.actions
        store.commit(plan.uuid, claim, [starts(a), succeeds(a)], now=NOW)
        store.move_claimed(plan.uuid, claim, PlanState.PAUSED, now=NOW)
        store.move_plan(plan.uuid, PlanState.CANCELLED, now=LATER)
        states = [x.state for x in store.load_plan(plan.uuid).actions]
        assert states == [ActionState.SUCCEEDED, ActionState.CANCELLED]

    def test_what_was_cut_off_is_in_doubt_when_its_plan_is_cancelled(self, store: SqlStore) -> None:
        """A cancelled plan has no open actions: those that were running are UNKNOWN."""
        plan = new_plan("a", "b")
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(plan.actions[0])], now=NOW)
        store.resume_plan(plan.uuid, [], now=NOW)
        store.move_plan(plan.uuid, PlanState.CANCELLED, now=NOW, message="enough")
        states = {a.name: a.state for a in store.load_plan(plan.uuid).actions}
        assert states == {"a": ActionState.UNKNOWN, "b": ActionState.CANCELLED}

    def test_a_cancel_writes_what_became_of_running_actions(self, store: SqlStore) -> None:
        """``reports`` are recorded as ends of attempts; other running actions are UNKNOWN."""
        plan = new_plan("a", "b", "c")
        claim = claimed(store, plan)
        a, b, _ = plan.actions
        store.commit(plan.uuid, claim, [starts(a), starts(b)], now=NOW)
        stopped = Report(
            uuid=a.uuid,
            old=ActionState.ONGOING,
            state=ActionState.CANCELLED,
            state_reason=StateReason.ABORTED,
            message="its command was ended",
        )
        seen, new = store.claimant(plan.uuid), PlanState.CANCELLED
        store.move_plan(plan.uuid, new, now=LATER, message="enough", seen=seen, reports=[stopped])
        found = store.load_plan(plan.uuid).actions
        assert [x.state for x in found] == ["CANCELLED", "UNKNOWN", "CANCELLED"]
        assert [x.status_message for x in found] == ["its command was ended", "enough", "enough"]
        assert [x.state_reason for x in found] == [StateReason.ABORTED, None, None]
        (attempt,) = store.attempts(plan.uuid, a.uuid)
        assert (attempt.state, attempt.ended_at) == (ActionState.CANCELLED, LATER)

    def test_a_report_that_does_not_fit_changes_nothing(self, store: SqlStore) -> None:
        """Its old state may be wrong, or its transition one that no engine may make."""
        plan = new_plan("a")
        claim = claimed(store, plan)
        (a,) = plan.actions
        seen, new = store.claimant(plan.uuid), PlanState.CANCELLED
        wrong = Report(uuid=a.uuid, old=ActionState.ONGOING, state=ActionState.CANCELLED)
        with pytest.raises(PlanConflict):
            store.move_plan(plan.uuid, new, now=NOW, seen=seen, reports=[wrong])
        store.commit(plan.uuid, claim, [starts(a)], now=NOW)
        wrong = Report(uuid=a.uuid, old=ActionState.ONGOING, state=ActionState.REVERTED)
        with pytest.raises(InvalidTransition):
            store.move_plan(plan.uuid, new, now=NOW, seen=seen, reports=[wrong])
        assert store.load_plan(plan.uuid).state is PlanState.ONGOING

    def test_a_change_of_a_plan_that_is_not_there_is_refused(self, store: SqlStore) -> None:
        """Every method that takes the uuid of a plan raises PlanNotFound."""
        calls: tuple[Callable[[], object], ...] = (
            lambda: store.claimant("none"),
            lambda: store.move_plan("none", PlanState.PENDING, now=NOW),
            lambda: store.resume_plan("none", [], now=NOW),
            lambda: store.skip_action("none", "none", now=NOW, message=""),
            lambda: store.settle_action("none", "x", ActionState.FAILED, now=NOW, message=""),
            lambda: store.add_request("none", Request(verb="cancel", who="wanda"), now=NOW),
        )
        for call in calls:
            with refused(PlanNotFound, reference="none"):
                call()
