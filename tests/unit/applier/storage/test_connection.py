# SPDX-License-Identifier: Apache-2.0
"""URLs of databases, and sentences for what they refuse."""

from __future__ import annotations

import logging
import socket
import subprocess
import sys

import pytest
from scratch_database import MYSQL, POSTGRESQL
from sqlalchemy.exc import SQLAlchemyError

from applier.errors import ConfigurationError, StoreError
from applier.storage.connection import make_engine, parse, shown
from applier.storage.refusals import lost
from applier.storage.sql import SqlStore


@pytest.mark.parametrize(
    ("connection", "meant"),
    [
        ("sqlite:////var/plans.db", "sqlite:////var/plans.db"),
        ("postgresql://h/d", "postgresql+psycopg://h/d?connect_timeout=10"),
        ("postgresql://h/d?connect_timeout=3", "postgresql+psycopg://h/d?connect_timeout=3"),
        ("postgresql+psycopg2://h/d", "postgresql+psycopg2://h/d"),
        ("mysql://h/d", "mysql+pymysql://h/d?charset=utf8mb4"),
        ("mysql+pymysql://h/d", "mysql+pymysql://h/d?charset=utf8mb4"),
        ("mariadb://h/d", "mysql+pymysql://h/d?charset=utf8mb4"),
    ],
)
def test_a_url_is_completed(connection, meant):
    assert parse(connection).render_as_string(hide_password=False) == meant


@pytest.mark.parametrize(
    ("connection", "sentence"),
    [
        ("", "sqlite:////PATH, postgresql://"),
        ("plans:secret@db", "connection is not sqlite:////PATH"),
        ("mysql://u:secret@h:port/d", "connection is not sqlite:////PATH"),
        ("oracle://u:secret@h/d", "'oracle' is not one of sqlite:////PATH"),
        ("sqlite://", "name a file"),
        ("sqlite:///:memory:", "name a file"),
        ("sqlite:///file:x?mode=memory&uri=true", "name a file"),
    ],
)
def test_a_url_that_means_no_record_is_refused(connection, sentence):
    with pytest.raises(StoreError, match=sentence) as refusal:
        SqlStore(connection)
    assert "secret" not in str(refusal.value)


def test_a_password_is_never_shown():
    url = parse("mysql://plan:s%40cret@db:3307/plans?passwd=s@cret&ssl_ca=x")
    assert shown(url) == "mysql://plan:***@db:3307/plans"


def test_an_unknown_way_to_synchronise_is_refused():
    with pytest.raises(ConfigurationError, match="'OFF' is not FULL or NORMAL"):
        make_engine(parse("sqlite:////tmp/x"), synchronous="OFF")


@pytest.mark.parametrize(
    ("connection", "module", "sentence"),
    [
        (POSTGRESQL, "psycopg", "the extra 'postgresql'"),
        (MYSQL, "pymysql", "the extra 'mysql'"),
        ("postgresql+pg8000://h/d", "pg8000", "the driver 'pg8000' is not installed"),
        ("postgresql+nothing://h/d", "nothing", "the driver 'nothing' is not installed"),
    ],
)
def test_a_missing_driver_is_named_with_what_installs_it(connection, module, sentence, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(StoreError) as refusal:
        SqlStore(connection)
    assert sentence in str(refusal.value)


@pytest.mark.parametrize("backend", ["postgresql", "mysql"])
def test_a_server_that_is_not_there_is_said_in_one_sentence(backend, caplog):
    with socket.socket() as taken:  # bound and not listening: nothing answers here
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(StoreError) as refusal:
            SqlStore(f"{backend}://plan:secret@127.0.0.1:{port}/plans")
    text = str(refusal.value)
    assert text.startswith(f"{backend}://plan:***@127.0.0.1:{port}/plans: ")
    assert "refused" in text
    assert "is the server running?" in text
    assert "secret" not in text
    assert "\n" not in text
    assert caplog.records == []


@pytest.mark.server
def test_what_a_later_try_may_mend_is_told_from_what_it_may_not(postgresql_url, mysql_url):
    for url in (parse(postgresql_url), parse(mysql_url)):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            silent = url.set(port=taken.getsockname()[1])
            for where, mends in ((silent, True), (url.set(database="none_such"), False)):
                with pytest.raises(SQLAlchemyError) as refusal:
                    make_engine(where).connect()
                assert lost(refusal.value) is mends


@pytest.mark.server
def test_a_database_that_does_not_exist_is_named(postgresql_url, mysql_url):
    for url in (parse(postgresql_url), parse(mysql_url)):
        missing = url.set(database="actionplan_test_none").render_as_string(hide_password=False)
        with pytest.raises(StoreError, match=r"actionplan_test_none.*create the database"):
            SqlStore(missing)


@pytest.mark.server
def test_a_wrong_password_is_said_without_it(mysql_url):
    url = parse(mysql_url).set(username="nobody", password="s3cret")  # noqa: S106
    with pytest.raises(StoreError, match=r"check \[actionplan\] connection") as refusal:
        SqlStore(url.render_as_string(hide_password=False))
    assert "Access denied" in str(refusal.value)
    assert "s3cret" not in str(refusal.value)


@pytest.mark.slow
def test_what_the_driver_has_to_say_does_not_reach_the_terminal(tmp_path):
    # Without any configuration of logging, Python prints warnings.
    path = tmp_path / "plans.db"
    path.write_text("no database at all\n" * 100)
    script = (
        "from applier.storage.sql import SqlStore\n"
        "from applier.errors import StoreError\n"
        f"try:\n    SqlStore('sqlite:///{path}')\n"
        "except StoreError as error:\n    print(error)\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert ran.stdout.startswith(f"sqlite:///{path}: file is not a database; ")
    assert ran.stderr == ""


def test_a_level_that_somebody_chose_for_the_log_of_the_pool_is_kept():
    log = logging.getLogger("sqlalchemy.pool")
    before = log.level
    try:
        log.setLevel(logging.DEBUG)
        make_engine(parse("sqlite:////tmp/x")).dispose()
        assert log.level == logging.DEBUG
    finally:
        log.setLevel(before)
