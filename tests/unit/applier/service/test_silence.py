# SPDX-License-Identifier: Apache-2.0
"""Whose heartbeat stays the same for too long is taken for dead; no clock is compared."""

from __future__ import annotations

import os
import socket
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from applier.contracts import Claimant
from applier.service.silence import SilenceWatch

ELSEWHERE = Claimant(
    host="elsewhere", pid=1, user="ann", heartbeat_at=datetime(2026, 1, 1, tzinfo=UTC)
)


@pytest.fixture
def clock():
    return [0.0]


@pytest.fixture
def watch(clock):
    return SilenceWatch(30.0, clock=lambda: clock[0])


def asked(watch, claimant=ELSEWHERE):
    watch.begin_round()
    return watch.is_dead("plan", claimant)


def test_a_claimant_is_dead_once_it_was_silent_for_the_patience(watch, clock):
    answers = []
    for clock[0] in (0.0, 29.0, 30.0):
        answers.append(asked(watch))
    assert answers == [False, False, True]


def test_a_heartbeat_begins_the_silence_anew_whatever_time_it_says(watch, clock):
    assert not asked(watch)
    clock[0] = 29.0
    beaten = replace(ELSEWHERE, heartbeat_at=datetime(1999, 1, 1, tzinfo=UTC))
    assert not asked(watch, beaten)
    clock[0] = 58.0
    assert not asked(watch, beaten)
    clock[0] = 59.0
    assert asked(watch, beaten)


def test_a_reset_begins_every_silence_anew(watch, clock):
    assert not asked(watch)
    clock[0] = 40.0
    watch.reset()
    assert not asked(watch)
    clock[0] = 69.0
    assert not asked(watch)


def test_a_claim_that_a_round_did_not_ask_about_is_forgotten(watch, clock):
    assert not asked(watch)
    watch.begin_round()
    clock[0] = 40.0
    assert not asked(watch)


@pytest.mark.slow
def test_a_process_of_this_host_that_is_gone_is_dead_at_once(watch, ended_pid):
    assert asked(watch, Claimant(host=socket.gethostname(), pid=ended_pid, user="ann"))
    assert not asked(watch, Claimant(host=socket.gethostname(), pid=os.getpid(), user="ann"))
