# SPDX-License-Identifier: Apache-2.0
"""A page is read at once, and row by row only where a row is damaged."""

from __future__ import annotations

from contextlib import closing

import pytest

from applier.store.pages import Page
from applier.testing.sample_plans import new_plan
from applier.testing.temporary_store import TemporaryStore


def test_a_page_without_damage_is_not_read_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(TemporaryStore()) as store:
        store.save_plan(new_plan("a", "b"))
        monkeypatch.delattr("applier.storage.pages.Pages._head")
        assert store.plan_heads(Page(limit=9))
