# SPDX-License-Identifier: Apache-2.0
"""A run whose store goes away, whose claim is lost, that goes on after a crash, or is not alone."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from datetime import UTC, datetime
from typing import Any, ClassVar
from unittest.mock import Mock

import pytest
from trials import CLAIMANT, Trial, changed

from applier.contracts import ActionPlugin, Report, Request, Verified
from applier.engines.taskflow_engine import TaskFlowEngine
from applier.errors import AlreadyDone, DamagedRecord, NoThread, PlanConflict, StoreError
from applier.run.this_process import this_host
from planner.plan.model import Action, ActionPlan, Trigger
from planner.plan.states import ActionState, Outcome, PlanState

NOW = datetime(2026, 11, 21, tzinfo=UTC)
PATIENCE_S = 120.0


def nop(uuid: str, **fields) -> Action:
    return Action(uuid=uuid, name=uuid, **{"action_type": "nop", **fields})


def plan_of(*actions: Action, **fields) -> ActionPlan:
    given = {"uuid": "plan", "planner": "test", "state": PlanState.PENDING, **fields}
    return ActionPlan(actions=actions, **given)


@pytest.fixture
def trial(open_trial):
    """Return a function that makes a trial of a plan."""

    def make(plan, work=changed, **options) -> Trial:
        return open_trial(plan, TaskFlowEngine(max_workers=2), work, max_workers=2, **options)

    return make


CHAIN = plan_of(nop("a"), nop("b", needs=("a",)), nop("c", needs=("b",)))

# A store that goes away


class Away:
    """Breaks a store's commits for a while."""

    def __init__(self, one: Trial, times: int) -> None:
        self.left, self.tries, self.commit = times, 0, one.store.commit
        one.store.commit = self

    def __call__(self, uuid, claim, reports, *, now):
        self.tries += 1
        if any(r.uuid == "b" and r.state == "ONGOING" for r in reports) and self.left:
            self.left -= 1
            raise StoreError("connection refused")
        self.commit(uuid, claim, reports, now=now)


@pytest.mark.parametrize("times", [1, 3])
def test_a_store_that_comes_back_is_written_to_again(trial, times, caplog):
    one = trial(CHAIN, store_patience_s=PATIENCE_S)
    away = Away(one, times)
    assert one.run() is PlanState.SUCCEEDED
    assert one.store.started == ["a", "b", "c"]
    assert away.tries == 4 + times
    assert "The record can be reached again" in caplog.text


def test_nothing_runs_whose_start_is_not_on_record(trial, caplog):
    """While the store is away, what runs ends, and its end is on record when it is back."""
    plan = plan_of(nop("a"), nop("b", parents=("x",)), nop("x"), nop("c", parents=("a",)))
    one = trial(plan, store_patience_s=PATIENCE_S)
    gone, ran = threading.Event(), []
    commit = one.store.commit

    def broken(uuid, claim, reports, *, now):
        if any(r.uuid == "b" for r in reports) and not gone.is_set():
            gone.set()
            raise StoreError("connection refused")
        commit(uuid, claim, reports, now=now)

    def work(parameters, context, stop):
        uuid = parameters["uuid"]
        ran.append((uuid, str(one.plan().actions["abxc".index(uuid)].state)))
        if uuid == "a":
            assert gone.wait(PATIENCE_S), "the store did not go away"
        return Outcome.CHANGED

    one.store.commit, one.work = broken, work
    assert one.run() is PlanState.SUCCEEDED
    assert sorted(ran) == [(uuid, "ONGOING") for uuid in "abcx"]


def test_a_store_that_stays_away_ends_the_run_and_leaves_the_plan_ongoing(trial, caplog):
    one = trial(CHAIN, store_patience_s=0.1)
    away = Away(one, 1000)
    assert isinstance(one.broken(), StoreError)
    assert away.tries > 2
    assert one.plan().state is PlanState.ONGOING
    assert one.states() == {"a": "ONGOING", "b": "PENDING", "c": "PENDING"}


# A record that is damaged


@pytest.mark.parametrize(
    ("halted", "more", "state"),
    [
        ("pause", None, "PAUSED"),
        ("hand_back", None, "PAUSED"),
        ("hand_back", "cancel", "CANCELLED"),
    ],
)
def test_a_plan_with_a_damaged_request_is_paused_and_says_why(trial, store, halted, more, state):
    """The request may be a cancel; one that can be read is followed."""
    crash(store, CHAIN)
    one = trial(CHAIN, inner=store, request_interval_s=3600.0)

    def work(parameters, context, stop):
        getattr(one.runner, halted)(why="it ends")
        store.add_request("plan", Request(verb="pause", who="ann"), now=NOW)
        if more:
            store.add_request("plan", Request(verb=more, who="ann"), now=NOW)
        with closing(sqlite3.connect(store.path)) as file, file:
            file.execute("UPDATE actionplan_request SET created_at = 'x' WHERE verb = 'pause'")
        return Outcome.CHANGED

    one.work = work
    assert one.run() is PlanState(state)
    assert one.store.claimant("plan") is None
    said = "request 1 is damaged: created_at 'x'"
    assert (said in one.plan().status_message) is (more is None)


