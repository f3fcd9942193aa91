# SPDX-License-Identifier: Apache-2.0
"""Who reads the events of a plan subscribes, loses none, and is told the state of the plan."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import jsonschema
import pytest
from sample_plans import new_plan
from store_checks.history_checks import entry
from store_checks.running_plans import claimed, starts, succeeds
from temporary_store import TemporaryStore

from applier.cli import watch
from applier.cli.watch import LASTS, PlanEvents
from applier.notifications.schema import SCHEMA
from applier.storage.sql_store import SqlStore
from planner.plan.model import ActionPlan
from planner.plan.states import PlanState

CHECKED = jsonschema.Draft202012Validator(SCHEMA)
BEGIN = datetime(2026, 11, 23, tzinfo=UTC)


class Clock:
    """A clock that is set by hand."""

    at = BEGIN

    def __call__(self) -> datetime:
        return self.at


@pytest.fixture
def store() -> Iterator[SqlStore]:
    store = TemporaryStore()
    yield store
    store.close()


class Reader:
    """Reads as the verb does."""

    def __init__(self, store: SqlStore, plan: ActionPlan) -> None:
        self.clock = Clock()
        self._store, self._plan = store, plan
        self.events = PlanEvents(store, plan.uuid, clock=self.clock)

    def __call__(self) -> list[tuple[int, str]]:
        self.events.subscribe()
        found = self.events.read(self._store.load_plan(self._plan.uuid))
        for event in found:
            CHECKED.validate(event)
            assert event["plan"] == self._plan.uuid
        return [(e["number"], e["data"].get("state", e["data"].get("verb"))) for e in found]


def test_without_kept_events_the_state_is_told_first(store: SqlStore) -> None:
    plan = new_plan("a")
    store.save_plan(plan)
    read = Reader(store, plan)
    assert read() == [(0, "RECOMMENDED")]
    assert read() == []
    store.move_plan(plan.uuid, PlanState.PENDING, now=BEGIN, history=entry("start"))
    assert read() == [(1, "start"), (2, "PENDING")]
    assert read() == []


def test_kept_events_are_told_from_the_first(store: SqlStore) -> None:
    plan = new_plan("a")
    store.subscribe("ops", now=BEGIN)
    store.save_plan(new_plan("b"), history=entry("create"))
    claim = claimed(store, plan)
    store.commit(plan.uuid, claim, [starts(plan.actions[0])], now=BEGIN)
    read = Reader(store, plan)
    assert [state for _, state in read()] == ["PENDING", "apply", "ONGOING", "ONGOING"]
    assert read() == []


def test_events_from_amid_a_run_are_followed_by_the_state_of_the_plan(store: SqlStore) -> None:
    plan = new_plan("a")
    claim = claimed(store, plan)
    store.subscribe("ops", now=BEGIN)
    store.commit(plan.uuid, claim, [starts(plan.actions[0])], now=BEGIN)
    read = Reader(store, plan)
    assert read() == [(1, "ONGOING")]
    assert read() == [(1, "ONGOING")]
    store.commit(plan.uuid, claim, [succeeds(plan.actions[0])], now=BEGIN)
    store.move_claimed(plan.uuid, claim, PlanState.SUCCEEDED, now=BEGIN)
    assert read() == [(2, "SUCCEEDED"), (3, "SUCCEEDED")]
    assert read() == []


def test_pages_follow_each_other(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "PAGE", 2)
    plan = new_plan("a")
    store.subscribe("ops", now=BEGIN)
    store.save_plan(plan, history=entry("create"))
    for verb in "bcde":
        store.add_history(plan.uuid, entry(verb))
        store.save_plan(new_plan("x"), history=entry("create"))
    read = Reader(store, plan)
    pages = [read() for _ in range(4)]
    assert [v for page in pages for _, v in page] == ["create", "RECOMMENDED", *"bcde"]
    assert [len(page) for page in pages] == [2, 2, 2, 0]
    assert not read.events.has_more


def test_the_subscription_is_prolonged_before_it_ends(store: SqlStore) -> None:
    plan = new_plan("a")
    store.save_plan(plan)
    read = Reader(store, plan)
    until = []
    for minutes in range(7):
        read.clock.at = BEGIN + timedelta(minutes=minutes)
        read()
        until += [s.until for s in store.subscriptions()]
    assert until == [BEGIN + LASTS] * 3 + [BEGIN + LASTS + timedelta(minutes=3)] * 3 + [
        BEGIN + LASTS + timedelta(minutes=6)
    ]


def test_after_a_pause_of_the_reader_the_state_is_told_again(store: SqlStore) -> None:
    """What happened meanwhile was not recorded."""
    plan = new_plan("a")
    store.save_plan(plan)
    read = Reader(store, plan)
    assert read() == [(0, "RECOMMENDED")]
    read.clock.at = BEGIN + 2 * LASTS
    store.move_plan(plan.uuid, PlanState.PENDING, now=read.clock.at)
    assert read() == [(0, "PENDING")]
    assert read() == []


def test_a_subscription_that_somebody_removes_hides_no_end(store: SqlStore) -> None:
    plan = new_plan("a")
    store.save_plan(plan)
    read = Reader(store, plan)
    read()
    assert store.unsubscribe("readers")
    store.move_plan(plan.uuid, PlanState.CANCELLED, now=BEGIN)
    assert read() == [(0, "CANCELLED")]
