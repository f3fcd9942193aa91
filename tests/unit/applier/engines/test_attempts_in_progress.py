# SPDX-License-Identifier: Apache-2.0
"""How many threads are asked for, and which timers are set, for what runs."""

from __future__ import annotations

import queue
import threading
from functools import partial
from types import SimpleNamespace

import pytest

from applier.contracts import Report
from applier.engines.attempts_in_progress import AttemptsInProgress, Threads, Timer, Timers
from planner.plan.states import ActionState, Outcome

PATIENCE_S = 120.0


class WorkersLog(Threads):
    """Notes what is asked of the workers."""

    def __init__(self) -> None:
        super().__init__(1, lambda _: None)
        self.asked: list[str] = []

    def grow(self, number, extra=0):
        self.asked.append(f"grow {number} {extra}")

    def replace(self):
        self.asked.append("replace")

    def submit(self, task):
        self.asked.append(f"submit {task.execute()}")

    def adopt(self, task):
        self.asked.append(f"adopt {task.execute()}")


def task(
    uuid: str,
    *,
    waits_s=None,
    limit_s=None,
    continued_s=None,
    takes_worker=True,
    stoppable=True,
) -> SimpleNamespace:
    stop, aborted, let_go = threading.Event(), threading.Event(), threading.Event()
    return SimpleNamespace(
        waits_s=waits_s,
        limit_s=limit_s,
        continued_s=continued_s,
        action=SimpleNamespace(uuid=uuid),
        let_go=let_go.set,
        is_let_go=let_go.is_set,
        stop=stop,
        aborted=aborted,
        plugin=SimpleNamespace(TAKES_WORKER=takes_worker, STOPPABLE=stoppable),
        execute=lambda: uuid,
        abort=aborted.set,
        stop_for=lambda _why: stop.set(),
    )


TASKS = {
    "a": {},
    "b": {},
    "free": {"takes_worker": False},
    "freer": {"takes_worker": False},
    "unstoppable": {"stoppable": False},
    "limited": {"limit_s": 50.0},
    "went on": {"limit_s": 50.0, "continued_s": 20.0},
    "went on too long": {"limit_s": 50.0, "continued_s": 60.0},
    "wait": {"waits_s": 20.0, "limit_s": 50.0},
    "long": {"waits_s": 90.0, "limit_s": 50.0},
}


@pytest.fixture
def workers():
    return WorkersLog()


@pytest.fixture
def clock():
    return SimpleNamespace(now=0.0)


@pytest.fixture
def timers(clock):
    return Timers(lambda: clock.now)


@pytest.fixture
def tasks():
    return {uuid: task(uuid, **fields) for uuid, fields in TASKS.items()}


@pytest.fixture
def running(tasks, workers, timers):
    return AttemptsInProgress(tasks, workers, timers, grace_s=7.0)


def ended(uuid: str) -> Report:
    return Report(uuid=uuid, old=ActionState.ONGOING, state=ActionState.SUCCEEDED)


def test_there_is_a_thread_for_each_that_runs_and_those_without_a_worker_are_beside(
    running, workers
):
    for uuid in ("a", "free", "b", "freer"):
        running.start(uuid)
    grown = [line for line in workers.asked if line.startswith("grow")]
    assert grown == ["grow 1 0", "grow 2 1", "grow 3 1", "grow 4 2"]
    assert [line for line in workers.asked if line.startswith("submit")] == [
        "submit a",
        "submit free",
        "submit b",
        "submit freer",
    ]
    assert len(running) == 4


def test_what_takes_no_worker_leaves_the_thread_to_what_takes_one(timers):
    """They meet, so neither ends unless both have a thread of their own."""
    together, reports = threading.Barrier(2), queue.SimpleQueue()
    pair = {"a": task("a"), "free": task("free", takes_worker=False)}
    for made in pair.values():
        made.execute = partial(together.wait, PATIENCE_S)
    with Threads(1, reports.put) as executor:
        running = AttemptsInProgress(pair, executor, timers, grace_s=7.0)
        running.start("free")
        running.start("a")
        assert {reports.get(timeout=PATIENCE_S) for _ in pair} == {0, 1}


def test_what_ended_needs_no_thread_any_more(running, workers):
    running.start("free")
    assert running.ended(ended("free"))
    assert len(running) == 0
    workers.asked.clear()
    running.start("freer")
    assert workers.asked[0] == "grow 1 1"


def test_an_end_that_is_told_twice_counts_once(running, caplog):
    running.start("a")
    assert running.ended(ended("a"))
    assert not running.ended(ended("a"))
    assert "given up" in caplog.text


def test_what_cannot_be_stopped_is_not_told_to(running, tasks, timers):
    running.start("unstoppable")
    assert running.stop("unstoppable") is None
    running.stop_all()
    assert not tasks["unstoppable"].stop.is_set()
    assert not tasks["unstoppable"].aborted.is_set()
    assert timers.left_s() is None
    assert len(running) == 1


