# SPDX-License-Identifier: Apache-2.0
"""Checks that plans are loaded as they were saved."""

# Tests are assertions.

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, timedelta, timezone
from typing import Any

from hypothesis import HealthCheck, given, settings
from refusal_checks import refused
from sample_plans import new_plan, plans

from applier.errors import PlanNotFound
from planner.plan.model import Action, ActionPlan, Trigger
from planner.plan.states import Outcome, PlanState
from store_checks.running_plans import (
    LATER,
    ME,
    NOW,
    RunStoreUnderTest,
    claimed,
    starts,
    succeeds,
)

SAME_STORE = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


class LoadChecks:
    """Checks that a store loads and refreshes plans."""

    @SAME_STORE
    @given(plan=plans())
    def test_any_plan_comes_back_as_it_was_saved(
        self, store: RunStoreUnderTest, plan: ActionPlan
    ) -> None:
        """Every field, nested values included, and the digest are equal."""
        store.save_plan(plan)
        loaded = store.load_plan(plan.uuid)
        assert loaded.to_dict() == plan.to_dict()
        assert loaded.digest == plan.digest

    def test_moments_come_back_in_utc(self, store: RunStoreUnderTest) -> None:
        """A time that is stated in another zone is the same moment in UTC."""
        plan = new_plan("a")
        claim = claimed(store, plan)
        eastern = NOW.astimezone(timezone(timedelta(hours=-5)))
        store.commit(plan.uuid, claim, [starts(plan.actions[0])], now=eastern)
        (a,) = store.load_plan(plan.uuid).actions
        assert a.started_at == NOW
        assert a.started_at.tzinfo is UTC

    def test_actions_come_back_in_the_order_of_the_schedule(self, store: RunStoreUnderTest) -> None:
        """The order of the uuids does not matter."""
        plan = new_plan(*map(str, range(300)))
        store.save_plan(plan)
        loaded = store.load_plan(plan.uuid)
        assert [action.name for action in loaded.actions] == [str(i) for i in range(300)]

    def test_equal_sets_of_links_are_one_object(self, store: RunStoreUnderTest) -> None:
        """Many actions that wait for the same actions share one tuple."""
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

    def test_two_plans_may_name_their_actions_alike(self, store: RunStoreUnderTest) -> None:
        """Actions of different plans may have the same uuid."""
        plan = new_plan("a")
        twin = replace(new_plan(), actions=plan.actions)
        claim = claimed(store, plan)
        store.save_plan(twin)
        store.commit(plan.uuid, claim, [starts(plan.actions[0])], now=NOW)
        assert store.load_plan(twin.uuid).actions == plan.actions

    def test_a_plan_that_was_loaded_is_refreshed(self, store: RunStoreUnderTest) -> None:
        """The refreshed plan equals the plan when it is loaded again."""
        plan = new_plan("a", "b")
        a, _ = plan.actions
        claim = claimed(store, plan)
        loaded = store.load_plan(plan.uuid)
        assert store.refresh_plan(loaded) == loaded
        store.commit(plan.uuid, claim, [starts(a), succeeds(a, message="moved")], now=NOW)
        store.move_claimed(plan.uuid, claim, PlanState.PAUSED, now=LATER, message="at noon")
        refreshed = store.refresh_plan(loaded)
        assert refreshed == store.load_plan(plan.uuid)
        assert (refreshed.state, refreshed.status_message) == (PlanState.PAUSED, "at noon")
        assert refreshed.actions[0].status_message == "moved"

    def test_a_run_of_a_plan_that_is_not_there_is_refused(self, store: RunStoreUnderTest) -> None:
        """Every method that takes the uuid of a plan raises PlanNotFound."""
        calls: tuple[Callable[[], object], ...] = (
            lambda: store.load_plan("none"),
            lambda: store.refresh_plan(new_plan(uuid="none")),
            lambda: store.claim_plan("none", ME, now=NOW),
            lambda: store.beat("none", "claim", now=NOW),
            lambda: store.commit("none", "claim", [], now=NOW),
            lambda: store.move_claimed("none", "claim", PlanState.PAUSED, now=NOW),
            lambda: store.reserve("none", "claim", ["node:a"], now=NOW),
            lambda: store.held_by_others("none"),
            lambda: store.attempts("none", "none"),
        )
        for call in calls:
            with refused(PlanNotFound, reference="none"):
                call()
