# SPDX-License-Identifier: Apache-2.0
"""Checks the answers of changes that are made once."""

# Tests are assertions.

from __future__ import annotations

from datetime import timedelta

from refusal_checks import refused
from sample_plans import new_plan

from applier.contracts import Once
from applier.errors import ApplierError
from applier.storage.sql_store import SqlStore
from planner.plan.states import PlanState
from store_checks.history_checks import entry
from store_checks.running_plans import LATER, NOW

ONCE = Once("5b0c3c86-6a5a-4f0e-9a0e-0d4b9a3f7c11", "a digest")


class AnswerChecks:
    """The rows of changes that are made once."""

    def test_the_second_change_with_a_key_is_not_made(self, store: SqlStore) -> None:
        """Whatever it changes: nothing of it is written."""
        plan, other = new_plan("a"), new_plan("b")
        assert store.answer(ONCE.key) is None
        store.save_plan(plan, history=entry("create")._replace(once=ONCE))
        again = entry("start")._replace(once=ONCE, request_id="req-2")
        with refused(ApplierError):
            store.move_plan(plan.uuid, PlanState.PENDING, now=NOW, history=again)
        with refused(ApplierError):
            store.save_plan(other, history=again)
        with refused(ApplierError):
            store.import_durations({"nop": []}, history=again)
        assert [e.verb for e in store.history()] == ["create"]
        assert store.load_plan(plan.uuid).state is PlanState.RECOMMENDED
        made = store.answer(ONCE.key)
        assert made == (ONCE.digest, plan.uuid, "req-1", NOW, None)

    def test_an_answer_is_kept_for_the_request_that_made_the_change(self, store: SqlStore) -> None:
        """Another request with its key does not replace it."""
        plan = new_plan("a")
        store.save_plan(plan, history=entry("create")._replace(once=ONCE))
        assert not store.keep_answer(ONCE, "req-2", '{"of": 2}', now=LATER)
        for _ in range(2):
            assert store.keep_answer(ONCE, "req-1", '{"of": 1}', now=LATER)
        made = store.answer(ONCE.key)
        assert made is not None
        assert (made.text, made.at) == ('{"of": 1}', NOW)

    def test_an_answer_without_a_change_takes_the_key(self, store: SqlStore) -> None:
        """A later change with that key is refused."""
        assert store.keep_answer(ONCE, "req-1", "{}", now=NOW)
        with refused(ApplierError):
            store.save_plan(new_plan("a"), history=entry("create")._replace(once=ONCE))
        assert not store.keep_answer(ONCE, "req-2", "{}", now=NOW)

    def test_answers_go_with_their_plan(self, store: SqlStore) -> None:
        """A purge deletes both."""
        plan = new_plan("a")
        store.save_plan(plan, history=entry("create")._replace(once=ONCE))
        store.move_plan(plan.uuid, PlanState.DELETED, now=NOW)
        assert store.purge_plans([plan.uuid], LATER + timedelta(days=1)) == [plan.uuid]
        assert store.answer(ONCE.key) is None

    def test_answers_that_belong_to_no_plan_do_not_grow_without_a_purge(
        self, store: SqlStore
    ) -> None:
        """The next one deletes those of more than a week ago, and no younger ones."""
        keys = [Once(f"{ONCE.key[:-1]}{i}", "a digest") for i in range(2, 5)]
        plan, week = new_plan("a"), timedelta(days=7)
        store.save_plan(plan, history=entry("create")._replace(once=ONCE))
        assert store.keep_answer(keys[0], "req-1", "{}", now=NOW)
        assert store.keep_answer(keys[1], "req-2", "{}", now=NOW + week)
        assert store.answer(keys[0].key) is not None
        later = entry("import")._replace(once=keys[2], at=NOW + week + timedelta(seconds=1))
        store.import_durations({"nop": []}, history=later)
        there = [key for key in (ONCE, *keys) if store.answer(key.key) is not None]
        assert there == [ONCE, keys[1], keys[2]]