def test_a_plan_with_a_damaged_attempt_that_it_needs_is_refused(trial, store):
    """Whether "a" was interrupted decides how it runs again."""
    crash(store, CHAIN, "a", state=ActionState.PENDING)
    one = trial(CHAIN, inner=store)
    with closing(sqlite3.connect(store.path)) as file, file:
        file.execute("UPDATE actionplan_attempt SET outcome = '{'")
    assert "attempt 1 of action a" in str(one.broken())
    assert one.plan().state is PlanState.PENDING
    assert one.store.claimant("plan") is None


def test_a_plan_whose_forecast_cannot_be_made_runs(trial):
    def damaged(*_: object, **__: object):
        raise DamagedRecord("the record", ["no such table"])

    one = trial(CHAIN, runs_at=Mock(queue_limits=damaged, **{"executor_of.return_value": None}))
    one.store.durations = damaged
    assert one.run() is PlanState.SUCCEEDED


# A machine without threads


@pytest.mark.parametrize("name", ["heartbeat", "request reader"])
def test_a_thread_that_cannot_be_started_is_a_sentence_and_nothing_has_begun(
    trial, monkeypatch, name
):
    start = threading.Thread.start

    def none_left(thread):
        if thread.name == name:
            raise RuntimeError("can't start new thread")
        start(thread)

    one = trial(CHAIN)
    monkeypatch.setattr(threading.Thread, "start", none_left)
    broken = one.broken()
    assert isinstance(broken, NoThread)
    assert str(broken) == (
        f"no thread can be started for the {name} of a run: can't start new thread; "
        "nothing has begun"
    )
    assert one.plan().state is PlanState.PENDING
    assert one.store.claimant("plan") is None
    monkeypatch.undo()
    assert one.again(TaskFlowEngine(max_workers=2)).run() is PlanState.SUCCEEDED


# A claim that is lost


def test_a_heartbeat_is_written_also_when_nothing_ends(trial):
    one = trial(plan_of(nop("a")), heartbeat_interval_s=0.005)
    beats, enough = [], threading.Event()
    beat = one.store.beat

    def count(uuid, claim, *, now):
        beat(uuid, claim, now=now)
        beats.append(now)
        if len(beats) == 3:
            enough.set()

    def work(*given):
        assert enough.wait(PATIENCE_S)
        return Outcome.CHANGED

    one.store.beat, one.work = count, work
    assert one.run() is PlanState.SUCCEEDED
    assert sorted(beats) == beats


def test_a_heartbeat_that_cannot_be_written_is_written_later(trial, caplog):
    one = trial(plan_of(nop("a")), heartbeat_interval_s=0.005)
    errors, enough = [StoreError("away for a moment")], threading.Event()

    def broken(uuid, claim, *, now):
        if errors:
            raise errors.pop()
        enough.set()

    def work(*given):
        assert enough.wait(PATIENCE_S)
        return Outcome.CHANGED

    one.store.beat, one.work = broken, work
    assert one.run() is PlanState.SUCCEEDED
    assert "away for a moment" in caplog.text


def test_a_claim_that_is_lost_in_mid_run_stops_what_runs_and_nothing_more_is_written(trial):
    one = trial(CHAIN, heartbeat_interval_s=0.005)
    stopped = []

    def work(parameters, context, stop):
        one.store.resume_plan("plan", [], now=NOW)
        one.store.claim_plan("plan", CLAIMANT, now=NOW)
        stopped.append(stop.wait(PATIENCE_S))
        return Outcome.CHANGED

    one.work = work
    assert isinstance(one.broken(), PlanConflict)
    assert stopped == [True], "it was told to stop, and only one had begun"
    assert one.states() == {"a": "ONGOING", "b": "PENDING", "c": "PENDING"}
    assert one.plan().state is PlanState.ONGOING


# After a crash


class Moving(ActionPlugin):
    """Answers what the test says, and notes that it ran."""

    TYPE = "moving"
    SCHEMA: ClassVar[dict[str, Any]] = {"type": "object"}
    answer = Verified.IN_DOUBT
    found: Exception | Outcome = Outcome.CHANGED

    def execute(self, stop):
        self.ran.append(self.parameters["uuid"])
        if isinstance(self.found, Exception):
            raise self.found
        return self.found

    def verify(self):
        return self.answer


def crash(store, plan, *uuids, state=None, claimant=CLAIMANT) -> None:
    """Save a plan whose applier died while these actions ran."""
    value = plan.to_dict()
    for action in value["actions"]:
        action["input_parameters"] = {"uuid": action["uuid"]}
    store.save_plan(ActionPlan.from_dict(value))
    claim = store.claim_plan(plan.uuid, claimant, now=NOW)
    starts = [Report(uuid=u, old=ActionState.PENDING, state=ActionState.ONGOING) for u in uuids]
    store.commit(plan.uuid, claim, starts, now=NOW)
    if state is not None:
        ends = [Report(uuid=u, old=ActionState.ONGOING, state=state) for u in uuids]
        store.commit(plan.uuid, claim, ends, now=NOW)
    store.resume_plan(plan.uuid, [], now=NOW)


