# SPDX-License-Identifier: Apache-2.0
"""The loop of the service: outages, what cannot run here, and whose plans are taken over."""

from __future__ import annotations

import itertools
import logging
import os
import socket
import sqlite3
import threading
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from sample_plans import new_plan
from store_checks.running_plans import starts

from applier.contracts import Claimant, Request, Verified
from applier.errors import DamagedRecord, GuardRefusal, OtherCloud, StoreError, UnknownActionTypes
from applier.run import resume
from applier.run.liveness import SilenceWatch
from applier.scheduling.interrupted import decide
from applier.service.plan_loop import PlanLoop
from applier.store import Service
from planner.plan.states import ActionState, PlanState

PATIENCE_S = 120.0
ME = Claimant(host=socket.gethostname(), pid=os.getpid(), user="me")
#: It counts as dead soon after its last heartbeat.
BEATS_OFTEN = Claimant(host="elsewhere", pid=1, user="u", heartbeat_interval_s=0.02)


class Fake:
    """A runner that does what a test says."""

    def __init__(self, work):
        self.run, self.handed_back = work, threading.Event()
        self.ended: list[str] = []

    def end_commands(self, uuid):
        self.ended.append(uuid)
        return ()

    def hand_back(self, who, why):
        self.handed_back.set()

    #: As forecast, in seconds; unknown of a plan without estimates.
    planned = None

    def planned_s(self):
        return self.planned


class Trial:
    """A loop in a thread, over a store."""

    def __init__(self, store, work=lambda _: PlanState.SUCCEEDED, **options):
        self.store, self.ending, self.runners = store, threading.Event(), []
        self.work = work
        now = datetime.now(UTC)
        here = {"host": "h", "pid": 1, "user": "u", "cloud": "simulated"}
        service = Service(uuid="s", started_at=now, heartbeat_at=now, **here)
        known = {"heartbeat_interval_s": 0.02, **options}
        self.serving = PlanLoop(self.store, self.make, service, ending=self.ending, **known)
        self.thread = threading.Thread(target=self.serving.run, daemon=True)

    def make(self):
        self.runners.append(self.make_runner())
        return self.runners[-1]

    def make_runner(self):
        return Fake(self.work)

    def pending(self):
        plan = new_plan("a", state=PlanState.PENDING)
        self.store.save_plan(plan)
        return plan.uuid

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.thread.join(PATIENCE_S)
        assert not self.thread.is_alive()


@pytest.fixture
def make_trial(store):
    """Return a function that makes a loop."""
    return partial(Trial, store)


def happens(trial, method, times=3):
    """Return an event that is set when a method of the store was called so often."""
    event, left, call = threading.Event(), [times], getattr(trial.store, method)

    def counted(*arguments, **named):
        left[0] -= 1
        if left[0] <= 0:
            event.set()
        return call(*arguments, **named)

    setattr(trial.store, method, counted)
    return event


def test_a_loop_that_gets_too_few_threads_ends_before_it_takes_a_plan(make_trial, monkeypatch):
    trial, granted, start = make_trial(workers=3), iter([True, True]), threading.Thread.start
    plan = trial.pending()

    def scarce(thread):
        if not next(granted, False):
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", scarce)
    with pytest.raises(RuntimeError):
        trial.serving.run()
    assert trial.runners == []
    assert trial.store.load_plan(plan).state is PlanState.PENDING


def test_plans_run_oldest_first_and_no_more_at_once_than_there_are_workers(make_trial):
    started, go, order = threading.Semaphore(0), threading.Event(), []

    def work(uuid):
        order.append(uuid)
        trial.store.claim_plan(uuid, ME, now=datetime.now(UTC))
        started.release()
        assert go.wait(PATIENCE_S)
        return PlanState.SUCCEEDED

    trial = make_trial(work, workers=2)
    uuids = [trial.pending() for _ in range(3)]
    with trial:
        for _ in range(2):
            assert started.acquire(timeout=PATIENCE_S)
        assert happens(trial, "report_service").wait(PATIENCE_S)
        assert set(order) == set(uuids[:2])
        (reported,) = trial.store.services()
        assert (reported.plans, reported.heartbeat_at > reported.started_at) == (2, True)
        go.set()
        assert started.acquire(timeout=PATIENCE_S)
    assert order[2] == uuids[2]


