# SPDX-License-Identifier: Apache-2.0
"""The part of the suite for stores that is about who comes first, and who is there to come.

See :mod:`applier.testing.stores`, which has the whole.
"""

# Tests are assertions.
# ruff: noqa: S101

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from applier.contracts import Claimant
from applier.errors import PlanConflict
from applier.store import Reservation, Service, Store
from applier.testing.plans import MADE, new_plan
from applier.testing.runs import LATER, ME, NOW, at_once, claimed
from planner.model import ActionPlan
from planner.states import PlanState


class QueueContract:
    """Plans that wait for an applier."""

    def test_plans_wait_in_the_order_in_which_they_began_to_wait(self, store: Store) -> None:
        """Not in the order in which they were saved, nor by the clock."""
        assert store.pending_plans() == []
        several = [new_plan("a", uuid=name) for name in ("first", "second", "third", "idle")]
        for plan in several:
            store.save_plan(plan)
        for number, uuid in enumerate(("third", "first", "second")):
            store.move_plan(uuid, PlanState.PENDING, now=LATER - timedelta(days=number))
        assert store.pending_plans() == ["third", "first", "second"]
        claim = store.claim_plan("third", ME, now=NOW)
        assert store.pending_plans() == ["first", "second"]
        store.move_claimed("third", claim, PlanState.PAUSED, now=NOW)
        store.resume_plan("third", [], now=MADE)
        assert store.pending_plans() == ["first", "second", "third"]


class ReservationContract:
    """Two plans that need one thing: the first that reserved it has it."""

    def runs(self, store: Store, name: str, *resources: str) -> tuple[ActionPlan, str]:
        """Make a plan that somebody of the same name runs, and reserve what it needs."""
        plan = new_plan("a", name=name)
        store.save_plan(plan)
        store.move_plan(plan.uuid, PlanState.PENDING, now=MADE)
        claim = store.claim_plan(plan.uuid, replace(ME, user=f"user of {name}"), now=MADE)
        store.reserve(plan.uuid, claim, resources, now=NOW)
        return plan, claim

    def held(self, store: Store, plan: ActionPlan) -> dict[str, str | None]:
        """Give who has the resources that a plan waits for."""
        return {r.resource: r.name for r in store.held_by_others(plan.uuid)}

    def test_the_first_to_reserve_a_resource_has_it(self, store: Store) -> None:
        """The next waits, and is told by whom; what others need does not matter."""
        first, _ = self.runs(store, "first", "node:a", "node:b", "node:a")
        second, _ = self.runs(store, "second", "node:b", "node:c")
        third, _ = self.runs(store, "third", "node:c", "node:b", "node:d")
        assert store.held_by_others(first.uuid) == []
        waits = Reservation(resource="node:b", plan=first.uuid, name="first", user="user of first")
        assert store.held_by_others(second.uuid) == [waits]
        # Of several before it, the one that has it now; sorted by resource.
        assert list(self.held(store, third).items()) == [("node:b", "first"), ("node:c", "second")]

    @pytest.mark.parametrize("way", ["SUCCEEDED", "PAUSED", "PENDING", "CANCELLING", "resumed"])
    def test_resources_are_given_back_when_the_plan_is(self, store: Store, way: str) -> None:
        """At that very moment, and however it is given up; not while it is being cancelled."""
        first, claim = self.runs(store, "first", "node:a")
        second, _ = self.runs(store, "second", "node:a")
        if way == "resumed":
            store.resume_plan(first.uuid, [], now=NOW)
        else:
            store.move_claimed(first.uuid, claim, PlanState(way), now=NOW)
        expected = {"node:a": "first"} if way == "CANCELLING" else {}
        assert self.held(store, second) == expected

    def test_who_reserves_again_stands_behind_the_others(self, store: Store) -> None:
        """What was reserved before is given back with it."""
        first, claim = self.runs(store, "first", "node:a", "node:b")
        second, _ = self.runs(store, "second", "node:a", "node:b")
        store.reserve(first.uuid, claim, ["node:a"], now=MADE)
        assert self.held(store, first) == {"node:a": "second"}
        assert self.held(store, second) == {}

    def test_who_does_not_run_the_plan_reserves_nothing(self, store: Store) -> None:
        """Nor takes anything from who does."""
        first, _ = self.runs(store, "first", "node:a")
        with pytest.raises(PlanConflict, match="claim"):
            store.reserve(first.uuid, "another", [], now=NOW)
        second, _ = self.runs(store, "second", "node:a")
        assert self.held(store, second) == {"node:a": "first"}

    def test_of_plans_that_reserve_at_once_one_has_everything(self, store: Store) -> None:
        """They stand in one line: nobody has half of it."""
        claims = [(plan := new_plan("a"), claimed(store, plan)) for _ in range(4)]
        resources = [f"node:{number}" for number in range(20)]

        def reserve(index: int) -> int:
            plan, claim = claims[index]
            names = resources if index % 2 else resources[::-1]
            store.reserve(plan.uuid, claim, names, now=NOW)
            # Who is told now that nobody is before it may begin at once.
            return len(store.held_by_others(plan.uuid))

        counts = at_once(4, reserve)
        assert sorted(counts) == [0, 20, 20, 20], counts


class ServiceContract:
    """The appliers that report on this record."""

    def test_services_are_kept_as_they_last_reported(self, store: Store) -> None:
        """The one that was heard of last stands first; one that ended is forgotten."""
        assert store.services() == []
        who = Claimant(host="db-7", pid=1, user="wanda")
        known: dict[str, Any] = {"host": who.host, "pid": who.pid, "user": who.user}
        known["started_at"] = MADE
        early = Service(uuid="a", heartbeat_at=NOW, **known)
        late = Service(uuid="b", heartbeat_at=LATER, plans=3, **known)
        for service in (late, early):
            store.report_service(service)
        assert store.services() == [late, early]
        early = replace(early, heartbeat_at=LATER + timedelta(seconds=1), plans=2)
        store.report_service(early)
        assert store.services() == [early, late]
        store.remove_service("a")
        store.remove_service("a")
        assert store.services() == [late]
