# SPDX-License-Identifier: Apache-2.0
"""Timers by a clock that the test moves."""

from __future__ import annotations

import pytest

from applier.engines.attempts_in_progress import Timer, Timers

A, B, C = Timer("delay", "a"), Timer("limit", "a"), Timer("delay", "c")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def timers(clock):
    return Timers(clock)


def test_without_a_timer_there_is_nothing_to_wait_for(timers):
    assert timers.left_s() is None
    assert timers.due() == []


def test_they_are_due_in_the_order_of_their_times(timers, clock):
    timers.set(A, 5)
    timers.set(B, 2)
    timers.set(C, 2)
    assert timers.left_s() == 2
    clock.now += 1
    assert timers.left_s() == 1
    assert timers.due() == []
    clock.now += 1
    assert timers.due() == [B, C]
    assert timers.left_s() == 3
    clock.now += 10
    assert timers.left_s() == 0, "it is late"
    assert timers.due() == [A]
    assert timers.due() == []


def test_what_is_dropped_is_never_due(timers, clock):
    timers.set(A, 1)
    timers.set(B, 2)
    assert timers.drop(A)
    assert not timers.drop(A)
    assert timers.left_s() == 2
    clock.now += 2
    assert timers.due() == [B]
    assert not timers.drop(B)


@pytest.mark.parametrize(("first", "then"), [(1, 5), (5, 1)])
def test_what_is_set_again_is_due_at_the_later_request_only(timers, clock, first, then):
    timers.set(A, first)
    timers.set(A, then)
    assert timers.left_s() == then
    clock.now += then
    assert timers.due() == [A]
    clock.now += first
    assert timers.due() == []
    assert timers.left_s() is None