@pytest.mark.parametrize(("planned", "told"), [(None, "SUCCEEDED"), (60.0, "SUCCEEDED: ")])
def test_the_end_of_a_plan_is_logged_with_what_it_was_planned_to_take(
    make_trial, caplog, monkeypatch, planned, told
):
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(Fake, "planned", planned)
    began = threading.Event()

    def work(uuid):
        trial.store.claim_plan(uuid, ME, now=datetime.now(UTC))
        began.set()
        return PlanState.SUCCEEDED

    trial = make_trial(work)
    uuid = trial.pending()
    with trial:
        assert began.wait(PATIENCE_S)
    (line,) = [text for text in caplog.messages if text.startswith(f"Plan {uuid} is ")]
    assert line.removeprefix(f"Plan {uuid} is ").startswith(told)
    assert (": " in line) is (planned is not None)


def test_what_runs_when_it_ends_is_handed_back(make_trial):
    started = threading.Event()

    def work(uuid):
        started.set()
        assert trial.runners[0].handed_back.wait(PATIENCE_S)
        return PlanState.PENDING

    trial = make_trial(work)
    trial.pending()
    with trial:
        assert started.wait(PATIENCE_S)
    assert trial.store.services() == []


def test_an_outage_is_told_once_and_lived_through(make_trial, caplog):
    caplog.set_level(logging.INFO)
    trial, away, ran = make_trial(), threading.Event(), threading.Event()
    report, tried = trial.store.pending_plans, threading.Semaphore(0)

    def broken():
        if away.is_set():
            tried.release()
            raise StoreError("no route")
        return report()

    trial.store.pending_plans = broken
    trial.work = lambda _: ran.set() or PlanState.SUCCEEDED
    away.set()
    with trial:
        for _ in range(4):
            assert tried.acquire(timeout=PATIENCE_S)
        trial.pending()
        away.clear()
        assert ran.wait(PATIENCE_S)
    told = [r.message for r in caplog.records if "The record can" in r.message]
    assert len(told) == 2
    assert "no route" in told[0]
    assert told[1] == "The record can be reached again"


def test_a_plan_of_another_cloud_is_left_to_its_appliers_and_told_once(make_trial, caplog):
    caplog.set_level(logging.INFO, "applier.service")

    def work(uuid):
        tried.append(uuid)
        if uuid == first:
            raise OtherCloud(uuid, "west", "east")
        ran.set()
        return PlanState.SUCCEEDED

    trial, tried, ran = make_trial(work), [], threading.Event()
    first = trial.pending()
    with trial:
        trial.pending()
        assert ran.wait(PATIENCE_S)
    assert tried.count(first) == 1
    assert trial.store.load_plan(first).state is PlanState.PENDING
    (told,) = [r for r in caplog.records if first in r.message]
    assert told.levelno == logging.INFO
    assert "'west'" in told.message
    assert "'east'" in told.message


def test_a_plan_that_a_guard_refuses_is_tried_again_and_told_once(make_trial, caplog):
    caplog.set_level(logging.INFO, "applier.service")
    approved, asked, ran = threading.Event(), threading.Semaphore(0), threading.Event()

    def work(uuid):
        if not approved.is_set():
            asked.release()
            raise GuardRefusal(uuid, "it needs 1 approval")
        trial.store.claim_plan(uuid, ME, now=datetime.now(UTC))
        ran.set()
        return PlanState.SUCCEEDED

    trial = make_trial(work)
    uuid = trial.pending()
    with trial:
        for _ in range(3):
            assert asked.acquire(timeout=PATIENCE_S)
        approved.set()
        assert ran.wait(PATIENCE_S)
    (told,) = [r for r in caplog.records if "approval" in r.message]
    assert told.message.startswith(f"Plan {uuid} waits: ")


def test_plans_that_wait_for_their_guards_keep_no_others_from_running(make_trial):
    """Each is asked again before all were asked once: a queue in their order would never end."""
    ran, asked = threading.Event(), []

    def work(uuid):
        if uuid != last:
            asked.append(uuid)
            raise GuardRefusal(uuid, "it waits for a window")
        trial.store.claim_plan(uuid, ME, now=datetime.now(UTC))
        ran.set()
        return PlanState.SUCCEEDED

    trial = make_trial(work, heartbeat_interval_s=0.0)
    waiting = [trial.pending() for _ in range(5)]
    last = trial.pending()
    with trial:
        assert ran.wait(PATIENCE_S)
    assert asked[:5] == waiting


