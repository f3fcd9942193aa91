# SPDX-License-Identifier: Apache-2.0
"""Checks the approvals of plans: kept in order, once for each person and content, with events."""

# Tests are assertions.

from __future__ import annotations

from dataclasses import replace

from refusal_checks import refused
from sample_plans import new_plan

from applier.contracts import Approval
from applier.errors import PlanConflict, PlanNotFound
from applier.notifications import schema
from applier.storage.sql_store import SqlStore
from applier.store.entries import GivenApprovals, PlanArchive
from planner.guards import Guards
from planner.plan.states import PlanState
from store_checks.history_checks import entry
from store_checks.running_plans import LATER, NOW, claimed

ONE = Approval(who="ada", at=NOW, content="sha256:1", why="fine", project="ops")


class ApprovalChecks:
    """Checks of the approvals of a plan, and of their history entries and events."""

    def test_what_a_plan_demands_is_kept(self, store: SqlStore) -> None:
        """Guards and the time of the facts are read as they were saved."""
        guards = Guards(approvals=2, approval_by_another=True, labels=("prod",))
        plan = replace(new_plan("a"), guards=guards, facts_at=NOW)
        store.save_plan(plan)
        assert store.load_plan(plan.uuid) == plan

    def test_approvals_are_listed_in_their_order(self, store: SqlStore) -> None:
        """``approvals`` returns them with the maker of the plan; each has a history entry."""
        plan = new_plan("a")
        store.save_plan(plan, history=entry("create"))
        assert store.approvals(plan.uuid) == GivenApprovals("wanda", [])
        two = ONE._replace(who="bo", why=None, project=None, at=LATER)
        store.approve_plan(plan.uuid, ONE, history=entry("approve", "fine"))
        store.approve_plan(plan.uuid, two, history=entry("approve"))
        assert store.approvals(plan.uuid) == GivenApprovals("wanda", [ONE, two])
        assert [e.verb for e in store.history(plan.uuid)] == ["create", "approve", "approve"]

    def test_who_imported_a_plan_is_known_besides_who_made_it(self, store: SqlStore) -> None:
        """Both count as makers, because the importer may have changed the maker in the document."""
        plan = new_plan("a")
        made, imported = entry("create"), entry("import")._replace(who="eve")
        store.import_plan(PlanArchive(plan, {}, [made], []), history=imported)
        given = store.approvals(plan.uuid)
        assert given == GivenApprovals("wanda", [], frozenset({"eve"}))
        assert given.makers == {"wanda", "eve"}

    def test_the_same_person_approves_the_same_content_once(self, store: SqlStore) -> None:
        """The later approval replaces the earlier one; that of another content is kept."""
        plan = new_plan("a")
        store.save_plan(plan)
        other, again = ONE._replace(content="sha256:2"), ONE._replace(at=LATER, why="still")
        for approval in (ONE, other, again):
            store.approve_plan(plan.uuid, approval)
        assert store.approvals(plan.uuid).approvals == [other, again]

    def test_a_plan_that_runs_is_not_approved(self, store: SqlStore) -> None:
        """PlanConflict is raised, and nothing is written; PlanNotFound for an unknown plan."""
        plan = new_plan("a")
        claimed(store, plan)
        with refused(PlanConflict, plan=plan.uuid, state="ONGOING"):
            store.approve_plan(plan.uuid, ONE, history=entry("approve"))
        assert "approve" not in [e.verb for e in store.history(plan.uuid)]
        assert store.approvals(plan.uuid).approvals == []
        with refused(PlanNotFound):
            store.approve_plan("nobody", ONE)
        with refused(PlanNotFound):
            store.approvals("nobody")

    def test_the_approvals_of_a_purged_plan_are_deleted(self, store: SqlStore) -> None:
        """A later plan of the same uuid, for example an imported one, has none of them."""
        plan = new_plan("a")
        store.save_plan(plan)
        store.approve_plan(plan.uuid, ONE)
        store.move_plan(plan.uuid, PlanState.DELETED, now=NOW)
        assert store.purge_plans([plan.uuid], LATER) == [plan.uuid]
        with refused(PlanNotFound):
            store.approvals(plan.uuid)
        store.save_plan(plan)
        assert store.approvals(plan.uuid).approvals == []

    def test_an_approval_is_an_event(self, store: SqlStore) -> None:
        """The event of type PLAN_APPROVED follows the event of its history entry."""
        plan = new_plan("a")
        store.save_plan(plan)
        store.subscribe("ops", now=NOW)
        store.approve_plan(plan.uuid, ONE, history=entry("approve", "fine"))
        told, approved = store.events().events
        assert (told["type"], told["data"]["verb"]) == (schema.PLAN_HISTORY, "approve")
        assert approved["type"] == schema.PLAN_APPROVED
        assert approved["data"] == {
            "who": "ada",
            "project": "ops",
            "why": "fine",
            "content": "sha256:1",
        }
