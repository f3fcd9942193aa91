# SPDX-License-Identifier: Apache-2.0
"""A plan as rows: how texts are stored, shared and read back, also from another record."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from datetime import timedelta

import pytest
from sample_plans import MADE, new_plan
from temporary_store import TemporaryStore

from applier.contracts import HistoryEntry
from applier.errors import PlanConflict
from applier.storage import rows
from applier.storage.rows import storable
from applier.store.entries import PlanArchive
from applier.store.runs import Attempt
from planner.plan.model import Action
from planner.plan.states import ActionState


def test_a_shared_set_of_links_is_one_text():
    first = [f"uuid-{i}" for i in range(3)]
    members = [Action(uuid=uuid, action_type="nop") for uuid in first]
    # Equal sets count, not only the same object: each of these is another.
    members += [Action(uuid=c, action_type="nop", parents=tuple(first)) for c in "abc"]
    written = [row["parents"] for row in rows.action_rows(replace(new_plan(), actions=members))]
    assert json.loads(written[-1]) == first
    assert len({id(text) for text in written[3:]}) == 1


@pytest.mark.parametrize("field", ["parents", "needs", "triggers", "blocked_by"])
def test_a_link_to_what_is_not_there_cannot_be_read(field):
    plan = new_plan("a")
    (row,) = rows.action_rows(plan)
    links = [["gone", ["changed"]]] if field in ("triggers", "blocked_by") else ["gone"]
    damaged = {**row, field: json.dumps(links)}
    with pytest.raises(rows.UnreadableValue, match="a link to gone, which is no action"):
        rows.plan_of(rows.plan_row(plan), [damaged])


# What is stored of messages and output.

KEPT = 64 * 1024


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        (None, None),
        ("", ""),
        ("a" * KEPT, "a" * KEPT),
        ("b" + "a" * KEPT, "a" * KEPT),
        # The first character that is kept would be cut in two.
        ("é" + "a" * (KEPT - 1), "a" * (KEPT - 1)),
        ("\0\ud800\N{SNOWMAN}", "\N{REPLACEMENT CHARACTER}?\N{SNOWMAN}"),
    ],
)
def test_the_end_of_a_text_is_stored(text, stored):
    assert storable(text) == stored


# What a plan of another record brings along is kept, also where its record did not know all.

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