@pytest.mark.parametrize("error", [UnknownActionTypes("p", ["x"], []), ValueError("a bug")])
def test_a_plan_that_cannot_run_does_not_end_the_service(make_trial, error, caplog):
    def work(uuid):
        if uuid == first:
            if isinstance(error, ValueError):
                trial.store.move_plan(uuid, PlanState.CANCELLED, now=datetime.now(UTC))
            raise error
        ran.set()
        return PlanState.SUCCEEDED

    trial, ran = make_trial(work), threading.Event()
    first = trial.pending()
    trial.pending()
    with trial:
        assert ran.wait(PATIENCE_S)
    assert len([r for r in caplog.records if first in r.message]) == 1


@pytest.mark.parametrize("days", [-1, 400])
def test_whose_heartbeat_stays_the_same_loses_its_plan_whatever_its_clock_says(make_trial, days):
    trial = make_trial()
    uuid = trial.pending()
    beaten = datetime.now(UTC) + timedelta(days=days)
    trial.store.claim_plan(uuid, BEATS_OFTEN, now=beaten)
    resumed = happens(trial, "resume_plan", times=1)
    with trial:
        assert resumed.wait(PATIENCE_S)


def test_a_clock_that_jumps_takes_no_plan_from_who_beats(make_trial):
    """The clock of the service jumps by years, that of the applier is right."""
    jumps = itertools.cycle((timedelta(), timedelta(days=800), timedelta(days=-800)))
    trial = make_trial(clock=lambda: datetime.now(UTC) + next(jumps))
    uuid = trial.pending()
    there = Claimant(host="elsewhere", pid=1, user="u")
    claim = trial.store.claim_plan(uuid, there, now=datetime.now(UTC))
    look = trial.store.list_plans

    def beating(**named):
        trial.store.beat(uuid, claim, now=datetime.now(UTC))
        return look(**named)

    trial.store.list_plans = beating
    looked = happens(trial, "report_service", times=20)
    with trial:
        assert looked.wait(PATIENCE_S)
    assert trial.store.load_plan(uuid).state is PlanState.ONGOING


def test_the_cancel_of_an_applier_that_is_gone_is_finished(make_trial):
    trial = make_trial(heartbeat_interval_s=3600.0)
    uuid = trial.pending()
    (a,) = trial.store.load_plan(uuid).actions
    claim = trial.store.claim_plan(uuid, ME._replace(pid=2**22 + 1), now=datetime.now(UTC))
    trial.store.commit(uuid, claim, [starts(a)], now=datetime.now(UTC))
    trial.store.move_claimed(uuid, claim, PlanState.CANCELLING, now=datetime.now(UTC))
    moved = happens(trial, "move_plan", times=1)
    with trial:
        assert moved.wait(PATIENCE_S)
    assert trial.runners[0].ended == [uuid], "what the dead one has left running is ended"
    plan = trial.store.load_plan(uuid)
    assert plan.state is PlanState.CANCELLED
    assert plan.actions[0].state is ActionState.UNKNOWN
    assert "by the applier on h" in plan.status_message


def test_a_cancel_is_finished_only_once_the_jobs_of_the_plan_could_be_asked_for(make_trial):
    """Otherwise they would go on, and the plan would be over."""
    trial = make_trial(heartbeat_interval_s=0.02)
    uuid = trial.pending()
    claim = trial.store.claim_plan(uuid, ME._replace(pid=2**22 + 1), now=datetime.now(UTC))
    trial.store.move_claimed(uuid, claim, PlanState.CANCELLING, now=datetime.now(UTC))
    seen: list[PlanState] = []

    def away_once():
        runner = Fake(trial.work)
        end_commands = runner.end_commands

        def refused(uuid):
            seen.append(trial.store.load_plan(uuid).state)
            if len(seen) == 1:
                raise StoreError("no route to host")
            return end_commands(uuid)

        runner.end_commands = refused
        return runner

    trial.make_runner = away_once
    moved = happens(trial, "move_plan", times=1)
    with trial:
        assert moved.wait(PATIENCE_S)
    assert seen[:2] == [PlanState.CANCELLING] * 2
    assert trial.store.load_plan(uuid).state is PlanState.CANCELLED


