# SPDX-License-Identifier: Apache-2.0
"""Sleep: fractions count, and a stop ends it."""

from __future__ import annotations

import math
import threading
import time

import pytest

from applier.actions.sleep import Sleep
from applier.errors import ActionFailed
from planner.states import Outcome


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
def test_it_waits_as_long_as_it_was_told(context, duration):
    stop = Recorder()
    assert Sleep({"duration": duration}, context).execute(stop) is Outcome.CHANGED
    assert stop.waited == [duration]


def test_fractions_of_a_second_count(context, stop):
    began = time.monotonic()
    Sleep({"duration": 0.05}, context).execute(stop)
    assert time.monotonic() - began >= 0.05


def test_a_stop_ends_it_and_it_says_when(context):
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


def test_its_estimate_is_its_duration():
    assert Sleep.estimate({"duration": 2.5}) == 2.5
    assert Sleep.describe({"duration": 2.5}) == "sleep 2.5 s"
    assert Sleep.describe({"duration": 5}) == "sleep 5 s"


@pytest.mark.parametrize("duration", [None, "5", True, -1, math.nan, math.inf])
def test_what_is_no_duration_has_no_estimate(duration):
    assert Sleep.estimate({"duration": duration}) is None
    assert Sleep.describe({"duration": duration}) == "sleep"
