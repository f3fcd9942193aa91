# SPDX-License-Identifier: Apache-2.0
"""A copy that does not fit on the disk is no copy; what SQLite finds wrong is told by the check."""

from __future__ import annotations

import resource
import sqlite3
from contextlib import closing

import pytest

from applier.errors import StoreError
from applier.storage.backup import backup
from applier.storage.record_check import check
from applier.storage.sql import SqlStore
from applier.testing.sample_plans import new_plan


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "plans.db"
    with closing(SqlStore(f"sqlite:///{path}")) as store:
        store.save_plan(new_plan("a"))
    return path


def test_a_copy_that_does_not_fit_on_the_disk_is_refused_and_leaves_nothing(path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, limits[1]))
    try:
        with pytest.raises(StoreError, match=r"no copy was made: .*; free some space"):
            backup(f"sqlite:///{path}", str(path.with_name("copy.db")))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert all(file.name.startswith(path.name) for file in path.parent.iterdir())


def test_pages_that_belong_to_nothing_are_told(path):
    assert check(f"sqlite:///{path}").problems == []
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA writable_schema = ON")
        database.execute("DELETE FROM sqlite_master WHERE name = 'ix_actionplan_plan_state'")
        database.commit()
    found = [it for it in check(f"sqlite:///{path}").problems if it.startswith("integrity: ")]
    assert len(found) == 1
    assert "never used" in found[0]
