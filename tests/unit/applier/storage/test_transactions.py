# SPDX-License-Identifier: Apache-2.0
"""Several statements of a transaction: all of them or none."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import pytest
import sqlalchemy as sa
from sqlalchemy import bindparam

from applier.storage.connection import make_engine, parse
from applier.storage.transactions import Transactions, Unexpected, Write

services = sa.table("services", sa.column("name", sa.String), sa.column("state", sa.String))
INSERT = sa.insert(services).values(name=bindparam("name"), state="up")
STOP = sa.update(services).where(services.c.name == bindparam("name")).values(state="down")
STATES = sa.select(services.c.name, services.c.state).order_by(services.c.name)


@pytest.fixture
def begin(tmp_path):
    """Return a function that begins a transaction on a file with services "a" and "b"."""
    engine = make_engine(parse(f"sqlite:///{tmp_path}/file.db"))
    transactions = Transactions(engine)
    with engine.begin() as database:
        database.exec_driver_sql("CREATE TABLE services (name TEXT, state TEXT)")
    with transactions.begin("BEGIN") as transaction:
        assert transaction.write(INSERT, {"name": "a"}, {"name": "b"}) == 2
    yield partial(transactions.begin, "BEGIN")
    transactions.close()
    engine.dispose()


def test_a_block_that_raises_leaves_nothing(begin):
    with suppress(ValueError), begin() as transaction:
        transaction.write(INSERT, {"name": "c"})
        raise ValueError
    assert states(begin) == {"a": "up", "b": "up"}


def states(begin):
    with begin() as transaction:
        return {row["name"]: row["state"] for row in transaction.read(STATES)}


def test_all_that_changes_as_many_rows_as_required_is_written(begin):
    with begin() as transaction:
        transaction.write_all(Write(STOP, {"name": name}, 1) for name in "ab")
    assert states(begin) == {"a": "down", "b": "down"}


@pytest.mark.parametrize("changes", [0, 2])
def test_nothing_is_written_if_one_changes_another_number_of_rows(begin, changes):
    writes = [Write(STOP, {"name": "a"}, 1), Write(STOP, {"name": "b"}, changes)]
    with pytest.raises(Unexpected), begin() as transaction:
        transaction.write_all(writes)
    assert states(begin) == {"a": "up", "b": "up"}


def test_any_number_of_rows_is_accepted_where_none_is_required(begin):
    with begin() as transaction:
        transaction.write_all(Write(STOP, {"name": name}, None) for name in ("a", "none"))
    assert states(begin) == {"a": "down", "b": "up"}
