# SPDX-License-Identifier: Apache-2.0
"""Checks that the claimant of a plan reads the requests of operators."""

# Tests are assertions.

from __future__ import annotations

from sample_plans import new_plan

from applier.contracts import Request
from store_checks.running_plans import (
    LATER,
    NOW,
    RunStoreUnderTest,
    claimed,
)


class RequestChecks:
    """Reading requests."""

    def test_requests_are_numbered_and_listed_from_where_one_stopped(
        self, store: RunStoreUnderTest
    ) -> None:
        """Each plan has its own numbers from 1; the oldest request comes first."""
        plan, other = new_plan("a"), new_plan("b")
        claimed(store, plan)
        claimed(store, other)
        assert store.requests(plan.uuid) == []
        skip = Request(verb="skip", who="wanda", why="by hand", action=plan.actions[0].uuid)
        cancel = Request(verb="cancel", who="otto")
        store.add_request(plan.uuid, skip, now=NOW)
        store.add_request(other.uuid, cancel, now=NOW)
        store.add_request(plan.uuid, cancel, now=LATER)
        first = skip._replace(number=1, created_at=NOW)
        second = cancel._replace(number=2, created_at=LATER)
        assert store.requests(plan.uuid) == [first, second]
        assert store.requests(plan.uuid, after=1) == [second]
        assert store.requests(plan.uuid, after=2) == []
        assert [request.number for request in store.requests(other.uuid)] == [1]

    def test_a_request_for_limits_keeps_them(self, store: RunStoreUnderTest) -> None:
        """A request that was sent is returned with its limits, its user and its time."""
        plan = new_plan("a")
        claimed(store, plan)
        limits = {"type:migrate": 1, "node:*": 2, "max_workers": 8}
        store.add_request(plan.uuid, Request(verb="limit", who="wanda", limits=limits), now=NOW)
        (request,) = store.requests(plan.uuid)
        assert dict(request.limits) == limits
        assert (request.who, request.created_at) == ("wanda", NOW)