MOVES = plan_of(
    nop("a", action_type="moving"),
    nop("b", triggers=(Trigger("a", (Outcome.CHANGED,)),)),
    nop("c", needs=("a",)),
)


@pytest.fixture
def resumed(store, trial, ended_pid):
    """Return a function that makes a trial of a plan whose applier died."""

    def make(*, state=None, **fields) -> Trial:
        moving = type("Moving", (Moving,), {"ran": [], **fields})
        gone = CLAIMANT._replace(host=this_host(), pid=ended_pid)
        crash(store, MOVES, "a", state=state, claimant=gone)
        return trial(MOVES, inner=store, plugins={"moving": moving})

    return make


@pytest.mark.parametrize("state", [None, ActionState.UNKNOWN])
@pytest.mark.parametrize(
    ("fields", "starts", "states"),
    [
        ({"answer": Verified.DONE}, "bc", ["SUCCEEDED", "SUCCEEDED", "SUCCEEDED"]),
        ({"answer": Verified.NOT_DONE}, "abc", ["SUCCEEDED", "SUCCEEDED", "SUCCEEDED"]),
        ({"RERUN_SAFE": True}, "abc", ["SUCCEEDED", "SUCCEEDED", "SUCCEEDED"]),
        ({}, "", ["UNKNOWN", "FAILED_DEPENDENCIES", "FAILED_DEPENDENCIES"]),
    ],
)
def test_what_was_cut_off_is_verified_before_anything_starts(
    resumed, state, fields, starts, states
):
    one = resumed(state=state, **fields)
    one.run()
    assert sorted(one.store.started) == list(starts)
    assert list(one.states().values()) == states


@pytest.mark.parametrize("found", [AlreadyDone("it is there"), Outcome.OK])
def test_no_event_is_lost_when_the_next_attempt_finds_the_work_done(resumed, found):
    one = resumed(answer=Verified.NOT_DONE, found=found)
    assert one.run() is PlanState.SUCCEEDED
    assert one.plan().actions[0].outcome is Outcome.CHANGED
    assert one.states()["b"] == "SUCCEEDED", "it was triggered"
    assert one.messages()["a"].startswith("an interrupted attempt had done it: ")


def test_that_is_still_known_after_a_pause(resumed):
    """The run after the one that verified it finds it in the record."""
    one = resumed(answer=Verified.NOT_DONE, found=Outcome.OK)
    one.runner.pause("ann")
    assert one.run() is PlanState.PAUSED
    one.store.move_plan("plan", PlanState.PENDING, now=NOW)
    again = one.again(TaskFlowEngine(max_workers=2))
    assert again.run() is PlanState.SUCCEEDED
    assert again.plan().actions[0].outcome is Outcome.CHANGED


def test_limits_that_were_changed_hold_after_a_crash_as_well(trial, store):
    crash(store, plan_of(*(nop(f"a{i}") for i in range(4))))
    request = Request(verb="limit", who="ann", limits={"max_workers": 1})
    claim = store.claim_plan("plan", CLAIMANT, now=NOW)
    store.add_request("plan", request, now=NOW)
    store.move_claimed("plan", claim, PlanState.PAUSED, now=NOW)
    store.move_plan("plan", PlanState.PENDING, now=NOW)
    one = trial(store.load_plan("plan"), inner=store)
    assert one.run() is PlanState.SUCCEEDED
    assert one.store.peak == 1


# Two plans


def test_two_plans_never_work_on_one_node_at_once(trial, store):
    """The second waits for the first, which is not hurried by that."""
    inside = []
    node = {"tokens": ("node:1", "type:nop")}
    first = plan_of(nop("a", **node), nop("b", parents=("a",)), uuid="first")
    second = plan_of(nop("c", **node), nop("d"), uuid="second")
    for plan in (first, second):
        value = plan.to_dict()
        for action in value["actions"]:
            action["input_parameters"] = {"uuid": action["uuid"]}
        store.save_plan(ActionPlan.from_dict(value))
    other_ran = threading.Event()

    def work(parameters, context, stop):
        uuid = parameters["uuid"]
        inside.append(uuid)
        if uuid == "a":
            thread.start()
            assert other_ran.wait(PATIENCE_S), "d has nothing to do with the node"
        if uuid == "d":
            other_ran.set()
        return Outcome.CHANGED

    one = trial(first, work, inner=store)
    two = trial(second, work, inner=store, request_interval_s=0.005)
    ended = []
    thread = threading.Thread(target=lambda: ended.append(two.run()), daemon=True)
    assert one.run() is PlanState.SUCCEEDED
    thread.join(PATIENCE_S)
    assert ended == [PlanState.SUCCEEDED]
    assert sorted(inside[:3]) == ["a", "b", "d"]
    assert inside[3] == "c"
