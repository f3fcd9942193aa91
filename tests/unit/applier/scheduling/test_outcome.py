# SPDX-License-Identifier: Apache-2.0
"""How the states of actions make the state of their plan."""

from __future__ import annotations

import pytest

from applier.scheduling.decisions import Halt, HaltReason
from applier.scheduling.final_state import fold
from planner.plan.states import ActionState as State


@pytest.mark.parametrize(
    ("states", "stopped", "expected", "message"),
    [
        ([], None, "SUCCEEDED", "nothing to do"),
        ([State.SUCCEEDED, State.SKIPPED], None, "SUCCEEDED", "1 succeeded, 1 skipped"),
        ([State.SUCCEEDED, State.FAILED], None, "FAILED", "1 succeeded, 1 failed"),
        (
            [State.FAILED, State.FAILED_DEPENDENCIES, State.FAILED_DEPENDENCIES],
            None,
            "FAILED",
            "1 failed, 2 not run because of it",
        ),
        ([State.UNKNOWN], None, "FAILED", "1 in doubt"),
        ([State.SUCCEEDED, State.CANCELLED], None, "FAILED", "1 succeeded, 1 cancelled"),
        (
            [State.SUCCEEDED, State.CANCELLED],
            HaltReason.CANCELLED,
            "CANCELLED",
            "1 succeeded, 1 cancelled",
        ),
        ([State.SUCCEEDED], HaltReason.CANCELLED, "CANCELLED", "1 succeeded"),
        ([State.FAILED, State.PENDING], HaltReason.PAUSED, "PAUSED", "1 failed, 1 left to do"),
        ([State.SUCCEEDED], HaltReason.PAUSED, "SUCCEEDED", "1 succeeded"),
        ([State.FAILED], HaltReason.PAUSED, "FAILED", "1 failed"),
    ],
)
def test_fold(states, stopped, expected, message):
    state, told = fold(states, stopped)
    assert (str(state), told) == (expected, message)


@pytest.mark.parametrize(
    ("states", "stopped", "state", "told"),
    [
        (
            [State.FAILED, State.CANCELLED],
            HaltReason.EXCEEDED,
            "FAILED",
            "why; 1 failed, 1 cancelled",
        ),
        ([State.PENDING], HaltReason.PAUSED, "PAUSED", "why; 1 left to do"),
        ([State.PENDING], HaltReason.HANDED_BACK, "PENDING", "why; 1 left to do"),
        ([State.SUCCEEDED], HaltReason.HANDED_BACK, "SUCCEEDED", "1 succeeded"),
        ([State.FAILED], HaltReason.PAUSED, "FAILED", "1 failed"),
    ],
)
def test_the_message_says_what_stopped_the_plan(states, stopped, state, told):
    assert fold(states, Halt(stopped, "why")) == (state, told)


def test_joins_are_not_counted_but_a_plan_waits_for_them():
    state, told = fold([State.SUCCEEDED], HaltReason.PAUSED, joins=[State.PENDING])
    assert (str(state), told) == ("PAUSED", "1 succeeded")
    assert fold([State.SUCCEEDED], joins=[State.SUCCEEDED] * 3)[1] == "1 succeeded"
