# SPDX-License-Identifier: Apache-2.0
"""Which of several reasons to start nothing new is the one that is told."""

from __future__ import annotations

import pytest
from test_scheduler_faults import Faults, held
from test_scheduler_stories import CANCEL, PAUSE, action, skip

from applier.contracts import Report, Request
from applier.scheduling.scheduler import HaltReason
from applier.scheduling.verdict import OnFailure
from planner.plan.states import ActionState

TOLERANCES = [{"name": "compute", "nodes": ["1", "2"], "failed_nodes": 0}]


def two_running(**options) -> Faults:
    story = Faults(
        action("a", tokens=("node:1",)), action("b", tokens=("node:2",)), action("c"), **options
    )
    story.begin()
    return story


@pytest.mark.parametrize("state", ["FAILED", "UNKNOWN"])
def test_a_pause_after_a_failure_does_not_replace_a_cancel(state):
    story = two_running(max_workers=2, on_failure=OnFailure.PAUSE)
    story.turn(CANCEL)
    told = story.scheduler.halt
    story.turn(f"a {state}")
    assert story.scheduler.halt == told
    assert told.stopped is HaltReason.CANCELLED


def test_the_first_of_two_failures_is_the_reason_of_a_pause():
    story = two_running(on_failure=OnFailure.PAUSE)
    story.turn("a fails")
    story.turn("b fails")
    by = Request(verb="pause", who="on_failure = pause", why="a ended FAILED")
    assert story.scheduler.halt == (HaltReason.PAUSED, "paused because a ended FAILED", by)


def test_a_tolerance_that_is_exceeded_does_not_replace_a_pause():
    story = two_running(tolerances=TOLERANCES)
    story.turn(PAUSE)
    story.turn("a fails")
    assert story.scheduler.halt == (HaltReason.PAUSED, "paused by ann", PAUSE)


def test_a_cancel_replaces_a_pause_after_a_failure():
    story = two_running(max_workers=2, on_failure=OnFailure.PAUSE)
    story.turn("a fails")
    assert story.turn(CANCEL) == [
        "plan: ann enough",
        "c CANCELLED: ann enough",
        "stop b",
    ]
    assert story.scheduler.stopped is HaltReason.CANCELLED


def test_no_other_state_pauses():
    story = two_running(on_failure=OnFailure.PAUSE)
    report = Report(uuid="a", old=ActionState.ONGOING, state=ActionState.CANCELLED)
    story.scheduler.decide([report])
    assert story.scheduler.halt is None


def test_what_was_skipped_at_the_gates_is_not_looked_for_there_when_another_plan_takes_its_node():
    story = Faults(action("a"), action("b", tokens=("node:1",)), max_workers=1)
    story.begin()
    story.turn(skip("b"))
    assert story.turn(held_by_others=held("node:1")) == []
    assert story.turn("a") == []
    assert story.scheduler.done
