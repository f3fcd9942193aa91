# SPDX-License-Identifier: Apache-2.0
"""A write is made once though the connection is lost; what was refused is tried again."""

from __future__ import annotations

import threading
from contextlib import closing, contextmanager

import pytest
from sample_plans import new_plan
from store_checks.running_plans import LATER, ME, NOW, claimed, ends, retries, starts

from applier.errors import StoreError
from applier.storage import database, database_errors
from applier.storage.database import Database
from applier.storage.database_errors import ConnectionLost, DatabaseLocked, Deadlock, Holder
from applier.storage.sql_store import SqlStore
from planner.plan.states import ActionState, PlanState


@pytest.fixture(params=["before", "after"])
def write_over_cut_line(request, monkeypatch):
    """Return a function that makes a write; the line is cut around the commit of its first try."""
    begin, cuts = Database.write, []

    @contextmanager
    def cut_at_its_end(database):
        with begin(database) as transaction:
            yield transaction
            if cuts == ["before"]:
                raise ConnectionLost(cuts.pop())
        if cuts:
            raise ConnectionLost(cuts.pop())

    monkeypatch.setattr(Database, "write", cut_at_its_end)
    monkeypatch.setattr(threading.Event, "wait", lambda *_: False)

    def cut():
        cuts.append(request.param)
        return request.param

    def write(call):
        """Make a write; make it again, at a later time, if it is refused."""
        cut()
        try:
            made = call(NOW)
        except StoreError:
            made = call(LATER)
        assert not cuts
        return made

    write.cut = cut
    return write


@pytest.mark.parametrize("patience_s", [0, 60])
def test_each_write_is_made_once(record_url, write_over_cut_line, patience_s):
    twice = write_over_cut_line
    with closing(SqlStore(record_url, patience_s=patience_s)) as store:
        plan = new_plan("a")
        (a,) = plan.actions
        uuid = plan.uuid
        store.save_plan(plan)
        twice(lambda now: store.move_plan(uuid, PlanState.PENDING, now=now))
        claim = twice(lambda now: store.claim_plan(uuid, ME, now=now))
        twice(lambda now: store.beat(uuid, claim, now=now))
        twice(lambda now: store.reserve(uuid, claim, ["node:a"], now=now))
        twice(lambda now: store.commit(uuid, claim, [starts(a)], now=now))
        again = [retries(a), starts(a)]  # a second time would fit as well
        twice(lambda now: store.commit(uuid, claim, again, now=now))
        assert [attempt.number for attempt in store.attempts(uuid, a.uuid)] == [1, 2]
        unknown = [ends(a, ActionState.UNKNOWN)]
        twice(lambda now: store.commit(uuid, claim, unknown, now=now))
        twice(lambda now: store.move_claimed(uuid, claim, PlanState.FAILED, now=now))
        failed = ActionState.FAILED
        twice(lambda now: store.settle_action(uuid, a.uuid, failed, now=now, message=""))
        twice(lambda now: store.resume_plan(uuid, [a.uuid], now=now))
        twice(lambda now: store.skip_action(uuid, a.uuid, now=now, message="by hand"))
        loaded = store.load_plan(uuid)
    assert loaded.state is PlanState.PENDING
    assert [(x.state, x.attempts) for x in loaded.actions] == [(ActionState.SKIPPED, 2)]


def test_a_save_says_that_the_connection_was_lost_and_is_not_made_again(
    record_url, write_over_cut_line
):
    with closing(SqlStore(record_url)) as store:
        when = write_over_cut_line.cut()
        with pytest.raises(StoreError):
            store.save_plan(new_plan("a"))
        assert len(store.list_plans()) == (when == "after")


def test_the_same_batch_for_another_reason_is_another_write(record_url):
    with closing(SqlStore(record_url)) as store:
        plan = new_plan("a")
        (a,) = plan.actions
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(a)], now=NOW)
        for _ in range(3):  # every attempt fails at the same moment
            store.commit(plan.uuid, claim, [retries(a), starts(a)], now=NOW)
        assert len(store.attempts(plan.uuid, a.uuid)) == 4


# What the database refused is tried again where that can help, and not for ever.


@pytest.fixture
def open_database(tmp_path, monkeypatch):
    """Return a function that opens a database, which does not sleep between two tries."""
    monkeypatch.setattr(threading.Event, "wait", lambda *_: False)
    opened = []

    def open_with(patience_s, **options):
        url = f"sqlite:///{tmp_path}/plans.db"
        opened.append(SqlStore(url, patience_s=patience_s, **options))
        return opened[-1]._database

    yield open_with
    for store in opened:
        store.close()


class Refusing:
    """Raises the errors one after the other, then returns "done"."""

    def __init__(self, *errors):
        self.errors, self.calls = list(errors), 0

    def __call__(self):
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


def test_a_lost_connection_is_tried_again_for_as_long_as_the_patience_lasts(open_database):
    what = Refusing(ConnectionLost(), ConnectionLost())
    assert open_database(patience_s=60).tried(what) == "done"
    assert what.calls == 3


@pytest.mark.parametrize(("patience_s", "lost_too"), [(0, True), (60, False)])
def test_a_lost_connection_is_an_error_at_once_without_patience(
    open_database, patience_s, lost_too
):
    what = Refusing(ConnectionLost())
    with pytest.raises(StoreError):
        open_database(patience_s).tried(what, lost_too=lost_too)
    assert what.calls == 1


def test_a_deadlock_is_tried_again_without_patience_but_not_for_ever(open_database):
    opened = open_database(patience_s=0)
    often = Refusing(*[Deadlock()] * (database.DEADLOCK_TRIES - 1))
    assert opened.tried(often, lost_too=False) == "done"
    too_often = Refusing(*[Deadlock()] * database.DEADLOCK_TRIES)
    with pytest.raises(StoreError):
        opened.tried(too_often)
    assert too_often.calls == database.DEADLOCK_TRIES


def test_a_closed_database_waits_for_nothing(open_database):
    opened = open_database(patience_s=60)
    opened.close()
    what = Refusing(ConnectionLost())
    with pytest.raises(StoreError):
        opened.tried(what)
    assert what.calls == 1


@pytest.mark.parametrize(
    ("holder", "busy_timeout_s", "goes_on"),
    [
        (Holder(7, "another applier", stopped=False), 60, True),
        (None, 60, True),
        (Holder(7, "another applier", stopped=True), 60, False),
        (None, database_errors.SOON_S, False),  # the driver has waited for as long already
    ],
)
def test_a_file_that_another_writes_to_is_waited_for_unless_that_one_is_stopped(
    open_database, monkeypatch, holder, busy_timeout_s, goes_on
):
    monkeypatch.setattr(database_errors, "lock_holder", lambda _url: holder)
    opened = open_database(patience_s=0, busy_timeout_s=busy_timeout_s)
    what = Refusing(DatabaseLocked(), DatabaseLocked())
    if goes_on:
        assert opened.tried(what, lost_too=False) == "done"
    else:
        with pytest.raises(StoreError):
            opened.tried(what)
    assert what.calls == (3 if goes_on else 1)


def test_the_pauses_between_two_tries_grow_to_one_second(open_database, monkeypatch):
    opened, pauses = open_database(patience_s=60), []
    monkeypatch.setattr(opened._closed, "wait", pauses.append)
    opened.tried(Refusing(*[ConnectionLost()] * 7))
    assert pauses == pytest.approx([0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0])
