# SPDX-License-Identifier: Apache-2.0
"""Several statements of a transaction: all of them or none."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import pytest

from applier.storage.connection import Connector, parse
from applier.storage.transactions import Transactions, Unexpected, Write

INSERT = "INSERT INTO services (name, state) VALUES (:name, 'up')"
STOP = "UPDATE services SET state = 'down' WHERE name = :name"
STATES = "SELECT name, state FROM services ORDER BY name"


@pytest.fixture
def begin(tmp_path):
    """Return a function that begins a transaction on a file with services "a" and "b"."""
    transactions = Transactions(Connector(parse(f"sqlite:///{tmp_path}/file.db")))
    with transactions.begin("BEGIN") as transaction:
        transaction.write("CREATE TABLE services (name TEXT, state TEXT)", {})
        assert transaction.write(INSERT, {"name": "a"}, {"name": "b"}) == 2
    yield partial(transactions.begin, "BEGIN")
    transactions.close()


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
