# SPDX-License-Identifier: Apache-2.0
"""What the database refused is tried again where that can help, and not for ever."""

from __future__ import annotations

import threading

import pytest

from applier.errors import StoreError
from applier.storage import database, lock_holders
from applier.storage.lock_holders import Holder
from applier.storage.refusals import ConnectionLost, DatabaseLocked, Deadlock
from applier.storage.sql import SqlStore


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
        (None, lock_holders.SOON_S, False),  # the driver has waited for as long already
    ],
)
def test_a_file_that_another_writes_to_is_waited_for_unless_that_one_is_stopped(
    open_database, monkeypatch, holder, busy_timeout_s, goes_on
):
    monkeypatch.setattr(lock_holders, "of_record", lambda _url: holder)
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
