# SPDX-License-Identifier: Apache-2.0
"""Checks that removed plans come back, and that old ones are deleted for good."""

# Tests are assertions.

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from refusal_checks import refused
from sample_plans import MADE, new_plan

from applier.errors import PlanConflict, PlanNotFound
from applier.storage.sql_store import SqlStore
from applier.store.entries import NO_PLAN
from planner.errors import InvalidTransition
from planner.plan.states import PlanState
from store_checks.history_checks import entry
from store_checks.running_plans import (
    LATER,
    NOW,
    at_once,
    claimed,
    starts,
    succeeds,
)


class RetentionChecks:
    """Plans that are brought back, and plans that are deleted for good."""

    def ended(self, store: SqlStore, uuid: str, ended_at: object = NOW) -> None:
        """Save a plan of one action, run it, and make it SUCCEEDED at ``ended_at``."""
        plan = new_plan("a", uuid=uuid)
        claim = claimed(store, plan)
        (a,) = plan.actions
        store.commit(uuid, claim, [starts(a), succeeds(a, output="x")], now=NOW)
        store.move_claimed(uuid, claim, PlanState.SUCCEEDED, now=ended_at)  # type: ignore[arg-type]

    def test_a_removed_plan_gets_its_state_back(self, store: SqlStore) -> None:
        """Its actions have not changed, and both changes are in its history."""
        for state in (PlanState.RECOMMENDED, PlanState.CANCELLED, PlanState.SUPERSEDED):
            plan = replace(new_plan("a", uuid=f"plan-{state}"), state=state)
            store.save_plan(plan)
            actions = store.load_plan(plan.uuid).actions
            store.move_plan(plan.uuid, PlanState.DELETED, now=NOW, history=entry("delete"))
            assert store.undelete_plan(plan.uuid, now=LATER, history=entry("undelete")) is state
            found = store.load_plan(plan.uuid)
            assert (found.state, found.status_message, found.actions) == (state, None, actions)
            assert [e.verb for e in store.history(plan.uuid)] == ["delete", "undelete"]

    def test_only_a_removed_plan_is_brought_back(self, store: SqlStore) -> None:
        """``move_plan`` refuses a removed plan; of several ``undelete_plan``, one succeeds."""
        store.save_plan(new_plan("a", uuid="one"))
        with refused(PlanConflict, plan="one"):
            store.undelete_plan("one", now=NOW)
        with refused(PlanNotFound, reference="none"):
            store.undelete_plan("none", now=NOW)
        store.move_plan("one", PlanState.DELETED, now=NOW)
        for new in (PlanState.CANCELLED, PlanState.RECOMMENDED):
            with refused(InvalidTransition, uuid="one"):
                store.move_plan("one", new, now=NOW)
        answers = at_once(4, lambda _: store.undelete_plan("one", now=NOW))
        assert sum(isinstance(answer, PlanConflict) for answer in answers) == 3
        assert store.load_plan("one").state is PlanState.RECOMMENDED

    def test_what_ended_before_a_time_is_deleted_with_all_that_belongs_to_it(
        self, store: SqlStore
    ) -> None:
        """Plans that run, wait or ended later stay; the history has an entry of the purge."""
        self.ended(store, "old")
        self.ended(store, "late", LATER)
        for uuid in ("gone", "waits"):
            store.save_plan(new_plan("a", uuid=uuid), history=entry("create"))
        store.move_plan("gone", PlanState.DELETED, now=NOW)
        claimed(store, new_plan("a", uuid="runs"))
        before = NOW + timedelta(seconds=1)
        assert store.ended_plans(MADE) == []
        found = store.ended_plans(before)
        assert [(p.uuid, p.actions) for p in found] == [("old", 1), ("gone", 1)]
        assert store.ended_plans(before, limit=1) == found[:1]
        assert store.ended_plans(before, after=found[0].number) == found[1:]
        wanted = ["old", "late", "waits", "runs", "gone", "never"]
        purged = store.purge_plans(wanted, before, history=entry("purge", "old"))
        assert purged == ["old", "gone"]
        for uuid in ("old", "gone"):
            with refused(PlanNotFound, reference=uuid):
                store.load_plan(uuid)
            assert store.history(uuid) == []
        assert {p.uuid for p in store.list_plans()} == {"late", "waits", "runs"}
        assert len(store.durations(["nop"])["nop"]) <= 1
        assert [(e.verb, e.plan) for e in store.history(NO_PLAN)] == [("purge", NO_PLAN)]
        assert store.purge_plans(wanted, before, history=entry("purge")) == []
        assert len(store.history(NO_PLAN)) == 1
        assert store.purge_plans([], before) == []
