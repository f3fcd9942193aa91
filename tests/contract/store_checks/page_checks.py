# SPDX-License-Identifier: Apache-2.0
"""Checks the pages of plans and actions."""

# Tests are assertions.

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from refusal_checks import refused
from sample_plans import MADE, new_plan

from applier.errors import ActionNotFound, PlanNotFound
from applier.storage.sql_store import SqlStore
from applier.store.plans import ActionKey, Page, PlanHead, PlanKey, PlannedAction
from planner.plan.model import ActionPlan
from planner.plan.states import ActionState, PlanState
from store_checks.running_plans import ME, NOW, claimed, starts


class PageChecks:
    """Checks of sorted and filtered pages of plans and actions."""

    def some(self, store: SqlStore) -> list[ActionPlan]:
        """Save three plans and a removed one; return the three."""
        heads: list[dict[str, Any]] = [
            {"audit_uuid": "y", "created_at": MADE + timedelta(days=1), "strategy_name": "s"},
            {"created_at": None, "global_efficacy": ({"name": "n"},)},
            {"audit_uuid": "x", "status_message": "m"},
        ]
        plans = [new_plan("a", "b", **fields) for fields in heads]
        gone = new_plan("a", audit_uuid="x")
        for plan in (*plans[:2], gone, plans[2]):
            store.save_plan(plan)
        store.move_plan(gone.uuid, PlanState.DELETED, now=NOW)
        return plans

    def test_a_head_is_the_plan_without_its_actions(self, store: SqlStore) -> None:
        """The ``host`` of a head is that of the last claimant of the plan."""
        plan = new_plan(
            "a",
            audit_uuid="x",
            strategy_name="s",
            efficacy_indicators=({"name": "n", "value": 1.5},),
            global_efficacy=({"name": "g"},),
        )
        claimed(store, plan)
        head = store.plan_head(plan.uuid)
        assert head == PlanHead(
            uuid=plan.uuid,
            state=PlanState.ONGOING,
            audit_uuid="x",
            strategy_name="s",
            efficacy_indicators=plan.efficacy_indicators,
            global_efficacy=plan.global_efficacy,
            host=ME.host,
            created_at=MADE,
            updated_at=MADE,
        )
        assert store.plan_heads(Page(limit=9)) == [head]

    def test_pages_of_plans_follow_each_other(self, store: SqlStore) -> None:
        """By each key, in both directions. Missing values are first; removed plans are left out."""
        plans = self.some(store)
        for key in PlanKey:
            found = self.paged(store.plan_heads, key)
            assert set(found) == {plan.uuid for plan in plans}, key
        first, second, third = (plan.uuid for plan in plans)
        assert self.paged(store.plan_heads, PlanKey.SAVED) == [first, second, third]
        assert self.paged(store.plan_heads, PlanKey.AUDIT) == [second, third, first]
        assert self.paged(store.plan_heads, PlanKey.CREATED) == [second, third, first]
        assert self.paged(store.plan_heads, PlanKey.MESSAGE) == [first, second, third]

    def test_pages_of_actions_follow_each_other(self, store: SqlStore) -> None:
        """All actions are returned, by each key and in both directions."""
        plans = self.some(store)
        uuids = [action.uuid for plan in plans for action in plan.actions]
        for key in ActionKey:
            assert set(self.paged(store.planned_actions, key)) == set(uuids), key
        assert self.paged(store.planned_actions, ActionKey.SAVED) == uuids
        assert self.paged(store.planned_actions, ActionKey.UUID) == sorted(uuids)

    def paged(
        self, read: Callable[[Page], Sequence[PlanHead | PlannedAction]], key: str
    ) -> list[str]:
        """Read a list in pages of two and in one page, which must agree; return ascending uuids."""
        for descending in (True, False):
            found: list[str] = []
            while page := read(
                Page(limit=2, key=key, descending=descending, marker=found[-1] if found else None)
            ):
                found += [row.uuid for row in page]
            whole = [row.uuid for row in read(Page(limit=99, key=key, descending=descending))]
            assert found == whole, key
            assert len(set(found)) == len(found)
        return found

    def test_pages_are_filtered(self, store: SqlStore) -> None:
        """Plans by audit, strategy and state; actions by plan and audit."""
        first, second, third = self.some(store)
        page = Page(limit=9)
        assert [h.uuid for h in store.plan_heads(page, audit="x")] == [third.uuid]
        assert [h.uuid for h in store.plan_heads(page, strategy="s")] == [first.uuid]
        assert store.plan_heads(page, audit="x", strategy="s") == []
        store.move_plan(second.uuid, PlanState.PENDING, now=NOW)
        pending = store.plan_heads(page, state=PlanState.PENDING)
        assert [h.uuid for h in pending] == [second.uuid]
        of_plan = [a.action for a in store.planned_actions(page, plan=first.uuid)]
        assert of_plan == list(first.actions)
        of_audit = [a.plan for a in store.planned_actions(page, audit="x")]
        assert of_audit == [third.uuid] * 2
        assert len(store.plan_heads(Page(limit=2))) == 2

    def test_an_action_is_found_by_its_uuid_alone(self, store: SqlStore) -> None:
        """If several plans contain it, the plan that was saved last and not removed counts."""
        plan = new_plan("a")
        others = [replace(plan, uuid=uuid) for uuid in ("second", "third")]
        for each in (plan, *others):
            store.save_plan(each)
        (a,) = plan.actions
        assert store.planned_action(a.uuid).plan == "third"
        store.move_plan("third", PlanState.DELETED, now=NOW)
        found = store.planned_action(a.uuid)
        assert found == PlannedAction(
            uuid=a.uuid,
            plan="second",
            plan_state=PlanState.RECOMMENDED,
            plan_created_at=MADE,
            action=a,
        )
        claim = store.claim_plan(self.pending(store, "second"), ME, now=NOW)
        store.commit("second", claim, [starts(a)], now=NOW)
        found = store.planned_action(a.uuid)
        assert found.plan_state is PlanState.ONGOING
        assert found.action is not None
        assert (found.action.state, found.action.started_at) == (ActionState.ONGOING, NOW)

    def pending(self, store: SqlStore, uuid: str) -> str:
        """Start a plan; return its uuid."""
        store.move_plan(uuid, PlanState.PENDING, now=NOW)
        return uuid

    def test_what_is_not_there_is_refused(self, store: SqlStore) -> None:
        """Removed plans, their actions, unknown markers. A removed plan may be a marker."""
        gone, plan = new_plan("a"), new_plan("b")
        for each in (gone, plan):
            store.save_plan(each)
        store.move_plan(gone.uuid, PlanState.DELETED, now=NOW)
        for uuid in (gone.uuid, "none"):
            with refused(PlanNotFound, reference=uuid):
                store.plan_head(uuid)
        for uuid in (gone.actions[0].uuid, "none"):
            with refused(ActionNotFound, reference=uuid):
                store.planned_action(uuid)
        marked = Page(limit=9, marker=gone.uuid)
        assert [h.uuid for h in store.plan_heads(marked)] == [plan.uuid]
        with refused(PlanNotFound, reference="none"):
            store.plan_heads(Page(limit=9, marker="none"))
        with refused(ActionNotFound, reference="none"):
            store.planned_actions(Page(limit=9, marker="none"))
        of_other = Page(limit=9, marker=plan.actions[0].uuid)
        with refused(ActionNotFound, reference=plan.actions[0].uuid):
            store.planned_actions(of_other, plan=gone.uuid)
