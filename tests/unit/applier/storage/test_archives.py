# SPDX-License-Identifier: Apache-2.0
"""What a plan of another record brings along is kept, also where its record did not know all."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta

import pytest

from applier.contracts import HistoryEntry
from applier.errors import PlanConflict
from applier.store.entries import PlanArchive
from applier.store.runs import Attempt
from applier.testing.sample_plans import MADE, new_plan
from applier.testing.temporary_store import TemporaryStore
from planner.plan.states import ActionState

FAILED = ActionState.FAILED
IMPORTED = HistoryEntry(verb="import", who="eve", at=MADE)


def test_an_attempt_of_which_no_end_is_known_ends_when_it_began() -> None:
    plan = new_plan("a")
    (action,) = plan.actions
    known = Attempt(1, MADE, ended_at=MADE + timedelta(minutes=1), state=FAILED)
    unknown = Attempt(2, MADE + timedelta(minutes=2), state=FAILED)
    archive = PlanArchive(plan, {action.uuid: [known, unknown]}, [], [])
    with closing(TemporaryStore()) as store:
        store.import_plan(archive, history=IMPORTED)
        kept = store.all_attempts(plan.uuid, most=0)[action.uuid]
    assert [one.ended_at for one in kept] == [known.ended_at, unknown.started_at]


def test_a_plan_that_is_on_record_is_not_imported_again() -> None:
    plan = new_plan("a")
    archive = PlanArchive(plan, {}, [], [])
    with closing(TemporaryStore()) as store:
        store.import_plan(archive, history=IMPORTED)
        with pytest.raises(PlanConflict, match="is already in the record, RECOMMENDED"):
            store.import_plan(archive, history=IMPORTED)
        assert len(store.history(plan.uuid)) == 1
