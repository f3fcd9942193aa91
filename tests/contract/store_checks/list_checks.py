# SPDX-License-Identifier: Apache-2.0
"""Checks the lists of plans, the queue of pending plans, and the output of actions."""

# Tests are assertions.

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Unpack
from uuid import uuid4

from refusal_checks import refused
from sample_plans import MADE, new_plan

from applier.contracts import Approval, HistoryEntry, Report
from applier.errors import ActionNotFound, PlanNotFound
from applier.storage.sql_store import SqlStore
from applier.store import PlanFilters
from planner.guards import Guards
from planner.plan.model import JOIN, Action
from planner.plan.states import ActionState, PlanState
from store_checks.running_plans import (
    LATER,
    ME,
    NOW,
    claimed,
    ends,
    retries,
    starts,
    succeeds,
)


class ListChecks:
    """Lists, queues and outputs."""

    def test_plans_are_listed_saved_last_first_with_counts(self, store: SqlStore) -> None:
        """Removed plans are listed only by their state. Joins are not counted."""
        assert store.list_plans() == []
        plan = new_plan("a", "b", "c", name="web", cloud="east")
        join = Action(uuid=str(uuid4()), action_type=JOIN)
        plan = replace(plan, actions=(*plan.actions, join))
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(plan.actions[0])], now=NOW)
        for uuid in ("empty", "gone"):
            store.save_plan(new_plan(uuid=uuid))
        store.move_plan("gone", PlanState.DELETED, now=NOW)
        empty, running = store.list_plans()
        assert (empty.uuid, empty.updated_at, dict(empty.actions)) == ("empty", None, {})
        assert (empty.cloud, running.cloud) == (None, "east")
        assert (running.uuid, running.name, running.planner) == (plan.uuid, "web", "weight")
        assert (running.state, running.created_at) == (PlanState.ONGOING, MADE)
        assert running.updated_at == NOW
        assert dict(running.actions) == {ActionState.PENDING: 2, ActionState.ONGOING: 1}
        assert [s.uuid for s in store.list_plans(state=PlanState.DELETED)] == ["gone"]
        assert [s.uuid for s in store.list_plans(state=PlanState.ONGOING)] == [plan.uuid]
        assert [s.uuid for s in store.list_plans(limit=1)] == ["empty"]
        assert store.list_plans(limit=0) == []
        states = (None, PlanState.DELETED, PlanState.ONGOING, PlanState.FAILED)
        assert [store.count_plans(state=state) for state in states] == [2, 1, 1, 0]

    def test_plans_that_wait_for_a_person_are_listed(self, store: SqlStore) -> None:
        """They are paused, in doubt, or may lack approvals that they or a site demand."""
        for uuid, demanded in (("free", Guards()), ("guarded", Guards(approvals=2))):
            store.save_plan(replace(new_plan(uuid=uuid), guards=demanded))
        for uuid, state in (("paused", PlanState.PAUSED), ("doubt", PlanState.FAILED)):
            plan = replace(new_plan("a", uuid=uuid), state=state)
            doubtful = replace(plan.actions[0], state=ActionState.UNKNOWN)
            store.save_plan(replace(plan, actions=(doubtful,)) if uuid == "doubt" else plan)
        store.save_plan(replace(new_plan(uuid="well"), state=PlanState.SUCCEEDED))
        found = {plan.uuid: plan for plan in store.list_plans(needs_you=0)}
        assert list(found) == ["doubt", "paused", "guarded"]
        assert [plan.approvals for plan in found.values()] == [0, 0, 2]
        assert store.count_plans(needs_you=0) == 3
        by_site = [plan.uuid for plan in store.list_plans(needs_you=1)]
        assert by_site == ["doubt", "paused", "guarded", "free"]

    def test_a_plan_that_ran_with_all_its_approvals_waits_for_nobody(self, store: SqlStore) -> None:
        """Approvals of other contents do not count, nor does a second one of the same person.

        Those of its creator may not count, nor may any while none of its actions has begun.
        """
        ran, began_not = (
            replace(new_plan("a"), guards=Guards(approvals=2), state=PlanState.PENDING)
            for _ in range(2)
        )
        for plan in (began_not, ran):
            store.save_plan(plan, history=HistoryEntry(verb="create", who="eve", at=NOW))
            claim = store.claim_plan(plan.uuid, ME, now=NOW)
            if plan is ran:
                store.commit(plan.uuid, claim, [starts(plan.actions[0])], now=NOW)
                store.commit(plan.uuid, claim, [ends(plan.actions[0], ActionState.FAILED)], now=NOW)
            store.move_claimed(plan.uuid, claim, PlanState.FAILED, now=NOW)
        for who, content, waits in (
            ("eve", ran.digest, True),
            ("ann", ran.digest, True),
            ("ann", ran.digest, True),
            ("bob", "another", True),
            ("bob", ran.digest, False),
        ):
            for plan in (ran, began_not):
                store.approve_plan(plan.uuid, Approval(who, NOW, content))
            listed = [plan.uuid for plan in store.list_plans(needs_you=1)]
            assert listed == [*([ran.uuid] if waits else ()), began_not.uuid], (who, content)
        assert len(store.list_plans(needs_you=3)) == 2

    def test_an_action_that_a_run_leaves_in_doubt_is_found_until_it_is_settled(
        self, store: SqlStore
    ) -> None:
        """That an applier died on it, and that a run ended so, are recorded in two ways."""
        plan, other = new_plan("a", "b"), new_plan("a")
        for one in (plan, other):
            claim, first = claimed(store, one), one.actions[0]
            store.commit(one.uuid, claim, [starts(first)], now=NOW)
            if one is plan:
                ends = Report(uuid=first.uuid, old=ActionState.ONGOING, state=ActionState.UNKNOWN)
                store.commit(one.uuid, claim, [ends], now=NOW)
                assert [p.uuid for p in store.list_plans(needs_you=0)] == [plan.uuid]
                store.move_claimed(one.uuid, claim, PlanState.FAILED, now=NOW)
            else:
                seen = store.claimant(one.uuid)
                store.move_plan(one.uuid, PlanState.CANCELLED, now=NOW, seen=seen)
        assert [p.uuid for p in store.list_plans(needs_you=0)] == [other.uuid, plan.uuid]
        for one in (plan, other):
            uuid = one.actions[0].uuid
            store.settle_action(one.uuid, uuid, ActionState.FAILED, now=LATER, message="it did not")
        assert store.list_plans(needs_you=0) == []

    def test_what_is_read_as_one_moment_does_not_see_later_changes(self, store: SqlStore) -> None:
        """A change that another connection makes meanwhile is seen afterwards."""
        plan = new_plan("a")
        store.save_plan(plan)

        def read() -> list[PlanState]:
            first = store.load_plan(plan.uuid).state
            with ThreadPoolExecutor() as other:
                other.submit(store.move_plan, plan.uuid, PlanState.PENDING, now=NOW).result()
            return [first, store.load_plan(plan.uuid).state]

        assert store.of_one_moment(read) == [PlanState.RECOMMENDED] * 2
        assert store.load_plan(plan.uuid).state is PlanState.PENDING

    def test_the_plans_of_one_name_are_listed(self, store: SqlStore) -> None:
        """Names are compared exactly, also a space at the end."""
        for uuid, name in (("a", "web"), ("b", "Web"), ("c", "web "), ("d", "web"), ("e", None)):
            store.save_plan(new_plan("one", uuid=uuid, name=name))
        assert [plan.uuid for plan in store.list_plans(name="web")] == ["d", "a"]
        assert [plan.uuid for plan in store.list_plans(name="web ", limit=1)] == ["c"]
        (latest,) = store.list_plans(name="web", limit=1)
        assert latest.digest == store.load_plan("d").digest
        store.move_plan("d", PlanState.DELETED, now=NOW)
        assert [plan.uuid for plan in store.list_plans(name="web")] == ["a"]
        deleted = PlanState.DELETED
        assert [plan.uuid for plan in store.list_plans(state=deleted, name="web")] == ["d"]
        assert store.list_plans(state=deleted, name="we") == []
        store.save_plan(new_plan("one", uuid="g", name="Äpfel"))
        for text, found in (
            *(("WE", "cba"), ("eb ", "c"), ("%", ""), ("_eb", ""), ("", "gcba")),
            *(("Äpfel", "g"), ("ÄPFEL", "g"), ("PFE", "g")),
        ):
            listed = store.list_plans(search=text)
            assert "".join(plan.uuid for plan in listed) == found, text
            assert store.count_plans(search=text) == len(found)

    def test_plans_are_filtered_by_who_made_them_how_and_when(self, store: SqlStore) -> None:
        """Filters are combined. With ``since`` or ``until``, the plan made last comes first."""
        day = timedelta(days=1)
        for uuid, planner, creator, made in (
            ("a", "weight", "ada", MADE + 2 * day),
            ("b", "events", "ada", MADE + day),
            ("c", "weight", "bob", MADE),
            ("d", "weight", "ada ", None),
            ("e", "weight", None, MADE + day),
        ):
            plan = replace(new_plan("x", uuid=uuid, created_at=made), planner=planner)
            entry = HistoryEntry(verb="create", who=creator, at=NOW) if creator else None
            store.save_plan(plan, history=entry)
        store.move_plan("e", PlanState.DELETED, now=NOW)

        def listed(limit: int | None = None, **filters: Unpack[PlanFilters]) -> str:
            found = store.list_plans(limit=limit, **filters)
            assert store.count_plans(most=limit, **filters) == len(found)
            assert all(plan.actions == {ActionState.PENDING: 1} for plan in found)
            return "".join(plan.uuid for plan in found)

        assert [plan.creator for plan in store.list_plans()] == ["ada ", "bob", "ada", "ada"]
        assert (listed(creator="ada"), listed(creator="ada ")) == ("ba", "d")
        assert (listed(planner="weight"), listed(planner="weigh")) == ("dca", "")
        assert listed(planner="weight", creator="ada") == "a"
        assert (listed(since=MADE), listed(until=MADE)) == ("abc", "")
        assert listed(since=MADE, until=MADE + 2 * day) == "bc"
        assert listed(since=MADE, creator="ada", limit=1) == "a"
        assert listed(until=MADE + day, planner="weight") == "c"
        assert listed(state=PlanState.DELETED, since=MADE) == "e"
        assert listed(limit=3) == "dcb"
        pages: tuple[PlanFilters, ...] = ({}, {"creator": "ada"}, {"since": MADE}, {"until": LATER})
        for filters in pages:
            whole = listed(**filters)
            seen, last = "", None
            while page := store.list_plans(limit=1, after=last, **filters):
                assert page[0].actions == {ActionState.PENDING: 1}
                seen, last = seen + page[0].uuid, page[-1].uuid
            assert seen == whole, filters
        # The last plan of a page may be removed before the next page is asked for.
        assert [plan.uuid for plan in store.list_plans(after="e")] == ["d", "c", "b", "a"]
        with refused(PlanNotFound, reference="nope"):
            store.list_plans(after="nope")

    def test_plans_wait_in_the_order_in_which_they_began_to_wait(self, store: SqlStore) -> None:
        """The order of saving and the clock do not matter."""
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

    def test_the_output_of_an_action_is_that_of_its_last_attempt(self, store: SqlStore) -> None:
        """It is None before the first attempt ends, and while an attempt runs."""
        plan = new_plan("a")
        (a,) = plan.actions
        claim = claimed(store, plan)
        assert store.output(plan.uuid, a.uuid) is None
        store.commit(plan.uuid, claim, [starts(a), retries(a, output="1")], now=NOW)
        assert store.output(plan.uuid, a.uuid) == "1"
        store.commit(plan.uuid, claim, [starts(a)], now=LATER)
        assert store.output(plan.uuid, a.uuid) is None
        store.commit(plan.uuid, claim, [succeeds(a, output="2")], now=LATER)
        assert store.output(plan.uuid, a.uuid) == "2"
        with refused(ActionNotFound, reference="none"):
            store.output(plan.uuid, "none")
        with refused(PlanNotFound, reference="none"):
            store.output("none", a.uuid)
