# SPDX-License-Identifier: Apache-2.0
"""Checks that plans are found by the references that users type."""

# Tests are assertions.

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from sample_plans import MADE, new_plan

from applier.errors import PlanNotFound
from applier.storage.sql_store import SqlStore
from planner.plan.model import Action
from planner.plan.states import PlanState
from store_checks.running_plans import NOW, claimed, starts


class FindChecks:
    """Finding plans by uuid, beginning of a uuid, and name."""

    def save(self, store: SqlStore, *heads: tuple[str, str | None]) -> None:
        """Save a plan for each pair of a uuid and a name."""
        for uuid, name in heads:
            store.save_plan(new_plan(uuid=uuid, name=name))

    def test_a_plan_is_found_by_uuid_beginning_and_name(self, store: SqlStore) -> None:
        """A beginning has at least four characters."""
        self.save(store, ("6a1f0000", "drain"), ("6a1f1111", "Drain"), ("77e0ffff", None))
        for reference in ("77e0ffff", "77e0f", "77e0"):
            assert store.find_plan(reference) == "77e0ffff"
        assert store.find_plan("drain") == "6a1f0000"
        assert store.find_plan("Drain") == "6a1f1111"
        for reference in ("77e", "77E0", "7e0f", "77e0ffff0", "drai", "", "%", "____", "6a1f%"):
            with pytest.raises(PlanNotFound) as refusal:
                store.find_plan(reference)
            assert refusal.value.candidates == (), reference

    def test_what_fits_several_plans_is_refused_with_what_tells_them_apart(
        self, store: SqlStore
    ) -> None:
        """An ambiguous reference is refused with the shortened uuids of the plans that match."""
        self.save(store, ("6a1f0000-1111-a", "web"), ("6a1f0000-1111-b", "77e0"))
        self.save(store, ("77e0aaaa-2222", "web"))
        for reference, candidates in {
            "6a1f": ("6a1f0000-1111-a", "6a1f0000-1111-b"),
            "web": ("6a1f0000", "77e0aaaa"),
            "77e0": ("6a1f0000", "77e0aaaa"),
        }.items():
            with pytest.raises(PlanNotFound) as refusal:
                store.find_plan(reference)
            assert refusal.value.candidates == candidates

    def test_a_whole_uuid_is_preferred(self, store: SqlStore) -> None:
        """It may also be the beginning of another uuid, and the name of a third plan."""
        self.save(store, ("abcd", None), ("abcdef", None), ("ffff", "abcd"))
        assert store.find_plan("abcd") == "abcd"

    def test_last_is_the_plan_that_was_saved_last(self, store: SqlStore) -> None:
        """The order of saving decides, not the clock; removed plans do not count."""
        with pytest.raises(PlanNotFound):
            store.find_plan("last")
        self.save(store, ("first", None))
        store.save_plan(new_plan(uuid="second", created_at=MADE - timedelta(days=9)))
        assert store.find_plan("last") == store.find_plan("last~0") == "second"
        assert store.find_plan("last~1") == "first"
        with pytest.raises(PlanNotFound):
            store.find_plan("last~2")
        store.move_plan("second", PlanState.DELETED, now=NOW)
        assert store.find_plan("last") == "first"

    def test_a_removed_plan_is_found_by_its_whole_uuid_only(self, store: SqlStore) -> None:
        """Its name and the beginning of its uuid then refer to the other plan only."""
        self.save(store, ("abcd-1", "web"), ("abcd-2", "web"))
        store.move_plan("abcd-1", PlanState.DELETED, now=NOW)
        assert store.find_plan("web") == store.find_plan("abcd") == "abcd-2"
        assert store.find_plan("abcd-1") == "abcd-1"
        assert store.load_plan("abcd-1").state is PlanState.DELETED

    def test_a_part_has_what_explains_an_action(self, store: SqlStore) -> None:
        """Those before it, through joins, and those that run; not those before or after these."""
        a, b, c, d, e = (Action(uuid=f"{n}" * 8, action_type="nop", name=n) for n in "abcde")
        b = replace(b, parents=(a.uuid,))
        join = Action(uuid="f" * 8, action_type="join", needs=(b.uuid, c.uuid))
        d = replace(d, needs=(join.uuid,), needs_any=((a.uuid, c.uuid),))
        after, runs = (Action(uuid=f"0{n}", action_type="nop", name=n) for n in "xy")
        plan = new_plan()
        actions = (runs, a, b, c, join, d, replace(after, parents=(d.uuid,)), e)
        plan = replace(plan, actions=actions, state=PlanState.PENDING)
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(runs)], now=NOW)

        def part(reference: str) -> list[str]:
            return [one.label for one in store.load_part(plan.uuid, reference).actions]

        assert part("d") == part("dddd") == ["y", "a", "b", "c", join.label, "d"]
        assert part("b") == ["y", "a", "b"]
        assert part("0") == ["y", "d", "x"]
        assert part("") == part("_") == ["y"]
        with pytest.raises(PlanNotFound):
            store.load_part("no-plan", "d")
