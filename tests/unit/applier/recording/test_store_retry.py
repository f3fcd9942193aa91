# SPDX-License-Identifier: Apache-2.0
"""Writes are tried again, with growing delays, until the store is back or patience ends."""

from __future__ import annotations

import pytest

from applier.errors import DamagedRecord, PlanConflict, StoreError
from applier.recording.recorder import StoreRetry

CONFLICT = PlanConflict("plan", "ONGOING", "the row has changed")


class Store:
    """Gives these answers, one after another; time passes only while it is waited for."""

    def __init__(self, *answers) -> None:
        self.answers, self.now, self.waited = list(answers), 0.0, []

    def attempt(self):
        answer = self.answers.pop(0)
        if answer is not None:
            raise answer

    def wait(self, seconds):
        self.waited.append(seconds)
        self.now += seconds

    def write(self, is_written=lambda: False, patience_s=100.0):
        StoreRetry(patience_s, lambda: self.now).write(self.attempt, is_written, self.wait)


@pytest.fixture
def away():
    return StoreError("connection refused")


def test_delays_grow_up_to_the_longest(away, caplog):
    store = Store(*[away] * 10, None)
    store.write()
    assert store.waited[:3] == [0.05, 0.1, 0.2]
    assert store.waited[-1] == 5.0


def test_when_patience_ends_the_error_comes_out(away, caplog):
    store = Store(*[away] * 1000)
    with pytest.raises(StoreError, match="connection refused"):
        store.write()
    assert store.now == pytest.approx(100.0)


def test_a_part_of_the_record_that_is_missing_for_a_while_is_waited_for(caplog):
    missing = DamagedRecord("the record", ["no such table"])
    Store(missing, missing, None).write()
    with pytest.raises(StoreError, match="no such table"):
        Store(*[missing] * 1000).write()


def test_without_patience_the_first_error_comes_out(away):
    store = Store(away, None)
    with pytest.raises(StoreError):
        store.write(patience_s=0.0)
    assert store.waited == []


def test_a_refusal_at_first_is_a_refusal():
    with pytest.raises(PlanConflict):
        Store(CONFLICT).write(is_written=lambda: True)


@pytest.mark.parametrize("written", [True, False])
def test_a_refusal_after_an_error_may_be_our_own_write(written, away, caplog):
    store = Store(away, CONFLICT)
    if written:
        store.write(is_written=lambda: True)
    else:
        with pytest.raises(PlanConflict):
            store.write(is_written=lambda: False)


def test_a_store_that_goes_away_while_it_is_asked_is_asked_again(away, caplog):
    asked = [away, True]

    def is_written():
        answer = asked.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    Store(away, CONFLICT, CONFLICT).write(is_written=is_written)
    assert asked == []


def test_the_first_failure_and_the_return_are_warnings_and_what_is_between_is_not(away, caplog):
    caplog.set_level("INFO")
    Store(away, away, away, None).write()
    assert [(r.levelname, "cannot" in r.getMessage()) for r in caplog.records] == [
        ("WARNING", True),
        ("INFO", True),
        ("INFO", True),
        ("WARNING", False),
    ]
    assert caplog.records[-1].getMessage() == "The record can be reached again"


def test_a_write_that_succeeds_at_once_waits_for_nothing_and_logs_nothing(caplog):
    caplog.set_level("INFO")
    store = Store(None)
    store.write()
    assert (store.waited, caplog.records) == ([], [])
