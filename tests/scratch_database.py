# SPDX-License-Identifier: Apache-2.0
"""Databases of their own for tests that talk to a server: made with a random name, dropped again.

``ACTIONPLAN_TEST_POSTGRESQL`` and ``ACTIONPLAN_TEST_MYSQL`` hold the URLs of databases whose user
may create others. A server that is not there skips the test, and fails it where ``CI`` is set.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any
from uuid import uuid4

import pytest

from applier.errors import StoreError
from applier.storage import schema_version
from applier.storage.connection import Connector, parse
from applier.storage.schema import TABLES

POSTGRESQL = "postgresql://postgres@127.0.0.1/postgres"
MYSQL = "mysql://root@127.0.0.1/test"
#: The variable that names a server, and the server without it, by kind.
SERVERS = {
    "postgresql": ("ACTIONPLAN_TEST_POSTGRESQL", POSTGRESQL),
    "mysql": ("ACTIONPLAN_TEST_MYSQL", MYSQL),
}
#: Lets a connection delete and insert rows to which others refer.
ALONE = {
    "sqlite": "PRAGMA foreign_keys = OFF",
    "mysql": "SET foreign_key_checks = 0",
    "postgresql": "SET session_replication_role = replica",
}


def connected(url: str) -> closing[Any]:
    """Return a context manager for a new connection, on which each statement is committed."""
    return closing(Connector(parse(url)).open())


def run(url: str, *statements: str) -> list[Any]:
    """Run statements that foreign keys do not refuse; return the rows of the last one.

    In place of a row with one column, its value is returned.
    """
    with connected(url) as connection, closing(connection.cursor()) as cursor:
        cursor.execute(ALONE[parse(url).kind])
        for statement in statements:
            cursor.execute(statement)
        rows = cursor.fetchall() if cursor.description else ()
    return [row[0] if len(row) == 1 else row for row in rows]


@contextmanager
def scratch_database(server: str) -> Iterator[str]:
    """Make a database on the server of a URL, yield its URL, drop it; raises StoreError."""
    url = parse(server)
    name = f"actionplan_test_{uuid4().hex}"
    force = " WITH (FORCE)" if url.kind == "postgresql" else ""
    try:
        run(server, f"CREATE DATABASE {name}")
    except Connector(url).driver.Error as error:
        raise StoreError(f"{server}: {error}") from error
    try:
        yield url._replace(database=name).with_password()
    finally:
        run(server, f"DROP DATABASE {name}{force}")


@contextmanager
def database_for_tests(kind: str = "postgresql") -> Iterator[str]:
    """Yield the URL of a new database on a server of a kind, or skip the test."""
    variable, default = SERVERS[kind]
    with ExitStack() as scratch:
        try:
            url = scratch.enter_context(scratch_database(os.environ.get(variable, default)))
        except StoreError as error:
            say = pytest.fail if os.environ.get("CI") else pytest.skip
            say(f"{error} (set {variable})")
        yield url


def empty_record_on(url: str) -> None:
    """Make the tables of a record on a server, or empty those that are there."""
    schema_version.upgrade(url)
    tables = (name for name in TABLES if name != "actionplan_turn")
    counted = "UPDATE actionplan_turn SET events = 0, events_deleted = 0"
    run(url, *(f"DELETE FROM {name}" for name in tables), counted)
