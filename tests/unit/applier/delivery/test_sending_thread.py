# SPDX-License-Identifier: Apache-2.0
"""A thread makes calls in order, and whoever waits for one that hangs goes on."""

from __future__ import annotations

import threading

import pytest

from applier.delivery.sending_thread import SendingThread


def test_calls_are_made_in_order_and_the_last_one_closes():
    made = []
    thread = SendingThread(lambda: made.append("closed"))
    for number in range(3):
        thread.call(lambda number=number: made.append(number), 30)
    thread.end(30)
    assert made == [0, 1, 2, "closed"]
    assert not thread.is_alive()


def test_an_error_comes_out_and_the_next_call_is_made():
    made = []
    thread = SendingThread(made.clear)
    with pytest.raises(ZeroDivisionError):
        thread.call(lambda: 1 / 0, 30)
    thread.call(lambda: made.append(1), 30)
    assert made == [1]
    thread.end(30)


def test_who_waits_for_a_call_that_hangs_goes_on_and_it_closes_later():
    go_on, closed = threading.Event(), threading.Event()
    thread = SendingThread(closed.set)
    with pytest.raises(TimeoutError):
        thread.call(go_on.wait, 0.01)
    thread.end(600)
    assert thread.is_alive()
    assert not closed.is_set()
    go_on.set()
    thread.join()
    assert closed.is_set()


def test_an_error_while_it_closes_is_none_of_the_callers():
    thread = SendingThread(lambda: 1 / 0)
    thread.end(30)
    assert not thread.is_alive()
