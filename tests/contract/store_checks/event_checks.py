# SPDX-License-Identifier: Apache-2.0
"""Checks subscriptions: the events kept for them, their holders, and the deletion of events."""

# Tests are assertions.

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from sample_plans import new_plan

from applier.storage.sql_store import SqlStore
from applier.store.entries import DeadEvent, Subscription, Trouble
from planner.plan.model import JOIN
from planner.plan.states import PlanState
from store_checks.history_checks import entry
from store_checks.running_plans import (
    AFTERWARDS,
    LATER,
    NOW,
    at_once,
    claimed,
    starts,
    succeeds,
)

#: How long a subscription of readers lasts in these tests.
SOON = timedelta(seconds=30)


def happen(store: SqlStore, number: int) -> str:
    """Save a new plan, write ``number`` events about it, and return its uuid."""
    plan = new_plan("a")
    store.save_plan(plan)
    for _ in range(number - 1):
        store.add_history(plan.uuid, entry("note"))
    return plan.uuid


def held(store: SqlStore, name: str, holder: str) -> Subscription:
    """Subscribe a receiver, and return its subscription, held by ``holder`` for deliveries."""
    store.subscribe(name, now=NOW)
    found = store.hold(name, holder, seen=None)
    assert found is not None
    return found


class EventChecks:
    """Checks of readers and receivers, of the process that delivers, and of dead events."""

    def test_a_subscription_begins_with_the_next_event(self, store: SqlStore) -> None:
        """Earlier events are not delivered. To subscribe again changes nothing."""
        store.subscribe("first", now=NOW)
        happen(store, 3)
        store.subscribe("second", now=NOW)
        happen(store, 1)
        store.subscribe("first", now=LATER)
        found = [(s.name, s.delivered, s.until) for s in store.subscriptions()]
        assert found == [("first", 0, None), ("second", 3, None)]
        assert store.unsubscribe("first")
        assert not store.unsubscribe("first")
        assert [s.name for s in store.subscriptions()] == ["second"]

    def test_events_are_read_page_by_page(self, store: SqlStore) -> None:
        """A page that is read after ``last`` of a page continues it; ``plan`` selects one plan."""
        store.subscribe("ops", now=NOW)
        plans = [happen(store, 3) for _ in range(2)]
        first = store.events(limit=4)
        assert ([e["number"] for e in first.events], first.last, first.newest) == (
            [1, 2, 3, 4],
            4,
            6,
        )
        second = store.events(first.last, limit=4)
        assert ([e["number"] for e in second.events], second.last) == ([5, 6], 6)
        assert store.events(second.last).events == []
        mine = store.events(plan=plans[1])
        assert ([e["number"] for e in mine.events], mine.last) == ([4, 5, 6], 6)
        assert store.events(1000).last == 6

    def test_the_latest_events_are_listed_oldest_first(self, store: SqlStore) -> None:
        """At most ``limit`` are returned, of one plan or of all; an empty list without events."""
        assert store.latest_events(limit=5) == []
        store.subscribe("ops", now=NOW)
        plan = happen(store, 3)
        happen(store, 2)
        assert [e["number"] for e in store.latest_events(limit=3)] == [3, 4, 5]
        assert [e["number"] for e in store.latest_events(limit=2, plan=plan)] == [2, 3]

    def test_the_events_of_a_deleted_plan_tell_the_same(self, store: SqlStore) -> None:
        """The events still contain the names of its actions, and none is about a join."""
        store.subscribe("ops", now=NOW)
        plan = new_plan("a", "j")
        a, join = plan.actions[0], replace(plan.actions[1], action_type=JOIN)
        claim = claimed(store, replace(plan, actions=(a, join)))
        reports = [report for one in (a, join) for report in (starts(one), succeeds(one))]
        store.commit(plan.uuid, claim, reports, now=NOW)
        store.move_claimed(plan.uuid, claim, PlanState.SUCCEEDED, now=NOW)
        before = store.events().events
        assert [e["data"]["name"] for e in before if e.get("action")] == ["a", "a"]
        assert store.purge_plans([plan.uuid], LATER) == [plan.uuid]
        assert store.events().events == before

    def test_readers_count_until_their_time(self, store: SqlStore) -> None:
        """Their subscription can only be prolonged; after a lapse, older events are deleted."""
        store.subscribe("readers", now=NOW, until=NOW + SOON)
        happen(store, 2)
        store.subscribe("readers", now=NOW, until=NOW + 2 * SOON)
        store.subscribe("readers", now=NOW, until=NOW + SOON)
        [reading] = store.subscriptions()
        assert reading.until == NOW + 2 * SOON
        assert (store.events().deleted, store.events().newest) == (0, 2)
        store.subscribe("readers", now=AFTERWARDS, until=AFTERWARDS + SOON)
        page = store.events()
        assert (page.events, page.deleted, page.newest) == ([], 2, 2)
        plan = happen(store, 1)
        over = AFTERWARDS + 2 * SOON
        store.add_history(plan, entry("note")._replace(at=over))
        assert store.events().newest == 3

    def test_one_process_delivers(self, store: SqlStore) -> None:
        """Another becomes the holder only if there was no heartbeat since it read ``seen``."""
        assert store.hold("ops", "me", seen=None) is None
        mine = held(store, "ops", "me")
        assert store.hold("ops", "you", seen=None) is None
        [seen] = store.subscriptions()
        again = store.hold("ops", "me", seen=None)
        assert again is not None
        assert again.beats > mine.beats
        assert store.hold("ops", "you", seen=seen) is None
        [seen] = store.subscriptions()
        taken = store.hold("ops", "you", seen=seen)
        assert taken is not None
        assert taken.holder == "you"
        assert not store.record_delivery(mine._replace(delivered=5))
        assert store.record_delivery(taken._replace(delivered=0))
        store.release("ops", "me")
        assert store.hold("ops", "me", seen=None) is None
        store.release("ops", "you")
        assert store.hold("ops", "me", seen=None) is not None

    def test_one_of_many_processes_takes_over(self, store: SqlStore) -> None:
        """If several see the same dead holder, one gets the subscription."""
        seen = held(store, "ops", "dead")
        found = at_once(4, lambda index: store.hold("ops", f"p{index}", seen=seen))
        assert sum(result is not None for result in found) == 1

    def test_deliveries_are_on_record(self, store: SqlStore) -> None:
        """The last delivered event, the events held back with their errors, and dead events."""
        mine = held(store, "ops", "me")
        plan = happen(store, 3)
        back = Trouble(number=2, since=NOW, tries=3, why="400 Bad Request\0")
        mine = mine._replace(delivered=3, held_back={plan: back}, away=back._replace(why="away"))
        dead = DeadEvent(subscription="ops", event=store.events().events[0], why="old", at=LATER)
        assert store.record_delivery(mine, [dead])
        assert store.record_delivery(mine, [dead])
        [found] = store.subscriptions()
        assert found.held_back == {
            plan: back._replace(why="400 Bad Request\N{REPLACEMENT CHARACTER}")
        }
        assert (found.delivered, found.away, found.holder) == (3, back._replace(why="away"), "me")
        assert store.events_waiting(found) == 2, "held back: the second and the third"
        assert store.dead_events() == store.dead_events(limit=1) == [dead]
        store.unsubscribe("ops")
        assert store.dead_events() == []

    def test_events_are_deleted_when_every_receiver_has_them(self, store: SqlStore) -> None:
        """An event that is held back for a receiver is kept, with all events after it."""
        mine, yours = held(store, "ops", "me"), held(store, "tickets", "me")
        plan = happen(store, 4)
        assert store.record_delivery(yours._replace(delivered=4))
        assert store.delete_events(before=AFTERWARDS, now=AFTERWARDS) == 0
        back = {plan: Trouble(number=3, since=NOW, tries=1, why="")}
        assert store.record_delivery(mine._replace(delivered=4, held_back=back))
        assert store.delete_events(before=AFTERWARDS, now=AFTERWARDS) == 2
        page = store.events()
        assert ([e["number"] for e in page.events], page.deleted) == ([3, 4], 2)

    def test_readers_find_what_is_not_older_than_a_time(self, store: SqlStore) -> None:
        """While readers subscribe, only events older than ``before`` are deleted."""
        store.subscribe("readers", now=NOW, until=AFTERWARDS)
        plan = happen(store, 1)
        store.add_history(plan, entry("note")._replace(at=LATER))
        assert store.delete_events(before=LATER, now=LATER) == 1
        assert [e["number"] for e in store.events().events] == [2]
        assert store.delete_events(before=LATER, now=LATER) == 0
