# SPDX-License-Identifier: Apache-2.0
"""Checks that of several plans that reserve a resource, the first one holds it."""

# Tests are assertions.

from __future__ import annotations

import pytest
from refusal_checks import refused
from sample_plans import MADE, new_plan

from applier.errors import PlanConflict
from applier.store import Reservation
from planner.plan.model import ActionPlan
from planner.plan.states import PlanState
from store_checks.running_plans import (
    ME,
    NOW,
    RunStoreUnderTest,
    at_once,
    claimed,
)


class ReservationChecks:
    """Reservations of resources."""

    def runs(self, store: RunStoreUnderTest, name: str, *resources: str) -> tuple[ActionPlan, str]:
        """Save and claim a plan, and reserve resources for it; return it and its claim."""
        plan = new_plan("a", name=name, state=PlanState.PENDING)
        store.save_plan(plan)
        claim = store.claim_plan(plan.uuid, ME._replace(user=f"user of {name}"), now=MADE)
        store.reserve(plan.uuid, claim, resources, now=NOW)
        return plan, claim

    def held(self, store: RunStoreUnderTest, plan: ActionPlan) -> dict[str, str | None]:
        """Return the names of the plans that a plan waits for, by resource."""
        return {r.resource: r.name for r in store.held_by_others(plan.uuid)}

    def test_the_first_to_reserve_a_resource_has_it(self, store: RunStoreUnderTest) -> None:
        """The next plan can read which resource is held, by which plan and which user."""
        first, _ = self.runs(store, "first", "node:a", "node:b", "node:a")
        second, _ = self.runs(store, "second", "node:b", "node:c")
        third, _ = self.runs(store, "third", "node:c", "node:b", "node:d")
        assert store.held_by_others(first.uuid) == []
        waits = Reservation(resource="node:b", plan=first.uuid, name="first", user="user of first")
        assert store.held_by_others(second.uuid) == [waits]
        # Only the plan that reserved a resource first is listed; the list is sorted by resource.
        assert list(self.held(store, third).items()) == [("node:b", "first"), ("node:c", "second")]

    @pytest.mark.parametrize("way", ["SUCCEEDED", "PAUSED", "PENDING", "CANCELLING"])
    def test_resources_are_released_when_the_claim_ends(
        self, store: RunStoreUnderTest, way: str
    ) -> None:
        """A plan that is CANCELLING still has its claim and its resources."""
        first, claim = self.runs(store, "first", "node:a")
        second, _ = self.runs(store, "second", "node:a")
        store.move_claimed(first.uuid, claim, PlanState(way), now=NOW)
        expected = {"node:a": "first"} if way == "CANCELLING" else {}
        assert self.held(store, second) == expected

    def test_who_reserves_again_stands_behind_the_others(self, store: RunStoreUnderTest) -> None:
        """The second call replaces the reservations of the first, and counts as made later."""
        first, claim = self.runs(store, "first", "node:a", "node:b")
        second, _ = self.runs(store, "second", "node:a", "node:b")
        store.reserve(first.uuid, claim, ["node:a"], now=MADE)
        assert self.held(store, first) == {"node:a": "second"}
        assert self.held(store, second) == {}

    def test_who_does_not_run_the_plan_reserves_nothing(self, store: RunStoreUnderTest) -> None:
        """A call with another claim is refused, and the reservations do not change."""
        first, _ = self.runs(store, "first", "node:a")
        with refused(PlanConflict, plan=first.uuid, state="ONGOING"):
            store.reserve(first.uuid, "another", [], now=NOW)
        second, _ = self.runs(store, "second", "node:a")
        assert self.held(store, second) == {"node:a": "first"}

    def test_of_plans_that_reserve_at_once_one_has_everything(
        self, store: RunStoreUnderTest
    ) -> None:
        """No two plans hold a part of each other's resources."""
        claims = [(plan := new_plan("a"), claimed(store, plan)) for _ in range(4)]
        resources = [f"node:{number}" for number in range(20)]

        def reserve(index: int) -> int:
            plan, claim = claims[index]
            names = resources if index % 2 else resources[::-1]
            store.reserve(plan.uuid, claim, names, now=NOW)
            # A plan may begin at once if no other plan holds its resources.
            return len(store.held_by_others(plan.uuid))

        counts = at_once(4, reserve)
        assert sorted(counts) == [0, 20, 20, 20], counts
