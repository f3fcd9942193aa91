# SPDX-License-Identifier: Apache-2.0
"""URLs of databases, and sentences for what they refuse."""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import closing
from urllib.parse import unquote

import pymysql
import pytest
from scratch_database import MYSQL, POSTGRESQL, connected

from applier.errors import StoreError
from applier.storage.connection import Connector, parse, shown
from applier.storage.database_errors import lost
from applier.storage.sql_store import SqlStore


@pytest.mark.parametrize(
    ("connection", "meant"),
    [
        ("sqlite:////var/plans.db", "sqlite:////var/plans.db"),
        ("sqlite:///plans.db", "sqlite:///plans.db"),
        ("postgresql+psycopg://h/d", "postgresql://h/d"),
        ("postgresql:///d?host=/run/pg&sslmode=require", None),
        ("postgresql://u@h:5433/d?connect_timeout=3", None),
        ("postgresql://u%40x:p%2F%40%3A@[::1]:5433/d", None),
        ("mysql+pymysql://h/d", "mysql://h/d"),
        ("mariadb://u:@h/d", "mysql://u:@h/d"),
    ],
)
def test_a_url_is_read_and_written_as_it_is(connection, meant):
    text = parse(connection).with_password()
    assert unquote(text) == unquote(meant or connection)
    assert parse(text) == parse(connection)


@pytest.mark.parametrize(
    ("connection", "sentence"),
    [
        ("", "sqlite:////PATH, postgresql://"),
        ("plans:secret@db", "connection is not sqlite:////PATH"),
        ("mysql://u:secret@h:port/d", "connection is not sqlite:////PATH"),
        ("oracle://u:secret@h/d", "'oracle' is not one of sqlite:////PATH"),
        ("postgresql+psycopg2://u:secret@h/d", "'psycopg2' is not the driver for postgresql"),
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


@pytest.mark.parametrize(
    ("connection", "module", "sentence"),
    [
        (POSTGRESQL, "psycopg", "the extra 'postgresql'"),
        (MYSQL, "pymysql", "the extra 'mysql'"),
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
            silent = url._replace(port=taken.getsockname()[1])
            for where, mends in ((silent, True), (url._replace(database="none_such"), False)):
                connector = Connector(where)
                with pytest.raises(connector.driver.Error) as refusal:
                    connector.open()
                assert lost(refusal.value) is mends


@pytest.mark.server
def test_a_database_that_does_not_exist_is_named(postgresql_url, mysql_url):
    for url in (parse(postgresql_url), parse(mysql_url)):
        missing = url._replace(database="actionplan_test_none").with_password()
        with pytest.raises(StoreError, match=r"actionplan_test_none.*create the database"):
            SqlStore(missing)


@pytest.mark.server
def test_a_wrong_password_is_said_without_it(mysql_url):
    url = parse(mysql_url)._replace(user="nobody", password="s3cret")  # noqa: S106
    with pytest.raises(StoreError, match=r"check \[actionplan\] connection") as refusal:
        SqlStore(url.with_password())
    assert "Access denied" in str(refusal.value)
    assert "s3cret" not in str(refusal.value)


@pytest.mark.slow
def test_what_the_driver_has_to_say_does_not_reach_the_terminal(tmp_path):
    # Without any configuration of logging, Python prints warnings.
    path = tmp_path / "plans.db"
    path.write_text("no database at all\n" * 100)
    script = (
        "from applier.storage.sql_store import SqlStore\n"
        "from applier.errors import StoreError\n"
        f"try:\n    SqlStore('sqlite:///{path}')\n"
        "except StoreError as error:\n    print(error)\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert ran.stdout.startswith(f"sqlite:///{path}: file is not a database; ")
    assert ran.stderr == ""


@pytest.mark.server
def test_an_option_that_a_driver_does_not_have_is_refused(postgresql_url, mysql_url):
    for url, wrong in (
        (postgresql_url, {"nonsense": "1"}),
        (mysql_url, {"nonsense": "1"}),
        (mysql_url, {"ssl_ca": "/no/such/file"}),
        (mysql_url, {"connect_timeout": "soon"}),
    ):
        with pytest.raises(StoreError) as refusal:
            SqlStore(parse(url)._replace(options=wrong).with_password())
        assert "\n" not in str(refusal.value)


def test_an_authority_means_that_the_server_needs_a_certificate_of_it(monkeypatch):
    """PyMySQL given ``ssl_ca`` alone would accept any; given a mapping with it, it does not."""
    given = []
    monkeypatch.setattr(pymysql, "connect", lambda **options: given.append(options))
    connector = Connector(parse("mysql://u@h/d?ssl_ca=x&ssl_verify_identity=false&read_timeout=9"))
    with pytest.raises(AttributeError):  # no connection to set up
        connector.open()
    assert given[0]["ssl"] == {"ca": "x", "check_hostname": False}
    assert given[0]["read_timeout"] == 9
    assert not [name for name in given[0] if name.startswith("ssl_")]


@pytest.mark.server
def test_an_update_counts_the_rows_that_it_has_found(postgresql_url, mysql_url):
    """Not only those that have other values after it: the store takes the number for a claim."""
    for url in (postgresql_url, mysql_url):
        with connected(url) as connection, closing(connection.cursor()) as cursor:
            cursor.execute("CREATE TEMPORARY TABLE t (a INTEGER)")
            cursor.execute("INSERT INTO t VALUES (1)")
            cursor.execute("UPDATE t SET a = 1")
            assert cursor.rowcount == 1
