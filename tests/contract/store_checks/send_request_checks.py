# SPDX-License-Identifier: Apache-2.0
"""Checks that operators can send requests to the claimant of a plan."""

# Tests are assertions.

from __future__ import annotations

from refusal_checks import refused
from sample_plans import new_plan

from applier.contracts import Request
from applier.errors import PlanConflict
from applier.storage.sql_store import SqlStore
from planner.plan.states import PlanState
from store_checks.running_plans import (
    ME,
    NOW,
    at_once,
    claimed,
)


class SendRequestChecks:
    """The requests that are accepted, and their numbers."""

    def test_a_plan_that_nobody_runs_takes_no_requests(self, store: SqlStore) -> None:
        """PlanConflict is raised; earlier requests can still be read."""
        plan = new_plan("a")
        store.save_plan(plan)
        request = Request(verb="cancel", who="wanda")
        with refused(PlanConflict, plan=plan.uuid, state="RECOMMENDED"):
            store.add_request(plan.uuid, request, now=NOW)
        store.move_plan(plan.uuid, PlanState.PENDING, now=NOW)
        claim = store.claim_plan(plan.uuid, ME, now=NOW)
        store.add_request(plan.uuid, request, now=NOW)
        store.move_claimed(plan.uuid, claim, PlanState.PAUSED, now=NOW)
        with refused(PlanConflict, plan=plan.uuid, state="PAUSED"):
            store.add_request(plan.uuid, request, now=NOW)
        assert [request.number for request in store.requests(plan.uuid)] == [1]

    def test_requests_made_at_once_get_different_numbers(self, store: SqlStore) -> None:
        """No request is lost, and no number is used twice."""
        plan = new_plan("a")
        claimed(store, plan)

        def add(index: int) -> None:
            for number in range(5):
                request = Request(verb="skip", who=f"{index}", why=f"{number}")
                store.add_request(plan.uuid, request, now=NOW)

        assert at_once(4, add) == [None] * 4
        requests = store.requests(plan.uuid)
        assert [request.number for request in requests] == list(range(1, 21))
        assert {(w.who, w.why) for w in requests} == {
            (str(i), str(n)) for i in range(4) for n in range(5)
        }
