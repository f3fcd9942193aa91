# SPDX-License-Identifier: Apache-2.0
"""What reports change in the rows of actions and attempts."""

from __future__ import annotations

from datetime import datetime
from types import SimpleNamespace

import pytest

from applier.contracts import Report
from applier.errors import ActionNotFound, PlanConflict
from applier.watcher.states import ReportBatch, changes, stopped_action
from planner.plan.states import ActionState, Outcome

S = ActionState
NOW = datetime(2026, 1, 2)  # noqa: DTZ001 - as in columns
BATCH = ReportBatch(plan="plan", claim="claim", now=NOW)


def row(state, message=None):
    return SimpleNamespace(action_type="nop", state=state, status_message=message)


def report(old, new, **facts):
    return Report(uuid="a", old=old, state=new, **facts)


def running(number=1, **values):
    begun = {"number": number, "ended_at": None, "state": None, "outcome": None}
    return {"a": {**begun, **values}}


def test_a_start_begins_the_next_attempt():
    made = changes(BATCH, [report(S.PENDING, S.ONGOING)], {"a": row("PENDING")}, running(2))
    assert made.actions["a"]["state"] == "ONGOING"
    [attempt] = made.attempts.values()
    assert (attempt["number"], attempt["started_under"], attempt["ended_at"]) == (3, "claim", None)


def test_an_end_is_written_into_the_attempt_that_runs():
    end = report(S.ONGOING, S.FAILED, outcome=Outcome.FAILED, message="no")
    made = changes(BATCH, [end], {"a": row("ONGOING")}, running())
    assert made.actions["a"]["status_message"] == "no"
    [attempt] = made.attempts.values()
    assert (attempt["number"], attempt["state"], attempt["outcome"]) == (1, "FAILED", "failed")
    assert (attempt["ended_at"], attempt["ended_under"]) == (NOW, "claim")


def test_what_did_not_run_has_no_attempt():
    end = report(S.PENDING, S.FAILED_DEPENDENCIES, message="needs b, which ended FAILED")
    made = changes(BATCH, [end], {"a": row("PENDING")}, {})
    assert made.actions["a"]["state"] == "CANCELLED"
    assert made.actions["a"]["status_message"] == "not run: needs b, which ended FAILED"
    assert made.attempts == {}


@pytest.mark.parametrize("new", [S.SUCCEEDED, S.FAILED])
def test_the_end_of_an_action_that_watcher_cancelled_meanwhile_counts(new):
    made = changes(BATCH, [report(S.ONGOING, new)], {"a": row("CANCELLED")}, running())
    assert made.actions["a"]["state"] == str(new)


def test_an_action_that_watcher_cancelled_is_not_started():
    with pytest.raises(PlanConflict, match=r"action a .* is CANCELLED, not"):
        changes(BATCH, [report(S.PENDING, S.ONGOING)], {"a": row("CANCELLED")}, {})


def test_an_action_is_started_that_watcher_cancelled_because_it_took_the_applier_for_dead():
    batch = ReportBatch(plan="plan", claim="claim", now=NOW, host="lab")
    alarm = {"a": row("CANCELLED", stopped_action("lab"))}
    made = changes(batch, [report(S.PENDING, S.ONGOING)], alarm, {})
    assert made.actions["a"]["state"] == "ONGOING"
    assert made.actions["a"]["status_message"] is None
    with pytest.raises(PlanConflict, match="is CANCELLED, not PENDING"):
        changes(BATCH, [report(S.PENDING, S.ONGOING)], alarm, {})


def test_an_action_of_another_plan_is_refused():
    with pytest.raises(ActionNotFound):
        changes(BATCH, [report(S.PENDING, S.ONGOING)], {}, {})
