# SPDX-License-Identifier: Apache-2.0
"""Watcher's words for our states and messages, and back."""

from __future__ import annotations

import pytest

from applier.contracts import Report
from applier.watcher.states import (
    DOUBT,
    cut,
    message_of,
    not_run,
    plan_message,
    says_not_run,
    state_of,
    stopped_action,
    word,
)
from planner.plan.states import ActionState, PlanState

#: Watcher's states of actions, without those of removed ones.
WATCHER = {"PENDING", "ONGOING", "SUCCEEDED", "FAILED", "CANCELLED", "SKIPPED"}
#: The states that only a rollback gives to actions of another plan.
ROLLBACK = {ActionState.REVERTED, ActionState.REVERT_FAILED}


@pytest.mark.parametrize("state", sorted(set(ActionState) - ROLLBACK))
def test_every_state_has_a_word_of_watcher_and_comes_back(state):
    report = Report(uuid="a", old=ActionState.PENDING, state=state, message="why")
    last = state if state is ActionState.UNKNOWN else None
    assert word(state) in WATCHER
    assert state_of(word(state), message_of(report), last) is state


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
