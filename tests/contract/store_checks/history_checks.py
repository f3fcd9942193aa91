# SPDX-License-Identifier: Apache-2.0
"""Checks the history of plans: who made which change, when and why."""

# Tests are assertions.

from __future__ import annotations

from refusal_checks import refused
from sample_plans import new_plan

from applier.contracts import HistoryEntry, Request
from applier.errors import PlanConflict, PlanNotFound
from applier.storage.sql_store import SqlStore
from planner.errors import InvalidTransition
from planner.plan.states import ActionState, PlanState
from store_checks.running_plans import LATER, ME, NOW


def entry(verb: str, why: str | None = None, action: str | None = None) -> HistoryEntry:
    """Return an entry of the user wanda, with all fields of a request over HTTP."""
    return HistoryEntry(
        verb=verb,
        who="wanda",
        at=NOW,
        why=why,
        action=action,
        project="ops",
        address="192.0.2.7",
        request_id="req-1",
    )


class HistoryChecks:
    """The entries of changes, of refusals, and of all plans."""

    def test_each_change_is_in_the_history_with_who_and_why(self, store: SqlStore) -> None:
        """The entries of a plan are listed in the order of its changes."""
        plan = new_plan("a", "b")
        first, second = (action.uuid for action in plan.actions)
        store.save_plan(plan, history=entry("create"))
        skip, settle = entry("skip", "by hand", second), entry("set", "it is done", first)
        store.skip_action(plan.uuid, second, now=NOW, message="", history=skip)
        store.move_plan(plan.uuid, PlanState.PENDING, now=NOW, history=entry("start"))
        claim = store.claim_plan(plan.uuid, ME, now=LATER)
        request = Request(verb="cancel", who="wanda")
        store.add_request(plan.uuid, request, now=NOW, history=entry("cancel", "wrong"))
        seen = store.claimant(plan.uuid)
        store.move_plan(plan.uuid, PlanState.PAUSED, now=NOW, seen=seen, history=entry("pause"))
        store.resume_plan(plan.uuid, (), now=NOW, seen=None, history=entry("resume"))
        store.add_history(plan.uuid, entry("force-complete", action=first))
        assert claim
        with refused(InvalidTransition):
            store.settle_action(
                plan.uuid, first, ActionState.FAILED, now=NOW, message="", history=settle
            )
        found = store.history(plan.uuid)
        verbs = ["create", "skip", "start", "apply", "cancel", "pause", "resume", "force-complete"]
        assert [e.verb for e in found] == verbs
        assert {e.plan for e in found} == {plan.uuid}
        numbers = [e.number for e in found]
        assert numbers == sorted(set(numbers))
        assert found[1]._replace(number=0, plan="") == skip
        assert (found[3].who, found[3].at) == (ME.user, LATER)
        assert found[4].why == "wrong"

    def test_what_was_refused_is_not_in_the_history(self, store: SqlStore) -> None:
        """A refused change leaves no entry; nor does a change without ``history``."""
        plan = new_plan("a")
        store.save_plan(plan)
        with refused(PlanConflict, plan=plan.uuid, state="RECOMMENDED"):
            store.save_plan(plan, history=entry("create"))
        with refused(PlanConflict, plan=plan.uuid, state="RECOMMENDED"):
            request = Request(verb="pause", who="wanda")
            store.add_request(plan.uuid, request, now=NOW, history=entry("pause"))
        with refused(PlanNotFound):
            store.add_history("nobody", entry("force-complete"))
        assert store.history() == store.history(plan.uuid) == []

    def test_the_latest_entries_are_listed_oldest_first(self, store: SqlStore) -> None:
        """``limit`` leaves out the oldest entries, ``after`` those up to that number."""
        plans = [new_plan("a") for _ in range(4)]
        for number, plan in enumerate(plans):
            store.save_plan(plan, history=entry("create", f"{number}\0"))
        found = store.history()
        assert [e.plan for e in found] == [plan.uuid for plan in plans]
        assert store.history(limit=2) == found[2:]
        assert store.history(after=found[1].number) == found[2:]
        assert store.history(after=found[0].number, limit=1) == found[3:]
        assert store.history(plans[2].uuid) == [found[2]]
        assert found[2].why == "2\N{REPLACEMENT CHARACTER}"
