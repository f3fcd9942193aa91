# SPDX-License-Identifier: Apache-2.0
"""Nop, and what it is asked to pretend; sleep and pause, which wait until they are stopped."""

from __future__ import annotations

import math
import threading

import pytest

from applier.actions.markers import Nop, Pause, Sleep
from applier.errors import ActionFailed, AlreadyDone
from planner.plan.states import Outcome


def test_a_nop_counts_as_changed_and_prints_its_message(context, printed, stop):
    assert Nop({"message": "half way"}, context).execute(stop) is Outcome.CHANGED
    assert printed == ["half way\n"]


def test_a_nop_fails_or_is_done_where_it_is_asked_to(context, printed, stop):
    with pytest.raises(ActionFailed, match="fail_pre_condition"):
        Nop({"fail_pre_condition": True}, context).precheck()
    with pytest.raises(AlreadyDone, match="skip_pre_condition"):
        Nop({"skip_pre_condition": True}, context).precheck()
    with pytest.raises(ActionFailed, match="fail_execute"):
        Nop({"fail_execute": True, "message": "before"}, context).execute(stop)
    with pytest.raises(ActionFailed, match="fail_post_condition"):
        Nop({"fail_post_condition": True, "message": "after"}, context).execute(stop)
    assert printed == ["after\n"]


class Recorder:
    """A stop that is never set, and keeps how long it was waited for."""

    def __init__(self) -> None:
        self.waited: list[float | None] = []

    def is_set(self) -> bool:
        return False

    def wait(self, timeout: float | None = None) -> bool:
        self.waited.append(timeout)
        return False


@pytest.mark.parametrize("duration", [0, 0.25, 5, 3600])
def test_they_wait_as_long_as_they_were_told(context, duration):
    stop = Recorder()
    assert Sleep({"duration": duration}, context).execute(stop) is Outcome.CHANGED
    assert stop.waited == [duration]
    assert Sleep.estimate({"duration": duration}) == duration
    assert Pause.waits_s({"seconds": duration}) == Pause.estimate({"seconds": duration}) == duration


def test_a_stop_ends_a_sleep_and_it_says_when(context):
    class StoppedMeanwhile(threading.Event):
        def wait(self, timeout=None):
            self.set()
            return super().wait(timeout)

    with pytest.raises(ActionFailed, match=r"^stopped after \d+\.\d s of 3600 s$"):
        Sleep({"duration": 3600}, context).execute(StoppedMeanwhile())


def test_a_duration_beyond_what_a_lock_can_wait_is_not_an_error(context, stop):
    stop.set()
    with pytest.raises(ActionFailed, match="stopped"):
        Sleep({"duration": 1e300}, context).execute(stop)


def test_a_pause_that_is_executed_waits_or_is_stopped(context, stop):
    assert Pause({"seconds": 0}, context).execute(stop) is Outcome.CHANGED
    stop.set()
    with pytest.raises(ActionFailed, match=r"^stopped after 0.0 s of 3600 s$"):
        Pause({"seconds": 3600}, context).execute(stop)


def test_their_words():
    assert Nop.describe({"message": "half\nway"}) == "nop: half way"
    assert Nop.describe({}) == "nop"
    assert Nop.touches({"resource_id": "6a1f"}) == ()
    assert Sleep.describe({"duration": 2.5}) == "sleep 2.5 s"
    assert Sleep.describe({"duration": 5}) == "sleep 5 s"
    assert Pause.describe({"seconds": 300}) == "pause for 300 s"
    assert not Pause.TAKES_WORKER


@pytest.mark.parametrize("number", [None, "5", True, -1, math.nan, math.inf])
def test_what_is_no_duration_has_no_estimate(number):
    assert Sleep.estimate({"duration": number}) is None
    assert Sleep.describe({"duration": number}) == "sleep"
    assert Pause.waits_s({"seconds": number}) is None
    assert Pause.describe({"seconds": number}) == "pause"
