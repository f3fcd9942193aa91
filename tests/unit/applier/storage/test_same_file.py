# SPDX-License-Identifier: Apache-2.0
"""A record whose file is removed, replaced or put back while a store uses it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from applier.errors import StoreError
from applier.storage.sql import SqlStore
from applier.testing.sample_plans import new_plan

GONE = "removed or replaced"


def test_nothing_is_written_to_a_file_that_has_lost_its_name(tmp_path: Path) -> None:
    record, aside = tmp_path / "record", tmp_path / "aside"
    with closing(SqlStore(f"sqlite:///{record}")) as store:
        plan = new_plan()
        store.save_plan(plan)
        record.rename(aside)
        for call in (lambda: store.save_plan(new_plan()), lambda: store.load_plan(plan.uuid)):
            with pytest.raises(StoreError, match=GONE):
                call()
        assert not record.exists(), "a new file would be another record"
        aside.rename(record)
        assert store.load_plan(plan.uuid).uuid == plan.uuid, "it was put back"


def test_another_file_of_that_name_is_another_record(tmp_path: Path) -> None:
    record = tmp_path / "record"
    with closing(SqlStore(f"sqlite:///{record}")) as store:
        store.list_plans()
        for end in ("", "-wal", "-shm"):
            Path(f"{record}{end}").unlink(missing_ok=True)
        with closing(SqlStore(f"sqlite:///{record}")) as other:
            other.save_plan(new_plan())
            with pytest.raises(StoreError, match=GONE):
                store.list_plans()
