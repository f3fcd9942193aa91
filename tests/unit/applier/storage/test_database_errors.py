# SPDX-License-Identifier: Apache-2.0
"""What the error of a driver means: whether to try again, and what the user is told."""

from __future__ import annotations

import os
import sqlite3
from types import SimpleNamespace

import pytest

from applier.storage import database_errors
from applier.storage.connection import parse
from applier.storage.database_errors import (
    ConnectionLost,
    Damaged,
    DatabaseLocked,
    Deadlock,
    Duplicate,
    Refused,
    refusal,
    sentence,
)

URL = parse("sqlite:////var/lib/plans.db")


class OperationalError(Exception):
    """What PyMySQL raises: a number, and a text. psycopg has an attribute ``sqlstate``."""

    def __init__(self, *args, **attributes):
        super().__init__(*args)
        self.__dict__.update(attributes)


def of_sqlite(code, text="of SQLite"):
    error = sqlite3.OperationalError(text)
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (of_sqlite(5), DatabaseLocked),
        (of_sqlite(5 | 2 << 8), DatabaseLocked),  # SQLITE_BUSY_SNAPSHOT, a variant
        (of_sqlite(15, "locking protocol"), DatabaseLocked),
        (of_sqlite(10), Refused),
        (sqlite3.OperationalError("no such table: actionplan_attempt"), Damaged),
        (sqlite3.OperationalError("database disk image is malformed"), Damaged),
        (sqlite3.IntegrityError("UNIQUE constraint failed"), Duplicate),
        *[(OperationalError(n, "of MySQL"), Deadlock) for n in (1020, 1205, 1213)],
        *[(OperationalError("x", sqlstate=s), Deadlock) for s in ("40001", "40P01")],
        *[
            (OperationalError(n, "of MySQL"), ConnectionLost)
            for n in (1047, 1927, 2002, 2003, 2006, 2013)
        ],
        (OperationalError("connection timeout expired"), ConnectionLost),
        (OperationalError(1054, "Unknown column"), Refused),
    ],
    ids=repr,
)
def test_what_a_later_try_may_mend_is_told_from_what_it_may_not(error, kind):
    assert type(refusal(error, sqlite3)) is kind


def test_a_connection_that_its_driver_has_given_up_is_lost():
    """psycopg says so by ``closed``, PyMySQL by ``open``; the error may say anything."""
    for connection, kind in (
        (SimpleNamespace(closed=True), ConnectionLost),
        (SimpleNamespace(closed=False), Refused),
        (SimpleNamespace(open=False), ConnectionLost),
        (SimpleNamespace(open=True), Refused),
    ):
        assert type(refusal(OperationalError("x"), sqlite3, connection)) is kind


def test_no_password_is_told_wherever_the_url_has_it():
    for url in ("postgresql://u:s3cret@h/d", "mysql://u@h/d?passwd=s3cret&password=s3cret"):
        assert "s3cret" not in sentence(OperationalError("cannot use s3cret"), parse(url))


@pytest.mark.parametrize(
    ("room", "told"),
    [
        (64 * 1024 - 1, "the disk is full; "),
        (64 * 1024, "disk I/O error; "),
    ],
)
def test_a_disk_without_room_for_a_write_is_full_whatever_sqlite_says(monkeypatch, room, told):
    disk = SimpleNamespace(f_bavail=room, f_frsize=1)
    monkeypatch.setattr(os, "statvfs", {"/var/lib": disk}.__getitem__)
    assert f": {told}" in sentence(of_sqlite(10, "disk I/O error"), URL)


def test_a_disk_that_cannot_be_asked_does_not_count_as_full(monkeypatch):
    def gone(_folder):
        raise FileNotFoundError

    monkeypatch.setattr(os, "statvfs", gone)
    assert ": disk I/O error; " in sentence(of_sqlite(10, "disk I/O error"), URL)


def test_a_sentence_is_the_first_line_of_what_the_driver_says():
    error = OperationalError(1054, "Unknown column 'x'.\nLINE 1: SELECT x")
    assert sentence(error, URL) == "sqlite:////var/lib/plans.db: Unknown column 'x'"
    assert sentence(OperationalError(), URL).endswith(": OperationalError")
    assert sentence(OperationalError(" "), URL).endswith(": OperationalError")


def test_who_holds_a_locked_file_is_named_if_that_is_known(monkeypatch):
    error = of_sqlite(5, "database is locked")
    for holder, told in (("process 7 holds the lock", "process 7"), (None, "another process has")):
        monkeypatch.setattr(database_errors, "lock_holder", lambda _url, it=holder: it)
        assert f"database is locked; {told}" in sentence(error, URL)


def test_only_a_server_that_does_not_answer_may_not_be_running():
    hint = "is the server running?"
    assert hint in sentence(OperationalError(2003, "cannot connect"), URL)
    assert hint not in sentence(OperationalError(1054, "Unknown column"), URL)
