# SPDX-License-Identifier: Apache-2.0
"""Pause: like a sleep, and in nobody's way."""

from __future__ import annotations

import pytest

from applier.actions.pause import Pause
from applier.errors import ActionFailed
from planner.states import Outcome


@pytest.mark.parametrize("seconds", [0, 5, 0.25])
def test_it_says_for_how_long_it_waits(seconds):
    assert Pause.waits_s({"seconds": seconds}) == Pause.estimate({"seconds": seconds}) == seconds


@pytest.mark.parametrize("seconds", [None, True, -1, float("nan"), float("inf"), "5"])
def test_what_is_no_number_of_seconds_says_nothing(seconds):
    assert Pause.waits_s({"seconds": seconds}) is None
    assert Pause.describe({"seconds": seconds}) == "pause"


def test_its_words():
    assert Pause.describe({"seconds": 300}) == "pause for 300 s"
    assert not Pause.TAKES_WORKER


def test_executed_it_waits_or_is_stopped(context, stop):
    assert Pause({"seconds": 0}, context).execute(stop) is Outcome.CHANGED
    stop.set()
    with pytest.raises(ActionFailed, match="stopped before 3600 s were over"):
        Pause({"seconds": 3600}, context).execute(stop)
