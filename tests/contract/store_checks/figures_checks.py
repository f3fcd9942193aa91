# SPDX-License-Identifier: Apache-2.0
"""Checks the figures of a store for monitoring: counts, heartbeats, outboxes."""

# Tests are assertions.

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from sample_plans import MADE, new_plan

from applier.storage.sql_store import SqlStore
from applier.store import Service
from applier.store.entries import DeadEvent, Heartbeat, Outbox, StoreFigures
from planner.plan.states import ActionState, PlanState
from store_checks.running_plans import LATER, ME, NOW, claimed, starts, succeeds


class FiguresChecks:
    """Checks of the counts of plans, actions and events, and of heartbeats."""

    def test_an_empty_store_counts_nothing(self, store: SqlStore) -> None:
        """States without plans are left out, and there is no oldest pending plan."""
        store.ping()
        assert store.figures() == StoreFigures(
            plans={},
            in_doubt=0,
            actions={},
            are_all_counted=True,
            oldest_pending_at=None,
            claimants=(),
            services=(),
        )

    def test_plans_are_in_doubt_whatever_their_state_until_they_are_removed(
        self, store: SqlStore
    ) -> None:
        """Nobody may have looked yet, whether they ended, were paused or wait to go on."""
        for state in PlanState:
            plan = replace(new_plan("a", "b"), state=state)
            doubtful = replace(plan.actions[0], state=ActionState.UNKNOWN)
            store.save_plan(replace(plan, actions=(doubtful, plan.actions[1])))
        never = {
            PlanState.RECOMMENDED,
            PlanState.SUCCEEDED,
            PlanState.SUPERSEDED,
            PlanState.DELETED,
        }
        assert store.figures().in_doubt == len(set(PlanState) - never)

    def test_plans_are_counted_by_state_and_actions_of_those_under_way(
        self, store: SqlStore
    ) -> None:
        """Actions of plans that were not started are not counted, nor those that have ended."""
        store.save_plan(new_plan("a", "b"))
        ended, running = new_plan("a"), new_plan("a", "b", "c")
        for plan in (ended, running):
            claim = claimed(store, plan)
            first = plan.actions[0]
            store.commit(plan.uuid, claim, [starts(first)], now=NOW)
            store.commit(plan.uuid, claim, [succeeds(first)], now=NOW)
            if plan is ended:
                store.move_claimed(plan.uuid, claim, PlanState.SUCCEEDED, now=NOW)
        figures = store.figures()
        assert figures.plans == {"RECOMMENDED": 1, "SUCCEEDED": 1, "ONGOING": 1}
        assert figures.actions == {("nop", "SUCCEEDED"): 1, ("nop", "PENDING"): 2}
        assert figures.are_all_counted
        assert figures.claimants == (Heartbeat(uuid=running.uuid, host=ME.host, at=NOW),)

    def test_the_oldest_pending_plan_is_the_first_in_the_queue(self, store: SqlStore) -> None:
        """Its time is that of its last change, not of its making."""
        first, second = new_plan("a"), new_plan("a")
        for plan in (second, first):
            store.save_plan(plan)
        for plan, now in ((first, NOW), (second, LATER)):
            store.move_plan(plan.uuid, PlanState.PENDING, now=now)
        assert store.figures().oldest_pending_at == NOW

    def test_services_are_listed_with_their_heartbeats(self, store: SqlStore) -> None:
        """The latest heartbeat comes first."""
        for uuid, at in (("a", NOW), ("b", LATER)):
            store.report_service(
                Service(
                    uuid=uuid,
                    host="db-7",
                    pid=1,
                    user="wanda",
                    started_at=MADE - timedelta(hours=1),
                    heartbeat_at=at,
                    cloud="east",
                    plans=2,
                )
            )
        assert store.figures().services == (
            Heartbeat(uuid="b", host="db-7", at=LATER, plans=2),
            Heartbeat(uuid="a", host="db-7", at=NOW, plans=2),
        )

    def test_events_that_receivers_have_not_got_are_counted(self, store: SqlStore) -> None:
        """An outbox counts the waiting and the dead events of a receiver; readers have none."""
        store.subscribe("readers", now=NOW, until=LATER)
        store.subscribe("ops", now=NOW)
        plan = new_plan("a")
        store.save_plan(plan)
        assert store.figures().outboxes == (
            Outbox(subscription="ops", waiting=1, oldest_at=MADE, held_back=0, dead=0),
        )
        held = store.hold("ops", "me", seen=None)
        assert held is not None
        [event] = store.events().events
        dead = DeadEvent(subscription="ops", event=event, why="old", at=NOW)
        assert store.record_delivery(held._replace(delivered=1), [dead])
        assert store.figures().outboxes == (
            Outbox(subscription="ops", waiting=0, oldest_at=None, held_back=0, dead=1),
        )
