# SPDX-License-Identifier: Apache-2.0
"""Watcher's words for our states and messages, and back."""

from __future__ import annotations

from datetime import datetime
from types import SimpleNamespace

import pytest

from applier.contracts import Report
from applier.errors import ActionNotFound, PlanConflict
from applier.notifications.watcher import action_word
from applier.watcher.states import (
    DOUBT,
    ReportBatch,
    changes,
    cut,
    message_of,
    not_run,
    plan_message,
    says_not_run,
    state_of,
    stopped_action,
)
from planner.plan.states import ActionState, Outcome, PlanState

#: Watcher's states of actions, without those of removed ones.
WATCHER = {"PENDING", "ONGOING", "SUCCEEDED", "FAILED", "CANCELLED", "SKIPPED"}
#: The states that only a rollback gives to actions of another plan.
ROLLBACK = {ActionState.REVERTED, ActionState.REVERT_FAILED}


@pytest.mark.parametrize("state", sorted(set(ActionState) - ROLLBACK))
def test_every_state_has_a_word_of_watcher_and_comes_back(state):
    report = Report(uuid="a", old=ActionState.PENDING, state=state, message="why")
    last = state if state is ActionState.UNKNOWN else None
    assert action_word(state) in WATCHER
    assert state_of(action_word(state), message_of(report), last) is state


@pytest.mark.parametrize("reason", ["", "not run", "x" * 300, "a\0\N{GRINNING FACE}", "one\ntwo"])
def test_the_message_of_what_was_not_run_is_known_again(reason):
    assert says_not_run(not_run(reason))
    assert state_of("CANCELLED", not_run(reason), None) is ActionState.FAILED_DEPENDENCIES


@pytest.mark.parametrize(
    "message", [None, "", "not run", "was not run: ", DOUBT, stopped_action("host")]
)
def test_other_messages_are_of_actions_that_were_cancelled(message):
    assert not says_not_run(message)
    assert state_of("CANCELLED", message, None) is ActionState.CANCELLED


def test_an_action_that_watcher_aborts_still_runs():
    assert state_of("CANCELLING", None, None) is ActionState.ONGOING


def test_an_action_in_doubt_says_so():
    report = Report(
        uuid="a", old=ActionState.ONGOING, state=ActionState.UNKNOWN, message="settle it by ..."
    )
    assert message_of(report) == DOUBT


@pytest.mark.parametrize("text", ["x" * 256, "\N{SNOWMAN}" * 400])
def test_a_message_fits_into_its_column(text):
    assert len(cut(text) or "") == 255


def test_characters_that_mariadb_refuses_in_watchers_tables_are_replaced():
    assert (
        cut("a\N{GRINNING FACE}\0b\ud800")
        == "a\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}b?"
    )


def test_plans_have_the_messages_of_watchers_handler():
    assert plan_message(PlanState.SUCCEEDED, "2 succeeded", skipped=False) is None
    assert plan_message(PlanState.CANCELLED, "cancelled", skipped=True) is None
    some = "One or more actions were skipped."
    assert plan_message(PlanState.SUCCEEDED, "1 skipped", skipped=True) == some
    assert plan_message(PlanState.FAILED, "1 failed", skipped=True) == some
    assert plan_message(PlanState.FAILED, "1 failed", skipped=False) == "1 failed"


# What reports change in the rows of actions and attempts.

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
