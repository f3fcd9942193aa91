# SPDX-License-Identifier: Apache-2.0
"""What becomes of work that was cut off, as a table."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from applier.contracts import Verified
from applier.scheduling.resumption import decide, going_on, was_cut_off
from applier.store import Attempt
from planner.plan.model import Action
from planner.plan.states import ActionState, Outcome, Who, check

NOW = datetime(2026, 11, 21, tzinfo=UTC)


@pytest.mark.parametrize(
    ("state", "found", "rerun_safe", "new", "outcome"),
    [
        ("ONGOING", "done", True, "SUCCEEDED", "changed"),
        ("ONGOING", "done", False, "SUCCEEDED", "changed"),
        ("ONGOING", "not done", True, "PENDING", "error"),
        ("ONGOING", "not done", False, "PENDING", "error"),
        ("ONGOING", "in doubt", True, "PENDING", "error"),
        ("ONGOING", "in doubt", False, "UNKNOWN", None),
        ("UNKNOWN", "done", True, "SUCCEEDED", "changed"),
        ("UNKNOWN", "done", False, "SUCCEEDED", "changed"),
        ("UNKNOWN", "not done", True, "PENDING", "error"),
        ("UNKNOWN", "not done", False, "PENDING", "error"),
        ("UNKNOWN", "in doubt", True, "PENDING", "error"),
        ("UNKNOWN", "in doubt", False, None, None),
    ],
)
def test_what_was_cut_off_goes_on_as_its_plugin_found_it(state, found, rerun_safe, new, outcome):
    action = Action(uuid="a", action_type="nop", state=ActionState(state))
    report = decide(action, Verified(found), rerun_safe=rerun_safe)
    if new is None:
        assert report is None, "it stays as it is"
        return
    assert (report.uuid, report.old, report.state, report.outcome) == ("a", state, new, outcome)
    check("action", "a", report.old, report.state, Who.ENGINE)


def test_what_happened_to_its_command_is_said_unless_it_may_still_run():
    action = Action(uuid="a", action_type="nop", state=ActionState.ONGOING)
    told = {"lost": "its worker is gone", "rerun_safe": False}
    assert "its worker is gone" in decide(action, Verified.IN_DOUBT, **told).message
    message = decide(action, Verified.IN_DOUBT, **told, elsewhere="it may run on b").message
    assert "it may run on b" in message
    assert "its worker is gone" not in message


@pytest.mark.parametrize("found", list(Verified))
@pytest.mark.parametrize("rerun_safe", [False, True])
@pytest.mark.parametrize("state", ["ONGOING", "UNKNOWN"])
def test_what_may_still_run_elsewhere_never_runs_again(state, rerun_safe, found):
    action = Action(uuid="a", action_type="nop", state=ActionState(state))
    report = decide(action, found, rerun_safe=rerun_safe, elsewhere="it may run on b")
    if found is Verified.DONE:
        assert report.state is ActionState.SUCCEEDED
    elif state == "UNKNOWN":
        assert report is None
    else:
        assert (report.state, report.outcome) == (ActionState.UNKNOWN, None)
        assert "it may run on b" in report.message


def test_what_goes_on_is_ongoing_again():
    for state in ("ONGOING", "UNKNOWN"):
        report = going_on(Action(uuid="a", action_type="nop", state=ActionState(state)))
        assert (report and report.state) == (ActionState.ONGOING if state == "UNKNOWN" else None)


def test_what_is_in_doubt_says_what_an_operator_can_do():
    action = Action(uuid="a", name="move-web-1", action_type="nop", state=ActionState.ONGOING)
    report = decide(action, Verified.IN_DOUBT, rerun_safe=False)
    assert "actionplan action set PLAN move-web-1 --state" in report.message


@pytest.mark.parametrize(
    ("outcome", "cut_off"),
    [(None, True), (Outcome.ERROR, True), (Outcome.FAILED, False), (Outcome.CHANGED, False)],
)
def test_an_attempt_without_an_outcome_was_cut_off(outcome, cut_off):
    attempts = [
        Attempt(number=1, started_at=NOW, outcome=None),
        Attempt(number=2, started_at=NOW, outcome=outcome),
    ]
    assert was_cut_off(attempts) is cut_off
    assert not was_cut_off([])
