# SPDX-License-Identifier: Apache-2.0
"""Connections that are kept between transactions: used again, given up, and closed in the end."""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import closing

import pytest

from applier.storage import database_errors, transactions
from applier.storage.connection import Connector, parse
from applier.storage.transactions import Transactions


@pytest.fixture
def connector(tmp_path):
    return Connector(parse(f"sqlite:///{tmp_path}/file.db"))


@pytest.fixture
def connections(connector):
    connections = Transactions(connector)
    yield connections
    connections.close()


def is_open(connection):
    try:
        connection.driver.total_changes  # noqa: B018 - asking is what raises
    except sqlite3.ProgrammingError:
        return False
    return True


def rolled_back(connections, error):
    connection = connections.begin("BEGIN")
    connections.roll_back(connection, error)
    return connection


def test_a_connection_is_used_again(connections):
    first = connections.begin("BEGIN")
    second = connections.begin("BEGIN")
    assert first.driver is not second.driver
    connections.commit(first)
    assert connections.begin("BEGIN") is first


def test_one_that_was_interrupted_is_not_used_again(connections):
    assert is_open(rolled_back(connections, ValueError()))
    broken = rolled_back(connections, KeyboardInterrupt())
    assert not is_open(broken)
    assert connections.begin("BEGIN").driver is not broken.driver


class Interrupted:
    """A cursor or connection of a driver whose user presses Ctrl-C."""

    def __init__(self, driver):
        self.close = driver.close

    def execute(self, _statement):
        raise KeyboardInterrupt

    commit = rollback = lambda self: self.execute("")


def test_an_interrupt_while_a_transaction_begins_or_ends_is_raised(connections):
    begins = connections.begin("BEGIN")
    connections.commit(begins._replace(cursor=Interrupted(begins.driver)))
    with pytest.raises(KeyboardInterrupt):
        connections.begin("BEGIN")
    ends = connections.begin("BEGIN")
    with pytest.raises(KeyboardInterrupt):
        connections.commit(ends._replace(driver=Interrupted(ends.driver)))
    assert (is_open(begins), is_open(ends)) == (False, False)


def test_an_error_of_the_driver_is_raised_as_a_refusal(connections):
    connection = connections.begin("BEGIN")
    with pytest.raises(database_errors.Duplicate) as raised:
        connections.roll_back(connection, sqlite3.IntegrityError("twice"))
    assert isinstance(raised.value.__cause__, sqlite3.IntegrityError)
    with pytest.raises(database_errors.Refused):
        connections.begin("BEGINNING")
    # It was kept all the same: nothing is wrong with it.
    assert connections.begin("BEGIN") is connection


def test_a_commit_that_is_refused_is_rolled_back(connections):
    connection = connections.begin("BEGIN")
    connection.cursor.execute("CREATE TABLE a (n PRIMARY KEY)")
    connection.cursor.execute("CREATE TABLE b (n REFERENCES a DEFERRABLE INITIALLY DEFERRED)")
    connections.commit(connection)
    connections.begin("BEGIN").cursor.execute("INSERT INTO b VALUES (1)")
    with pytest.raises(database_errors.Refused):  # only the commit finds that there is no such a
        connections.commit(connection)
    again = connections.begin("BEGIN")
    assert again is connection
    assert again.cursor.execute("SELECT count(*) FROM b").fetchone() == (0,)


def test_an_old_one_is_replaced(connections, monkeypatch):
    old = rolled_back(connections, ValueError())
    monkeypatch.setattr(transactions, "LONGEST_S", 0.0)
    assert connections.begin("BEGIN").driver is not old.driver
    assert not is_open(old)


def told_as_lost(error, *_):
    assert str(error) == "Cannot operate on a closed database."
    return database_errors.ConnectionLost(error)


def test_when_one_broke_the_others_are_not_used_again_either(connections, monkeypatch):
    other, broken = connections.begin("BEGIN"), connections.begin("BEGIN")
    for connection in (other, broken):  # the one that was kept last is used first
        connections.commit(connection)
    broken.driver.close()
    monkeypatch.setattr(transactions, "refusal", told_as_lost)
    assert connections.begin("BEGIN").driver not in (other.driver, broken.driver)
    assert not is_open(other)


def test_a_connection_that_cannot_be_opened_is_a_refusal(tmp_path):
    connections = Transactions(Connector(parse(f"sqlite:///{tmp_path}/missing/file.db")))
    with pytest.raises(database_errors.Refused) as raised:
        connections.begin("BEGIN")
    assert "unable to open" in str(raised.value.__cause__)


def test_closing_closes_those_in_use_when_they_come_back(connections):
    kept, used = connections.begin("BEGIN"), connections.begin("BEGIN")
    connections.commit(kept)
    connections.close()
    assert (is_open(kept), is_open(used)) == (False, True)
    connections.commit(used)
    assert not is_open(used)


def test_two_may_close_at_once(connections):
    class ClosedByOther(list):
        def pop(self):
            self.clear()  # by another thread, after this one has seen that it is not empty
            return super().pop()

    connection = rolled_back(connections, ValueError())
    connections._idle = ClosedByOther([connection])
    connections.close()
    assert connections._idle == []
    connection.driver.close()


def test_a_child_opens_connections_of_its_own(connections, monkeypatch):
    kept = rolled_back(connections, ValueError())
    monkeypatch.setattr(os, "getpid", lambda: -1)
    own = connections.begin("BEGIN")
    assert own.driver is not kept.driver
    connections.commit(own)
    assert connections.begin("BEGIN") is own
    assert is_open(kept)
    kept.driver.close()


def test_a_transaction_that_does_not_begin_lets_go_of_its_lock(connector):
    usual, lock = connector.dialect, threading.Lock()
    connector.dialect = usual._replace(begin_write="BEGINNING")
    with (
        closing(Transactions(connector)) as made,
        pytest.raises(database_errors.Refused),
        made.write(lock),
    ):
        raise AssertionError  # it has not begun
    connector.dialect = usual
    with closing(Transactions(connector)) as made:
        with made.write(lock):
            assert lock.locked()
        assert not lock.locked()
