# SPDX-License-Identifier: Apache-2.0
"""What is passed on from the record to the engine of a running plan, and what is not."""

from __future__ import annotations

import queue
from dataclasses import fields, replace
from datetime import UTC, datetime

import pytest
from sample_plans import new_plan

from applier.contracts import Request
from applier.engines.engine import ReservationsChanged
from applier.errors import ApplierError, DamagedRow, DamagedRows, StoreError
from applier.run.heartbeats_and_requests import RequestReader, can_follow
from applier.run.runner import Runner
from applier.store import Reservation

NOW = datetime(2026, 11, 21, tzinfo=UTC)
PLAN = replace(new_plan("a"), limits={"at-once:hosts": 2})
HELD = tuple(Reservation(resource=r, plan="other", name="drain", user="bob") for r in ("x", "y"))


class RecordedRequests:
    """A store that has requests and reservations, and fails when it is told to."""

    def __init__(self) -> None:
        self.asked: list[Request] = []
        self.held: tuple[Reservation, ...] = HELD
        self.times = 0
        self.error: ApplierError | None = None

    def requests(self, plan, after):
        assert plan == PLAN.uuid
        if self.error:
            raise self.error
        return [request for request in self.asked if request.number > after]

    def held_by_others(self, plan):
        assert plan == PLAN.uuid
        self.times += 1
        return list(self.held)

    def ask(self, verb: str, **fields) -> Request:
        number = len(self.asked) + 1
        self.asked.append(Request(verb=verb, who="ann", number=number, created_at=NOW, **fields))
        return self.asked[-1]


@pytest.fixture
def store():
    return RecordedRequests()


class Read:
    """What one reader after another turn puts into the queue, but for what only wakes."""

    def __init__(self, store, *, after=0, held_by_others=()) -> None:
        self.events: queue.SimpleQueue = queue.SimpleQueue()
        self.reader = RequestReader(store, PLAN, after=after, events=self.events)
        self.reader.held_by_others = held_by_others

    def turn(self) -> list:
        assert self.reader.poll() is True, "it goes on"
        found = []
        while not self.events.empty():
            found.append(self.events.get())
        assert found[-1] is None, "the engine is woken each time"
        return found[:-1]


def test_each_request_is_passed_on_once_in_its_order(store):
    first, second = store.ask("pause"), store.ask("cancel")
    read = Read(store)
    assert read.turn() == [first, second]
    assert read.turn() == []
    third = store.ask("skip", action="a")
    assert read.turn() == [third]


def test_requests_that_are_known_are_not_passed_on_again(store):
    store.ask("pause")
    second = store.ask("cancel")
    assert Read(store, after=1).turn() == [second]


def test_a_request_that_cannot_be_followed_is_passed_over_once(store, caplog):
    store.ask("dance")
    last = store.ask("abort", action="a")
    read = Read(store)
    assert read.turn() == [last]
    assert read.turn() == []
    assert caplog.text.count("unknown request 'dance'") == 1


def test_changes_of_what_others_hold_are_passed_on_until_nothing_is_left(store):
    read = Read(store, held_by_others=HELD)
    assert read.turn() == []
    store.held = HELD[1:]
    assert read.turn() == [ReservationsChanged(HELD[1:])]
    assert read.turn() == []
    store.held = ()
    assert read.turn() == [ReservationsChanged(())]
    asked = store.times
    assert read.turn() == []
    assert store.times == asked, "a plan that waits for nobody asks no more"


def test_who_waits_for_nobody_does_not_ask(store):
    assert Read(store).turn() == []
    assert store.times == 0


def test_a_record_that_cannot_be_read_is_read_again(store, caplog):
    store.ask("pause")
    read = Read(store)
    store.error = StoreError("away")
    assert read.turn() == []
    assert "could not be read: away" in caplog.text
    store.error = None
    assert [request.verb for request in read.turn()] == ["pause"]


def test_a_damaged_request_is_passed_over_once_and_the_others_are_followed(store, caplog):
    first = store.ask("pause")
    row = DamagedRow("request 2", "limits '{' is not JSON", {"number": 2, "verb": "limit"})
    read = Read(store)
    store.error = DamagedRows([row], [first])
    assert read.turn() == [first]
    store.error = None
    store.ask("limit")
    assert read.turn() == []
    assert caplog.text.count("request 2 is damaged: limits '{'") == 1


@pytest.mark.parametrize("verb", ["cancel", "pause", "skip", "abort", "limit"])
def test_a_running_plan_follows_what_operators_ask_for(verb):
    assert can_follow(PLAN, Request(verb=verb, who="ann"))


@pytest.mark.parametrize(
    ("limits", "followed"), [({"x": 1}, True), ({"x": 0}, False), ({"x": 1, "y": -1}, False)]
)
def test_a_limit_is_at_least_one(limits, followed, caplog):
    asked = Request(verb="limit", who="ann", limits=limits)
    assert can_follow(PLAN, asked) is followed
    assert ("a limit is at least 1" in caplog.text) is not followed


def test_what_a_plan_may_touch_at_once_is_not_raised_by_a_request_of_any_origin(caplog):
    for number, followed in ((9, False), (3, False), (2, True), (1, True)):
        asked = Request(verb="limit", who="ann", limits={"at-once:hosts": number})
        assert can_follow(PLAN, asked) is followed
    assert "{'at-once:hosts': 3}" in caplog.text


def test_an_operator_waits_about_a_second_until_a_running_plan_hears_of_it():
    defaults = {field.name: field.default for field in fields(Runner)}
    assert defaults["request_interval_s"] <= 1.0
