# SPDX-License-Identifier: Apache-2.0
"""Deliveries from a record in a SQLite file: several processes, trouble, and what is on record."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import partial
from unittest.mock import Mock

import pytest
from sample_plans import new_plan
from store_checks.event_checks import happen

from applier.delivery import delivery
from applier.delivery.delivery import EventDelivery
from applier.delivery.receivers import Away, EventRefused
from applier.storage.sql_store import SqlStore


class Receiver:
    """Notes the numbers of the events that it accepts."""

    name = "ops"

    def __init__(self):
        self.got, self.answer, self.at_end = [], None, None

    @contextmanager
    def opened(self):
        yield self.accept
        if self.at_end is not None:
            raise self.at_end

    def accept(self, event):
        if self.answer is not None:
            raise self.answer
        self.got.append(event["number"])


@pytest.fixture
def store(tmp_path):
    with closing(SqlStore(f"sqlite:///{tmp_path}/record")) as opened:
        yield opened


@pytest.fixture
def now(monkeypatch):
    """Seconds of the clock of deliveries, which stands until a test changes them."""
    seconds = [0.0]
    monkeypatch.setattr(delivery.time, "monotonic", lambda: seconds[0])
    return seconds


def deliver(store, receiver, holder="me"):
    return EventDelivery(
        store,
        receiver,
        holder=holder,
        give_up_s=86400,
        clock=partial(datetime.now, UTC),
        ending=threading.Event(),
    )


@pytest.fixture
def receiver():
    return Receiver()


@pytest.fixture
def mine(store, receiver, now):
    """Return a delivery that has subscribed."""
    found = deliver(store, receiver)
    found.step()
    return found


def test_one_that_has_ended_leaves_the_events_to_the_next_at_once(store, receiver, mine):
    mine._ending.wait = lambda _: mine._ending.set()
    mine.run()
    happen(store, 2)
    deliver(store, receiver, "next").step()
    assert receiver.got == [1, 2]


def test_events_arrive_once_and_in_order(store, monkeypatch):
    monkeypatch.setattr(delivery, "BATCH", 3)
    receiver = Receiver()
    mine = deliver(store, receiver)
    assert mine.step() == delivery.POLL_S
    happen(store, 7)
    assert mine.step() == 0.0
    assert mine.step() == 0.0
    assert mine.step() == delivery.POLL_S
    assert mine.step() == delivery.POLL_S
    assert receiver.got == list(range(1, 8))
    [found] = store.subscriptions()
    assert found.delivered == 7


def test_a_damaged_event_and_a_damaged_subscription_hold_up_no_other(store, tmp_path, caplog):
    receiver = Receiver()
    mine = deliver(store, receiver)
    store.subscribe("other", now=datetime.now(UTC))
    mine.step()
    happen(store, 4)
    with closing(sqlite3.connect(tmp_path / "record")) as database, database:
        database.execute("UPDATE actionplan_event SET data = '{' WHERE number = 2")
        database.execute("UPDATE actionplan_subscription SET away = '{' WHERE name = 'other'")
    mine.step()
    mine.step()
    assert receiver.got == [1, 3, 4]
    assert caplog.text.count("ops: event 2 is damaged: ") == 1


def test_a_second_process_waits_until_the_first_is_silent(store, now):
    first, second = Receiver(), Receiver()
    mine, yours = deliver(store, first), deliver(store, second, "you")
    mine.step()
    happen(store, 2)
    for _ in range(20):
        yours.step()
        now[0] += 5
        mine.step()
    assert (first.got, second.got) == ([1, 2], [])
    happen(store, 1)
    for _ in range(6):
        yours.step()
        now[0] += 5
    assert second.got == []
    yours.step()
    yours.step()
    assert second.got == [3]
    # The first one was only frozen: it finds out before it delivers what is new.
    happen(store, 1)
    for _ in range(2):
        assert mine.step() == delivery.POLL_S
    yours.step()
    assert (first.got, second.got) == ([1, 2], [3, 4])


def test_a_receiver_that_is_away_is_tried_again_later(store, receiver, mine, now):
    happen(store, 2)
    receiver.answer = Away("no route")
    mine.step()
    [found] = store.subscriptions()
    assert (found.delivered, found.away.tries, found.away.why) == (0, 1, "no route")
    receiver.answer = None
    mine.step()
    assert receiver.got == []
    now[0] += delivery.FIRST_DELAY_S
    mine.step()
    assert receiver.got == [1, 2]
    assert store.subscriptions()[0].away is None


def test_a_batch_that_fails_as_a_whole_is_delivered_again(store, receiver, mine, now):
    happen(store, 2)
    receiver.at_end = Away("disk full")
    mine.step()
    assert store.subscriptions()[0].delivered == 0
    receiver.at_end = None
    now[0] += delivery.FIRST_DELAY_S
    mine.step()
    assert receiver.got == [1, 2, 1, 2]
    assert store.subscriptions()[0].delivered == 2


def test_a_plan_that_is_refused_waits_and_others_go_on(store, receiver, mine, now):
    refused = happen(store, 2)
    receiver.answer = EventRefused("400")
    mine.step()
    receiver.answer = None
    happen(store, 1)
    mine.step()
    assert receiver.got == [3]
    [found] = store.subscriptions()
    assert list(found.held_back) == [refused]
    assert store.events_waiting(found) == 2
    assert [outbox.waiting for outbox in store.figures().outboxes] == [2]
    now[0] += delivery.FIRST_DELAY_S
    mine.step()
    mine.step()
    assert receiver.got == [3, 1, 2]
    assert store.subscriptions()[0].held_back == {}


def test_many_held_events_are_recorded_batch_by_batch(store, receiver, mine, now, monkeypatch):
    """Else a process that is killed now and then would never come to their end."""
    for _ in range(3):
        happen(store, 2)
    receiver.answer = EventRefused("400")
    mine.step()
    receiver.answer = None
    monkeypatch.setattr(delivery, "BATCH", 3)
    now[0] += delivery.FIRST_DELAY_S
    mine.step()
    assert receiver.got == [1, 2, 3]
    for _ in range(2):
        mine.step()
    assert receiver.got == [1, 2, 3, 4, 5, 6]
    mine.step()
    assert store.subscriptions()[0].held_back == {}


def test_held_events_that_take_long_come_from_one_process(store, now):
    first, second = Receiver(), Receiver()
    mine, yours = deliver(store, first), deliver(store, second, "you")
    mine.step()
    happen(store, 60)
    first.answer = EventRefused("400")
    mine.step()
    first.answer = None
    now[0] += delivery.FIRST_DELAY_S
    accept = first.accept

    def slowly(event):
        accept(event)
        now[0] += 1.0
        yours.step()

    first.accept = slowly
    while store.subscriptions()[0].held_back:
        mine.step()
    assert first.got == list(range(1, 61))
    assert second.got == []


def test_a_process_that_is_killed_in_a_batch_delivers_it_again(store, receiver, mine):
    happen(store, 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "record_delivery", Mock(side_effect=SystemExit))
        with pytest.raises(SystemExit):
            mine.step()
    assert receiver.got == [1, 2]
    again = deliver(store, receiver)  # the same holder: its restart
    again.step()
    assert receiver.got == [1, 2, 1, 2]


@contextmanager
def running(store, receiver):
    """Deliver in a thread; yields an event that is set when the receiver has accepted something."""
    ending, arrived, accept = threading.Event(), threading.Event(), receiver.accept
    mine = EventDelivery(
        store,
        receiver,
        holder="me",
        give_up_s=60,
        clock=partial(datetime.now, UTC),
        ending=ending,
    )

    def told(event):
        accept(event)
        arrived.set()

    receiver.accept = told
    thread = threading.Thread(target=mine.run)
    thread.start()
    try:
        while not store.subscriptions():
            thread.join(0.01)
        yield arrived
    finally:
        ending.set()
        thread.join()


def test_a_defect_of_a_receiver_is_logged_once_and_delivery_goes_on(store, monkeypatch, caplog):
    monkeypatch.setattr(delivery, "BEAT_S", 0.01)
    receiver, fails = Receiver(), [True, True]
    accept = receiver.accept

    def fail_first(event):
        if fails:
            fails.pop()
            raise ZeroDivisionError("a defect")
        accept(event)

    receiver.accept = fail_first
    with running(store, receiver) as arrived:
        store.save_plan(new_plan("a"))
        assert arrived.wait(120)
    assert receiver.got == [1]
    assert caplog.text.count("ops: events cannot be") == 1
    assert "ZeroDivisionError: a defect" in caplog.text
