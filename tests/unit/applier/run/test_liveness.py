# SPDX-License-Identifier: Apache-2.0
"""Whose heartbeat stays the same for six of its own intervals is dead; no clock is compared."""

from __future__ import annotations

import os
import socket
import subprocess
from datetime import UTC, datetime, timedelta

import pytest
from sample_plans import new_plan

from applier.contracts import Claimant
from applier.run.liveness import MISSED_HEARTBEATS, SilenceWatch, gone, has_died, is_gone
from planner.plan.states import PlanState

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ELSEWHERE = Claimant(host="elsewhere", pid=1, user="ann", heartbeat_at=NOW)


@pytest.fixture
def clock():
    return [0.0]


@pytest.fixture
def watch(clock):
    return SilenceWatch(clock=lambda: clock[0])


def asked(watch, claimant=ELSEWHERE):
    watch.begin_round()
    return watch.is_dead("plan", claimant)


def looks(watch, clock, times, claimant=ELSEWHERE):
    answers = []
    for clock[0] in times:
        answers.append(asked(watch, claimant))
    return answers


@pytest.mark.parametrize("interval_s", [0.2, 5.0, 120.0])
def test_a_claimant_is_dead_once_it_missed_six_of_its_own_heartbeats(watch, clock, interval_s):
    claimant = ELSEWHERE._replace(heartbeat_interval_s=interval_s)
    times = [interval_s * number * 1.001 for number in range(MISSED_HEARTBEATS + 1)]
    assert looks(watch, clock, times, claimant) == [False] * MISSED_HEARTBEATS + [True]


def test_looks_that_come_faster_than_heartbeats_count_for_nothing(watch, clock):
    claimant = ELSEWHERE._replace(heartbeat_interval_s=120.0)
    assert not any(looks(watch, clock, range(720), claimant))
    assert looks(watch, clock, [720], claimant) == [True]


def test_a_heartbeat_begins_the_silence_anew_whatever_time_it_says(watch, clock):
    assert not any(looks(watch, clock, range(0, 30, 5)))
    beaten = ELSEWHERE._replace(heartbeat_at=datetime(1999, 1, 1, tzinfo=UTC))
    assert looks(watch, clock, range(30, 65, 5), beaten) == [False] * 6 + [True]


def test_a_reset_begins_every_silence_anew(watch, clock):
    assert not any(looks(watch, clock, range(0, 30, 5)))
    watch.reset()
    assert looks(watch, clock, range(30, 65, 5)) == [False] * 6 + [True]


def test_a_claim_that_a_round_did_not_look_at_is_forgotten(watch, clock):
    assert not any(looks(watch, clock, range(0, 30, 5)))
    watch.begin_round()
    assert not any(looks(watch, clock, range(30, 60, 5)))


def test_time_in_which_the_watcher_itself_did_not_look_counts_as_one_heartbeat(watch, clock):
    """The store did not answer, or the watcher was stopped: nobody could be heard."""
    assert looks(watch, clock, [0.0, 3600.0, 3605.0, 7200.0]) == [False] * 4


@pytest.mark.slow
def test_a_process_of_this_host_that_is_gone_is_dead_at_once(watch, ended_pid):
    assert asked(watch, Claimant(host=socket.gethostname(), pid=ended_pid, user="ann"))
    assert not asked(watch, Claimant(host=socket.gethostname(), pid=os.getpid(), user="ann"))


@pytest.mark.slow
def test_a_process_that_has_ended_is_gone_though_nobody_has_waited_for_it():
    process = subprocess.Popen(["true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert is_gone(Claimant(host=socket.gethostname(), pid=process.pid, user="u"))
    process.wait()


def test_a_process_is_gone_only_if_that_can_be_known(ended_pid):
    here = socket.gethostname()
    assert is_gone(Claimant(host=here, pid=ended_pid, user="u"))
    assert not is_gone(Claimant(host=f"not-{here}", pid=ended_pid, user="u"))
    assert not is_gone(Claimant(host=here, pid=1, user="u"))
    assert gone(ELSEWHERE).startswith("process 1 on elsewhere")


@pytest.mark.slow
def test_a_process_of_another_container_is_not_gone(monkeypatch, ended_pid):
    other = Claimant(host=f"{socket.gethostname()} pid:[4026532501]", pid=ended_pid, user="u")
    assert not is_gone(other)
    monkeypatch.setattr(os, "readlink", lambda _: "pid:[4026532501]")
    assert is_gone(other)


class Watched:
    """A claimed plan; ``happens`` are calls by the second in which they are made."""

    def __init__(self, store, **claimant):
        self.store, self.plan = store, new_plan("a", state=PlanState.PENDING)
        store.save_plan(self.plan)
        self.claim = store.claim_plan(self.plan.uuid, ELSEWHERE._replace(**claimant), now=NOW)
        self.time, self.happens, self.told = 0.0, {}, []

    def wait(self, seconds):
        before, self.time = self.time, self.time + seconds
        for at in [at for at in self.happens if before < at <= self.time]:
            self.happens.pop(at)()

    def beat(self, now):
        self.store.beat(self.plan.uuid, self.claim, now=now)

    def has_died(self):
        known = {"tell": self.told.append, "clock": lambda: self.time, "wait": self.wait}
        uuid = self.plan.uuid
        return has_died(self.store, uuid, self.store.claimant(uuid), **known)


@pytest.mark.parametrize(
    ("interval_s", "at_most"), [(0.2, "1.2s"), (5.0, "30s"), (120.0, "12m00s")]
)
def test_a_claimant_that_is_silent_has_died(store, interval_s, at_most):
    watched = Watched(store, heartbeat_interval_s=interval_s)
    told_before_waiting = []
    watched.happens[interval_s / 10] = lambda: told_before_waiting.extend(watched.told)
    assert watched.has_died()
    assert interval_s * 6 <= watched.time + 1e-9 < interval_s * 6 + 6
    [told] = watched.told
    assert told.startswith("Process 1 on elsewhere")
    assert f"up to {at_most};" in told
    assert told_before_waiting == [told]


@pytest.mark.parametrize("clock_is_ahead_s", [-3600, 0, 60, 10**8])
def test_a_claimant_that_is_heard_of_lives_whatever_its_clock_says(store, clock_is_ahead_s):
    watched = Watched(store, heartbeat_interval_s=120.0)
    heard = NOW + timedelta(seconds=clock_is_ahead_s + 1)
    watched.happens[700.0] = lambda: watched.beat(heard)
    assert not watched.has_died()
    assert watched.time == 700.0


def test_a_claimant_that_ends_its_claim_has_not_died(store):
    watched = Watched(store)
    moved = PlanState.SUCCEEDED
    watched.happens[3.0] = lambda: store.move_claimed(
        watched.plan.uuid, watched.claim, moved, now=NOW
    )
    assert not watched.has_died()


@pytest.mark.slow
def test_a_claimant_whose_process_is_gone_is_not_waited_for(store, ended_pid):
    watched = Watched(store, host=socket.gethostname(), pid=ended_pid)
    assert watched.has_died()
    assert watched.time == 0.0
    assert watched.told == []
