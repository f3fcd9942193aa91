# SPDX-License-Identifier: Apache-2.0
"""Checks that each change of a plan is written as an event, if anybody subscribes."""

# Tests are assertions.

from __future__ import annotations

from dataclasses import replace
from typing import Any

from refusal_checks import refused
from sample_plans import new_plan

from applier.contracts import ActionOf, Request
from applier.errors import PlanConflict
from applier.notifications import schema
from applier.storage.sql_store import SqlStore
from planner.plan.model import JOIN
from planner.plan.states import ActionState, Outcome, PlanState, StateReason
from store_checks.history_checks import entry
from store_checks.running_plans import (
    LATER,
    ME,
    NOW,
    at_once,
    claimed,
    ends,
    retries,
    starts,
    succeeds,
)


def told(store: SqlStore, plan: str | None = None, after: int = 0) -> list[tuple[Any, ...]]:
    """Return a short tuple for each event: the verb of a history entry, or the states."""
    return [_shortly(event) for event in store.events(after, plan=plan).events]


def _shortly(event: schema.Event) -> tuple[Any, ...]:
    data = event["data"]
    if event["type"] == schema.PLAN_HISTORY:
        return ("history", data["verb"])
    if event["type"] == schema.PLAN_STATE:
        return ("plan", data["state"])
    return (data["name"], data["old"], data["state"])


