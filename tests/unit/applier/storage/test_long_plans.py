# SPDX-License-Identifier: Apache-2.0
"""A long plan is shown by what the record keeps of it, as it is by its actions."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from scratch_database import run

from applier.cli import action_views
from applier.cli.reporters import plan_table
from applier.contracts import HistoryEntry
from applier.errors import DamagedRecord
from applier.operations import explanation
from applier.run.plan_cloud import overview_and_waves
from applier.storage import plans
from applier.storage.sql_store import SqlStore
from applier.store.entries import PlanArchive
from planner.plan.model import JOIN, Action, ActionPlan
from planner.plan.states import ActionState, PlanState

LONG = 70


@pytest.fixture
def store(tmp_path, monkeypatch) -> Iterator[SqlStore]:
    monkeypatch.setattr(plans, "LONG", LONG)
    url = f"sqlite:///{tmp_path}/plans.db"
    with closing(SqlStore(url, overview_of=overview_and_waves)) as store:
        yield store


def chain_of(length: int, *, state: ActionState = ActionState.PENDING) -> ActionPlan:
    """Return a plan of pairs of actions, each pair after a join after the pair before it."""
    actions: list[Action] = []
    for pair in range(length // 2):
        needs = (f"join-{pair - 1}",) if pair else ()
        first = Action(
            uuid=f"first-{pair}",
            action_type="shell",
            needs=needs,
            parents=needs,
            tokens=(f"node:{pair}",),
            estimate_s=float(pair),
            input_parameters={"address": "10.0.0.1"},
            state=state,
        )
        second = replace(first, uuid=f"second-{pair}", action_type="migrate")
        both = (first.uuid, second.uuid)
        actions += [
            first,
            second,
            Action(uuid=f"join-{pair}", action_type=JOIN, needs=both, parents=both),
        ]
    actions[0] = replace(actions[0], state=ActionState.PENDING)
    return ActionPlan(
        uuid="p" * 36, planner="weight", actions=tuple(actions), on_failure="continue"
    )


def shown(plan: ActionPlan, **how: object) -> str:
    out = io.StringIO()
    plan_table.show(plan, out, **how)  # type: ignore[arg-type]
    return out.getvalue()


def test_what_is_kept_shows_the_same_as_the_actions(store):
    for length, state in ((LONG, ActionState.SUCCEEDED), (200, ActionState.PENDING)):
        plan = replace(chain_of(length, state=state), uuid=f"{length:036d}")
        store.save_plan(plan)
        kept = store.long_plan(plan.uuid)
        assert kept is not None
        assert not kept.plan.actions
        text = shown(kept.plan, kept=kept)
        assert text == shown(store.load_plan(plan.uuid))
        assert "except by shell" in text
        assert f"{length} actions in {length // 2} waves" in text


def test_an_imported_plan_keeps_the_same(store):
    plan = chain_of(LONG)
    entry = HistoryEntry(verb="import", who="ada", at=datetime(2026, 1, 2, tzinfo=UTC))
    store.import_plan(PlanArchive(plan, {}, [], []), history=entry)
    kept = store.long_plan(plan.uuid)
    assert kept is not None
    assert shown(kept.plan, kept=kept) == shown(plan)


def test_nothing_is_kept_of_a_plan_that_is_not_long(store):
    plan = chain_of(LONG // 2)
    store.save_plan(plan)
    assert store.long_plan(plan.uuid) is None


def test_one_action_is_told_of_by_a_part_until_a_forecast_is_asked_for(store, monkeypatch):
    plan = chain_of(LONG)
    store.save_plan(plan)
    monkeypatch.setattr(store, "load_plan", lambda _: pytest.fail("the whole plan was loaded"))
    part, action, _ = action_views.described_by(store, plan.uuid, "first-1")
    whole = list(action_views.described(plan, action, [], 100))
    assert list(action_views.described(part, action, [], 100)) == whole
    told = explanation.explained(SimpleNamespace(plans=store), part, action, None)
    assert str(PlanState.RECOMMENDED) in told[1]
    assert "first-0, second-0" in told[2]
    assert f"all {LONG} actions" in told[3]


def test_a_damaged_overview_is_refused(store, tmp_path):
    plan = chain_of(LONG)
    store.save_plan(plan)
    damage = "UPDATE actionplan_plan SET overview = '{\"actions\": 1}'"
    run(f"sqlite:///{tmp_path}/plans.db", damage)
    with pytest.raises(DamagedRecord, match="overview"):
        store.long_plan(plan.uuid)