def test_an_outage_begins_the_silence_of_every_claimant_anew(make_trial, caplog):
    """While nobody can write a heartbeat, nobody is taken for dead."""
    trial, now = make_trial(heartbeat_interval_s=0.02), [0.0]
    trial.serving._silence = SilenceWatch(clock=lambda: now[0])
    elsewhere = Claimant(host="elsewhere", pid=1, user="ann", heartbeat_interval_s=10.0)
    uuid = trial.pending()
    trial.store.claim_plan(uuid, elsewhere, now=datetime.now(UTC))
    report, rounds = trial.store.report_service, itertools.count()

    def reported(service):
        now[0] += 10.0  # each round, a heartbeat is missed
        if next(rounds) == 5:
            raise StoreError("no route")
        report(service)

    trial.store.report_service = reported
    resumed = happens(trial, "resume_plan", times=1)
    with trial:
        assert resumed.wait(PATIENCE_S)
    assert next(rounds) >= 5 + 1 + 6  # the first round after the outage begins the count


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("request", "created_at = 'x'"),
        ("plan", "guards = '{\"windows\": [5]}' WHERE claim != ''"),
        ("attempt", "state = 'x'"),
        ("action", "input_parameters = '{\"x\": 1}' WHERE name = 'dead'"),
    ],
)
def test_a_dead_plan_that_is_damaged_keeps_no_other_from_running(make_trial, caplog, table, change):
    ran, trial = threading.Event(), make_trial()
    trial.work = lambda _: ran.set() or PlanState.SUCCEEDED
    plan = new_plan("dead", state=PlanState.PENDING)
    trial.store.save_plan(plan)
    now, gone = datetime.now(UTC), ME._replace(pid=2**22 + 1)
    for death in range(1, resume.DEATHS + 1):
        claim = trial.store.claim_plan(plan.uuid, gone, now=now)
        (deadly,) = trial.store.load_plan(plan.uuid).actions
        if deadly.state is ActionState.ONGOING:
            again = decide(deadly, Verified.NOT_DONE, rerun_safe=True)
            trial.store.commit(plan.uuid, claim, [again], now=now)
        trial.store.commit(plan.uuid, claim, [starts(plan.actions[0])], now=now)
        if death < resume.DEATHS:
            trial.store.resume_plan(plan.uuid, [], now=now)
    trial.store.add_request(plan.uuid, Request(verb="skip", who="ann"), now=now)
    with closing(sqlite3.connect(trial.store.path)) as file, file:
        assert file.execute(f"UPDATE actionplan_{table} SET {change}").rowcount > 0
    trial.pending()
    with trial:
        assert ran.wait(PATIENCE_S)
        assert happens(trial, "report_service").wait(PATIENCE_S)
    (told,) = [r.message for r in caplog.records if plan.uuid in r.message]
    assert told.startswith(f"Plan {plan.uuid} is left alone: ")
    assert told.endswith("; see: actionplan db check")


def test_a_plan_that_is_damaged_for_a_moment_runs_later(make_trial, caplog):
    tried, ran = [], threading.Event()

    def work(uuid):
        tried.append(uuid)
        if len(tried) < 3:
            raise DamagedRecord("the record", ["no such table"])
        ran.set()
        return PlanState.SUCCEEDED

    trial = make_trial(work)
    uuid = trial.pending()
    with trial:
        assert ran.wait(PATIENCE_S)
    assert len([r for r in caplog.records if f"Plan {uuid} is left alone" in r.message]) == 1


def test_a_plan_whose_take_over_is_broken_keeps_no_other_from_running(make_trial, caplog):
    """As by a bug of a plugin, which is asked where the commands of the plan run."""
    ran, trial = threading.Event(), make_trial(heartbeat_interval_s=0.02)
    trial.work = lambda _: ran.set() or PlanState.SUCCEEDED
    broken = trial.pending()
    claim = trial.store.claim_plan(broken, ME._replace(pid=2**22 + 1), now=datetime.now(UTC))
    trial.store.move_claimed(broken, claim, PlanState.CANCELLING, now=datetime.now(UTC))
    asked = threading.Event()

    def with_a_bug():
        runner = Fake(trial.work)

        def end_commands(uuid):
            asked.set()
            raise KeyError("host")

        runner.end_commands = end_commands
        return runner

    trial.make_runner = with_a_bug
    with trial:
        assert asked.wait(PATIENCE_S)
        trial.pending()
        assert ran.wait(PATIENCE_S)
        assert happens(trial, "report_service", times=3).wait(PATIENCE_S)
    (told,) = [r for r in caplog.records if broken in r.message]
    assert told.levelno >= logging.ERROR
    assert "KeyError: 'host'" in caplog.text


def test_a_plan_that_ends_with_an_unexpected_error_is_not_tried_again_at_once(make_trial, caplog):
    tried = []

    def work(uuid):
        tried.append(uuid)
        raise ArithmeticError("a bug")

    trial = make_trial(work, heartbeat_interval_s=3600.0)
    trial.pending()
    with trial:
        assert happens(trial, "pending_plans", times=10).wait(PATIENCE_S)
    assert len(tried) == 1