class EventWritingChecks:
    """The events of runs, of operators and of rollbacks."""

    def test_without_a_subscription_nothing_is_written(self, store: SqlStore) -> None:
        """While there is no subscription, a run writes no event."""
        plan = new_plan("a")
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(plan.actions[0])], now=NOW)
        store.move_claimed(plan.uuid, claim, PlanState.FAILED, now=NOW)
        page = store.events()
        assert (page.events, page.last, page.newest) == ([], 0, 0)

    def test_a_run_tells_each_change_in_the_order_of_its_commits(self, store: SqlStore) -> None:
        """Starts, retries, ends and the states of the plan are numbered from 1 without gaps."""
        store.subscribe("ops", now=NOW)
        plan = new_plan("a", "b", "c")
        first, second, third = plan.actions
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(first), starts(second)], now=NOW)
        store.commit(plan.uuid, claim, [retries(first, message="again\0")], now=NOW)
        store.commit(plan.uuid, claim, [succeeds(second), starts(first)], now=LATER)
        failed = ends(first, ActionState.FAILED, outcome=Outcome.FAILED, message="no")
        skipped = starts(third)._replace(
            state=ActionState.SKIPPED, state_reason=StateReason.NOT_TRIGGERED
        )
        store.commit(plan.uuid, claim, [failed, skipped], now=LATER)
        store.move_claimed(plan.uuid, claim, PlanState.FAILED, now=LATER, message="1 failed")
        assert told(store) == [
            ("plan", "PENDING"),
            ("history", "apply"),
            ("plan", "ONGOING"),
            ("a", "PENDING", "ONGOING"),
            ("b", "PENDING", "ONGOING"),
            ("a", "ONGOING", "PENDING"),
            ("b", "ONGOING", "SUCCEEDED"),
            ("a", "PENDING", "ONGOING"),
            ("a", "ONGOING", "FAILED"),
            ("c", "PENDING", "SKIPPED"),
            ("plan", "FAILED"),
        ]
        events = store.events().events
        assert [e["number"] for e in events] == list(range(1, 12))
        assert events[5]["data"]["message"] == "again\N{REPLACEMENT CHARACTER}"
        assert events[-2] == {
            "version": schema.VERSION,
            "type": schema.ACTION_STATE,
            "number": 10,
            "at": LATER.isoformat(),
            "plan": plan.uuid,
            "action": third.uuid,
            "data": {
                "name": "c",
                "action_type": "nop",
                "old": "PENDING",
                "state": "SKIPPED",
                "outcome": None,
                "reason": str(StateReason.NOT_TRIGGERED),
                "message": None,
            },
        }
        assert events[-1]["data"] == {"state": "FAILED", "message": "1 failed"}

    def test_operators_changes_are_told_with_who_and_why(self, store: SqlStore) -> None:
        """The event of a history entry comes before those of the changes that it causes."""
        store.subscribe("ops", now=NOW)
        plan = new_plan("a", "b")
        first, second = (action.uuid for action in plan.actions)
        store.save_plan(plan, history=entry("create"))
        skip = entry("skip", "by hand", second)
        store.skip_action(plan.uuid, second, now=NOW, message="", history=skip)
        store.move_plan(plan.uuid, PlanState.PENDING, now=NOW, history=entry("start"))
        claim = store.claim_plan(plan.uuid, ME, now=LATER)
        store.commit(plan.uuid, claim, [starts(plan.actions[0])], now=NOW)
        request = Request(verb="cancel", who="wanda")
        store.add_request(plan.uuid, request, now=NOW, history=entry("cancel", "wrong"))
        seen = store.claimant(plan.uuid)
        store.move_plan(plan.uuid, PlanState.PAUSED, now=NOW, seen=seen, history=entry("pause"))
        store.settle_action(
            plan.uuid, first, ActionState.FAILED, now=NOW, message="", history=entry("set")
        )
        store.resume_plan(plan.uuid, [first], now=NOW, seen=None, history=entry("resume"))
        store.move_plan(plan.uuid, PlanState.CANCELLED, now=NOW, history=entry("cancel"))
        assert told(store) == [
            ("history", "create"),
            ("plan", "RECOMMENDED"),
            ("history", "skip"),
            ("b", "PENDING", "SKIPPED"),
            ("history", "start"),
            ("plan", "PENDING"),
            ("history", "apply"),
            ("plan", "ONGOING"),
            ("a", "PENDING", "ONGOING"),
            ("history", "cancel"),
            ("history", "pause"),
            ("a", "ONGOING", "UNKNOWN"),
            ("plan", "PAUSED"),
            ("history", "set"),
            ("a", "UNKNOWN", "FAILED"),
            ("history", "resume"),
            ("a", "FAILED", "PENDING"),
            ("plan", "PENDING"),
            ("history", "cancel"),
            ("a", "PENDING", "CANCELLED"),
            ("plan", "CANCELLED"),
        ]
        cancel = store.events().events[9]
        assert cancel["data"] == {
            "verb": "cancel",
            "who": "wanda",
            "project": "ops",
            "action": None,
            "why": "wrong",
        }

    def test_what_was_refused_is_not_told(self, store: SqlStore) -> None:
        """A change that is not made leaves no event."""
        store.subscribe("ops", now=NOW)
        plan = new_plan("a")
        claim = claimed(store, plan)
        before = told(store)
        with refused(PlanConflict, plan=plan.uuid, state="ONGOING"):
            store.commit(plan.uuid, "another claim", [starts(plan.actions[0])], now=NOW)
        with refused(PlanConflict, plan=plan.uuid, state="ONGOING"):
            store.commit(plan.uuid, claim, [succeeds(plan.actions[0])], now=NOW)
        assert told(store) == before

    def test_a_run_under_way_notices_who_subscribes_and_who_leaves(self, store: SqlStore) -> None:
        """Its events begin right after the subscription, and end with the last subscription."""
        plan = new_plan("a", "b", "c")
        first, second, third = plan.actions
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(first)], now=NOW)
        store.subscribe("ops", now=NOW)
        store.commit(plan.uuid, claim, [succeeds(first), starts(second)], now=NOW)
        assert told(store) == [("a", "ONGOING", "SUCCEEDED"), ("b", "PENDING", "ONGOING")]
        assert store.unsubscribe("ops")
        store.delete_events(before=NOW, now=NOW)
        store.commit(plan.uuid, claim, [succeeds(second), starts(third)], now=NOW)
        assert len(told(store)) == 2
        assert [a.state for a in store.load_plan(plan.uuid).actions] == [
            ActionState.SUCCEEDED,
            ActionState.SUCCEEDED,
            ActionState.ONGOING,
        ]

    def test_a_join_has_no_events(self, store: SqlStore) -> None:
        """The reports of a join take numbers, but are not returned as events."""
        store.subscribe("ops", now=NOW)
        plan = new_plan("a", "b")
        joined = replace(plan.actions[0], action_type=JOIN)
        plan = replace(plan, actions=(joined, plan.actions[1]))
        claim = claimed(store, plan)
        after = store.events().last
        store.commit(plan.uuid, claim, [starts(a) for a in plan.actions], now=NOW)
        page = store.events(after)
        assert [e["data"]["name"] for e in page.events] == ["b"]
        assert page.last == page.newest == after + 2

    def test_a_rollback_tells_of_what_it_undid(self, store: SqlStore) -> None:
        """The action of the other plan has an event as well, with its old and its new state."""
        store.subscribe("ops", now=NOW)
        plan, rollback = new_plan("a"), new_plan("r", "s")
        [undone] = plan.actions
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(undone)], now=NOW)
        store.commit(plan.uuid, claim, [succeeds(undone)], now=NOW)
        store.move_claimed(plan.uuid, claim, PlanState.SUCCEEDED, now=NOW)
        claim = claimed(store, rollback)
        store.commit(rollback.uuid, claim, [starts(a) for a in rollback.actions], now=NOW)
        after, of_plan = store.events().last, ActionOf(plan.uuid, undone.uuid)
        first, second = (
            succeeds(a)._replace(undoes=u)
            for a, u in zip(rollback.actions, (of_plan, ActionOf("gone", "x")), strict=True)
        )
        failed = first._replace(state=ActionState.FAILED, outcome=Outcome.FAILED, message="no")
        store.commit(rollback.uuid, claim, [failed, second], now=NOW)
        assert told(store, after=after) == [
            ("r", "ONGOING", "FAILED"),
            ("a", "SUCCEEDED", "REVERT_FAILED"),
            ("s", "ONGOING", "SUCCEEDED"),
        ]
        assert told(store, plan.uuid, after) == [("a", "SUCCEEDED", "REVERT_FAILED")]

    def test_no_event_appears_below_a_number_that_was_read(self, store: SqlStore) -> None:
        """Many plans at once: a reader that continues after the last number misses none."""
        store.subscribe("ops", now=NOW)
        plans = [new_plan(*"abcdef") for _ in range(4)]
        claims = [claimed(store, plan) for plan in plans]
        start = store.events(limit=1000).last
        found: list[schema.Event] = []

        def run(index: int) -> None:
            plan, claim = plans[index], claims[index]
            for action in plan.actions:
                store.commit(plan.uuid, claim, [starts(action)], now=NOW)
                store.commit(plan.uuid, claim, [succeeds(action)], now=NOW)
            store.move_claimed(plan.uuid, claim, PlanState.SUCCEEDED, now=NOW)

        def read(_: int) -> None:
            after, ended = start, 0
            while ended < len(plans):
                page = store.events(after, limit=7)
                found.extend(page.events)
                ended += sum(e["type"] == schema.PLAN_STATE for e in page.events)
                after = page.last

        at_once(5, lambda index: run(index) if index < 4 else read(index))
        numbers = [e["number"] for e in found]
        assert numbers == [e["number"] for e in store.events(start, limit=1000).events]
        assert len(found) == 4 * 13