@pytest.mark.parametrize("uuid", ["a", "free"])
def test_what_is_given_up_is_replaced_and_is_in_doubt(running, tasks, timers, workers, clock, uuid):
    running.start(uuid)
    assert running.stop(uuid) is None
    assert tasks[uuid].stop.is_set()
    assert tasks[uuid].aborted.wait(PATIENCE_S)
    assert timers.left_s() == 7.0
    clock.now = 7.0
    (due,) = timers.due()
    report = running.due(due)
    assert (report.uuid, report.state, report.given_up) == (uuid, ActionState.UNKNOWN, True)
    assert report.message == "hangs: its thread was given up"
    assert workers.asked[-1] == "replace"
    assert len(running) == 0
    workers.asked.clear()
    running.start("freer")
    assert workers.asked[0] == "grow 1 1"


def test_what_is_told_to_stop_twice_is_aborted_once(running, tasks, timers, clock):
    running.start("a")
    running.stop("a")
    assert tasks["a"].aborted.wait(PATIENCE_S)
    tasks["a"].aborted.clear()
    clock.now = 3.0
    assert running.stop("a") is None
    assert timers.left_s() == 4.0, "the grace does not begin anew"
    assert not tasks["a"].aborted.is_set()


def test_an_end_drops_its_limit_and_its_grace(running, tasks, timers, clock):
    running.start("limited")
    assert timers.left_s() == 50.0
    running.ended(ended("limited"))
    assert timers.left_s() is None
    running.start("limited")
    running.stop("limited")
    assert timers.left_s() == 7.0, "its limit does not count any more"
    running.ended(ended("limited"))
    assert timers.left_s() is None


def test_what_runs_into_its_limit_is_told_to_stop(running, tasks, timers, clock):
    running.start("limited")
    clock.now = 50.0
    (due,) = timers.due()
    assert due == Timer("limit", "limited")
    assert running.due(due) is None
    assert tasks["limited"].stop.is_set()
    assert tasks["limited"].aborted.wait(PATIENCE_S)
    assert timers.left_s() == 7.0
    assert len(running) == 1


@pytest.mark.parametrize(("uuid", "left_s"), [("went on", 30.0), ("went on too long", 0.0)])
def test_the_limit_of_what_went_on_counts_from_its_start(running, timers, uuid, left_s):
    running.start(uuid)
    assert timers.left_s() == left_s


def test_what_only_waits_takes_no_thread_and_succeeds_when_it_is_over(
    running, timers, workers, clock
):
    running.start("wait")
    assert workers.asked == []
    assert len(running) == 1
    clock.now = 20.0
    (due,) = timers.due()
    report = running.due(due)
    assert (report.state, report.outcome) == (ActionState.SUCCEEDED, Outcome.CHANGED)
    assert report.message is None
    assert len(running) == 0
    assert timers.left_s() is None, "its limit is dropped"


def test_a_wait_beyond_its_limit_fails(running, timers, clock):
    running.start("long")
    clock.now = 50.0
    (due,) = timers.due()
    report = running.due(due)
    assert (report.state, report.outcome) == (ActionState.FAILED, Outcome.ERROR)
    assert report.message == "timed out after 50 s"
    assert timers.left_s() is None, "its end is dropped"


@pytest.mark.parametrize(("uuid", "state"), [("wait", "SUCCEEDED"), ("long", "FAILED")])
def test_a_wait_and_its_limit_that_are_due_together_end_it_once(
    running, timers, clock, uuid, state
):
    """The engine stood still past both, as after Ctrl-Z; whichever was due first counts."""
    running.start(uuid)
    clock.now = 1000.0
    reports = [report for timer in timers.due() if (report := running.due(timer))]
    assert [report.state for report in reports] == [state]
    assert len(running) == 0
    assert timers.left_s() is None


def test_a_wait_that_is_stopped_ends_at_once(running, timers):
    running.start("wait")
    report = running.stop("wait")
    assert (report.state, report.outcome) == (ActionState.CANCELLED, None)
    assert report.message == "aborted: it was to wait for 20 s"
    assert timers.left_s() is None
    assert len(running) == 0
    assert running.stop("wait") is None


def test_everything_is_told_to_stop(running, tasks):
    for uuid in ("a", "wait", "free"):
        running.start(uuid)
    running.stop_all()
    assert tasks["a"].stop.is_set()
    assert tasks["free"].stop.is_set()
    assert len(running) == 2, "those in threads are awaited"


def test_commands_go_on_if_everything_stops_and_end_if_one_is_stopped(running, tasks):
    for uuid in ("a", "b"):
        running.start(uuid)
    running.stop("a")
    assert not tasks["a"].is_let_go()
    running.stop_all()
    assert tasks["b"].is_let_go()
