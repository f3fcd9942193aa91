# SPDX-License-Identifier: Apache-2.0
"""Databases of their own for tests that talk to a server: made with a random name, dropped again.

``ACTIONPLAN_TEST_POSTGRESQL`` and ``ACTIONPLAN_TEST_MYSQL`` hold the URLs of databases whose user
may create others. A server that is not there skips the test, and fails it where ``CI`` is set.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from uuid import uuid4

import pytest
import sqlalchemy as sa

from applier.errors import StoreError
from applier.storage import schema_version
from applier.storage.connection import make_engine, parse
from applier.storage.refusals import translate_errors
from applier.storage.tables import metadata, turn

POSTGRESQL = "postgresql://postgres@127.0.0.1/postgres"
MYSQL = "mysql://root@127.0.0.1/test"


@contextmanager
def scratch_database(server: str) -> Iterator[str]:
    """Make a database on the server of a URL, yield its URL, drop it; raises StoreError."""
    url = parse(server)
    name = f"actionplan_test_{uuid4().hex}"
    engine = make_engine(url).execution_options(isolation_level="AUTOCOMMIT")
    force = " WITH (FORCE)" if url.get_backend_name() == "postgresql" else ""
    try:
        with translate_errors(url), engine.connect() as database:
            database.execute(sa.text(f"CREATE DATABASE {name}"))
        try:
            yield url.set(database=name).render_as_string(hide_password=False)
        finally:
            with translate_errors(url), engine.connect() as database:
                database.execute(sa.text(f"DROP DATABASE {name}{force}"))
    finally:
        engine.dispose()


def database_for_tests(variable: str, default: str) -> Iterator[str]:
    """Yield the URL of a new database on the server that a variable names, or skip the test."""
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
    engine = make_engine(parse(url))
    with engine.begin() as database:
        for table in reversed(metadata.sorted_tables):
            if table is not turn:
                database.execute(sa.delete(table))
        database.execute(sa.update(turn).values(events=0, events_deleted=0))
    engine.dispose()
