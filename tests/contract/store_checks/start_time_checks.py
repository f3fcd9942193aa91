# SPDX-License-Identifier: Apache-2.0
"""Checks that plans wait for their start time, by the clock of the store."""

# Tests are assertions.

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from refusal_checks import refused
from sample_plans import new_plan

from applier.errors import PlanConflict
from applier.storage.sql_store import SqlStore
from planner.errors import InvalidTransition
from planner.plan.states import PlanState
from store_checks.history_checks import entry
from store_checks.running_plans import LATER, ME, NOW, claimed

#: A time in the past and one in the far future, by the clock of any machine.
PAST, FAR = datetime(2001, 1, 1, tzinfo=UTC), datetime(2901, 1, 1, 12, 0, 5, 250, tzinfo=UTC)


class StartTimeChecks:
    """Checks that a plan with a start time is not run before it."""

    def test_a_plan_is_not_offered_and_not_claimed_before_its_time(self, store: SqlStore) -> None:
        """The clock of the store decides, not the ``now`` of the caller."""
        plan = new_plan("a")
        store.save_plan(plan)
        store.start_plan(plan.uuid, FAR, now=NOW, history=entry("start", "at night"))
        loaded = store.load_plan(plan.uuid)
        assert (loaded.state, loaded.start_at) == (PlanState.PENDING, FAR)
        assert [summary.start_at for summary in store.list_plans()] == [FAR]
        assert store.pending_plans() == []
        with refused(PlanConflict, plan=plan.uuid, state="PENDING"):
            store.claim_plan(plan.uuid, ME, now=FAR + timedelta(days=1))
        assert [e.why for e in store.history(plan.uuid)] == ["at night"]

    def test_a_plan_whose_time_has_come_is_claimed_as_any_other(self, store: SqlStore) -> None:
        """The claim clears its start time."""
        plan = new_plan("a")
        store.save_plan(plan)
        store.start_plan(plan.uuid, PAST, now=NOW)
        assert store.pending_plans() == [plan.uuid]
        store.claim_plan(plan.uuid, ME, now=NOW)
        loaded = store.refresh_plan(plan)
        assert (loaded.state, loaded.start_at) == (PlanState.ONGOING, None)

    def test_the_time_of_a_plan_that_waits_is_changed(self, store: SqlStore) -> None:
        """None removes it: the plan may be claimed at once."""
        plan = new_plan("a")
        store.save_plan(plan)
        store.start_plan(plan.uuid, FAR, now=NOW)
        store.start_plan(plan.uuid, FAR + timedelta(hours=1), now=LATER)
        assert store.refresh_plan(plan).start_at == FAR + timedelta(hours=1)
        store.start_plan(plan.uuid, None, now=LATER)
        assert store.refresh_plan(plan).start_at is None
        assert store.pending_plans() == [plan.uuid]

    def test_a_plan_that_waits_can_be_cancelled(self, store: SqlStore) -> None:
        """The cancel clears its start time."""
        plan = new_plan("a")
        store.save_plan(plan)
        store.start_plan(plan.uuid, FAR, now=NOW)
        store.move_plan(plan.uuid, PlanState.CANCELLED, now=LATER)
        loaded = store.load_plan(plan.uuid)
        assert (loaded.state, loaded.start_at) == (PlanState.CANCELLED, None)

    @pytest.mark.parametrize("at", [None, FAR])
    def test_a_plan_that_runs_or_ended_is_not_started(
        self, store: SqlStore, at: datetime | None
    ) -> None:
        """InvalidTransition or PlanConflict is raised, and the plan does not change."""
        runs, ended = new_plan("a"), new_plan("b")
        claimed(store, runs)
        store.save_plan(ended)
        store.move_plan(ended.uuid, PlanState.CANCELLED, now=NOW)
        store.move_plan(ended.uuid, PlanState.DELETED, now=NOW)
        for plan in (runs, ended):
            before = store.load_plan(plan.uuid)
            with pytest.raises((InvalidTransition, PlanConflict)):
                store.start_plan(plan.uuid, at, now=LATER)
            assert store.load_plan(plan.uuid) == before
