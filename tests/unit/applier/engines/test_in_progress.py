# SPDX-License-Identifier: Apache-2.0
"""What runs is tried again, timed out, aborted and given up: with real threads."""

from __future__ import annotations

import queue
import threading
from datetime import UTC, datetime
from typing import Any, ClassVar

import pytest
from trials import changed

from applier.actions.markers import Pause, Skipped, Sleep
from applier.contracts import ActionPlugin, Request, Verified
from applier.engines.attempts_in_progress import ThreadPool
from applier.engines.taskflow_engine import TaskFlowEngine
from applier.errors import ActionFailed
from applier.scheduling.failures import TypePolicy
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ActionState, Outcome, PlanState

NOW = datetime(2026, 11, 21, tzinfo=UTC)
PATIENCE_S = 120.0
SOON_S = 0.03


def plan_of(*actions: Action, **fields) -> ActionPlan:
    return ActionPlan(
        uuid="plan", planner="test", state=PlanState.PENDING, actions=actions, **fields
    )


def nop(uuid: str, **fields) -> Action:
    return Action(uuid=uuid, name=uuid, **{"action_type": "nop", **fields})


@pytest.fixture
def trial(open_trial):
    """Return a function that makes a trial of a plan."""

    def make(plan, work=changed, *, max_workers=2, grace_s=SOON_S, **options):
        engine = TaskFlowEngine(max_workers=max_workers, grace_s=grace_s)
        return open_trial(plan, engine, work, max_workers=max_workers, **options)

    return make


def policies(**fields) -> dict[str, TypePolicy]:
    return {"nop": TypePolicy(**fields)}


def failing(times: int, error: BaseException | None = None):
    """Return work that fails so often, and then does what it should."""
    left = [error or ActionFailed("not yet")] * times

    def work(parameters, context, stop):
        if left:
            raise left.pop()
        return Outcome.CHANGED

    return work


class Scripted(ActionPlugin):
    """Waits for its stop, or for ever; its class says what it is asked and answers."""

    TYPE = "scripted"
    SCHEMA: ClassVar[dict[str, Any]] = {"type": "object"}
    obeys = True
    answer: Verified | BaseException = Verified.NOT_DONE
    ended: Outcome | BaseException = ActionFailed("it was stopped")

    def execute(self, stop):
        self.began.set()
        self.go.wait() if not self.obeys else stop.wait(PATIENCE_S)
        if isinstance(self.ended, BaseException):
            raise self.ended
        return self.ended

    def abort(self):
        self.aborted.put(threading.current_thread().name)

    def verify(self):
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


@pytest.fixture
def scripted(monkeypatch):
    """Make an action type, whose limits count from when its work has begun.

    What hangs is let go at the end of the test.
    """
    go, submit = threading.Event(), ThreadPool.submit

    def make(**fields) -> type[Scripted]:
        fields = {"go": go, "began": threading.Event(), "aborted": queue.SimpleQueue(), **fields}
        return type("Made", (Scripted,), fields)

    def submit_and_wait(pool, work):
        submit(pool, work)
        plugin = work.__self__.plugin
        assert not issubclass(plugin, Scripted) or plugin.began.wait(PATIENCE_S)

    monkeypatch.setattr(ThreadPool, "submit", submit_and_wait)
    yield make
    go.set()


def aborted_once(kind: type[Scripted]) -> str:
    """Return the name of the thread of an abort, which may come after the end of the run."""
    thread = kind.aborted.get(timeout=PATIENCE_S)
    assert kind.aborted.empty()
    return thread


SCRIPTED = nop("a", action_type="scripted", timeout_s=SOON_S)

# Retries


def test_every_attempt_is_a_start_on_record(trial):
    one = trial(plan_of(nop("a")), failing(2), policies=policies(retries=3, retry_delay_s=0.01))
    assert one.run() is PlanState.SUCCEEDED
    assert one.store.started == ["a", "a", "a"]
    assert one.plan().actions[0].attempts == 3
    told = [(a.state, a.message) for a in one.store.attempts("plan", "a")]
    assert told[0] == (ActionState.FAILED, "not yet; retry in 0.01 s")
    assert told[2] == (ActionState.SUCCEEDED, None)


def test_a_delay_that_is_nothing_is_another_commit(trial):
    one = trial(plan_of(nop("a", retries=1)), failing(1))
    assert one.run() is PlanState.SUCCEEDED
    assert [[(r.old, r.state) for r in batch] for batch in one.store.commits] == [
        [("PENDING", "ONGOING")],
        [("ONGOING", "PENDING")],
        [("PENDING", "ONGOING")],
        [("ONGOING", "SUCCEEDED")],
    ]


@pytest.mark.parametrize("error", [OSError("gone"), SystemExit(1)])
def test_what_broke_is_tried_again_too(trial, error, caplog):
    one = trial(plan_of(nop("a", retries=1)), failing(1, error))
    assert one.run() is PlanState.SUCCEEDED


# Time-outs


@pytest.mark.parametrize(
    ("answer", "state", "outcome", "message"),
    [
        (Verified.DONE, "SUCCEEDED", "changed", "timed out after 0.03 s; verified"),
        (Verified.NOT_DONE, "FAILED", "error", "timed out after 0.03 s: it was stopped"),
        (Verified.IN_DOUBT, "UNKNOWN", None, "actionplan action set PLAN a --state"),
        (ValueError("no"), "UNKNOWN", None, "actionplan action set PLAN a --state"),
    ],
)
def test_after_a_time_out_the_world_decides(
    trial, scripted, answer, state, outcome, message, caplog
):
    kind = scripted(answer=answer)
    one = trial(plan_of(SCRIPTED), plugins={"scripted": kind}, grace_s=PATIENCE_S)
    one.run()
    (action,) = one.plan().actions
    assert (action.state, action.outcome) == (state, outcome)
    assert message in action.status_message
    assert aborted_once(kind).startswith("action-abort"), "in a thread of its own"


def test_work_that_ends_well_although_its_time_was_over_has_succeeded(trial, scripted):
    kind = scripted(ended=Outcome.CREATED)
    one = trial(plan_of(SCRIPTED), plugins={"scripted": kind}, grace_s=PATIENCE_S)
    assert one.run() is PlanState.SUCCEEDED
    assert one.plan().actions[0].outcome == "created"


def test_what_timed_out_is_tried_again(trial, scripted):
    kind = scripted()
    one = trial(
        plan_of(SCRIPTED),
        plugins={"scripted": kind},
        policies={"scripted": TypePolicy(retries=1)},
        grace_s=PATIENCE_S,
    )
    assert one.run() is PlanState.FAILED
    assert one.store.started == ["a", "a"]


def test_the_type_says_the_limit_where_the_plan_does_not(trial, scripted):
    one = trial(
        plan_of(nop("a", action_type="scripted")),
        plugins={"scripted": scripted()},
        policies={"scripted": TypePolicy(timeout_s=SOON_S)},
        grace_s=PATIENCE_S,
    )
    assert one.run() is PlanState.FAILED


def test_an_abort_that_hangs_holds_up_nobody(trial, scripted):
    kind = scripted()
    kind.abort = lambda _action: kind.go.wait()
    one = trial(plan_of(SCRIPTED), plugins={"scripted": kind}, grace_s=PATIENCE_S)
    assert one.run() is PlanState.FAILED


# Given up


def test_what_ignores_its_stop_is_given_up_and_its_worker_replaced(trial, scripted, caplog):
    plan = plan_of(SCRIPTED, *(nop(f"b{i}") for i in range(5)))
    one = trial(plan, plugins={"scripted": scripted(obeys=False)}, max_workers=1)
    assert one.run() is PlanState.FAILED
    assert one.states() == {"a": "UNKNOWN", **{f"b{i}": "SUCCEEDED" for i in range(5)}}
    assert one.messages()["a"] == "hangs: its thread was given up"


def test_a_report_that_comes_after_all_is_dropped(trial, scripted, caplog):
    kind = scripted(obeys=False, ended=Outcome.CHANGED)
    one = trial(plan_of(SCRIPTED, nop("b")), plugins={"scripted": kind})
    logged = threading.Event()

    def work(parameters, context, stop):
        deadline = threading.Event()
        for _ in range(int(PATIENCE_S / 0.01)):
            if "its thread was given up" in caplog.text:
                kind.go.set()
            if "has ended now" in caplog.text:
                logged.set()
                break
            deadline.wait(0.01)
        return Outcome.CHANGED

    one.work = work
    assert one.run() is PlanState.FAILED
    assert logged.is_set(), "the engine took no note of it"
    assert one.states() == {"a": "UNKNOWN", "b": "SUCCEEDED"}


def test_a_cancel_waits_no_longer_than_the_grace(trial, scripted):
    kind = scripted(obeys=False)
    plan = plan_of(nop("a", action_type="scripted"), nop("b", parents=("a",)))
    one = trial(plan, plugins={"scripted": kind}, request_interval_s=0.005)
    cancel_when(one, kind.began)
    assert one.run() is PlanState.CANCELLED
    assert one.states() == {"a": "UNKNOWN", "b": "CANCELLED"}
    assert one.plan().status_message.startswith("cancelled by ann; ")
    assert aborted_once(kind)


def cancel_when(one, event):
    def ask():
        event.wait(PATIENCE_S)
        one.runner.cancel("ann")

    threading.Thread(target=ask, daemon=True).start()


# Aborts


def test_an_abort_ends_one_action(trial, scripted):
    kind = scripted()
    plan = plan_of(nop("a", action_type="scripted"), nop("b", needs=("a",)), nop("c"))
    one = trial(plan, plugins={"scripted": kind}, request_interval_s=0.005, grace_s=PATIENCE_S)
    abort = Request(verb="abort", who="ann", action="a")

    def work(parameters, context, stop):
        assert kind.began.wait(PATIENCE_S)
        one.store.add_request("plan", abort, now=NOW)
        return Outcome.CHANGED

    one.work = work
    assert one.run() is PlanState.FAILED
    assert one.states() == {"a": "CANCELLED", "b": "FAILED_DEPENDENCIES", "c": "SUCCEEDED"}
    assert one.messages()["a"] == "aborted: it was stopped"


# Actions that only wait


def waiting(uuid, kind="sleep", seconds=SOON_S, **fields):
    parameters = {"sleep": "duration", "pause": "seconds"}[kind]
    return Action(
        uuid=uuid, name=uuid, action_type=kind, input_parameters={parameters: seconds}, **fields
    )


WAITING = {"sleep": Sleep, "pause": Pause}


def test_what_begins_while_no_thread_is_granted_runs_once_one_is(trial, monkeypatch):
    granted, grow = iter([False] * 3), ThreadPool.grow

    def scarce(pool, number, extra=0):
        if not next(granted, True):
            raise RuntimeError("can't start new thread")
        grow(pool, number, extra)

    monkeypatch.setattr(ThreadPool, "grow", scarce)
    one = trial(plan_of(nop("a"), nop("b")), request_interval_s=0.005)
    assert one.run() is PlanState.SUCCEEDED


def test_what_only_waits_holds_no_thread(trial, monkeypatch):
    def no_thread(*_given):
        raise AssertionError("a thread for nothing")

    monkeypatch.setattr("applier.engines.attempts_in_progress.ThreadPool.submit", no_thread)
    plan = plan_of(*(waiting(f"a{i}") for i in range(6)), waiting("p", "pause"))
    one = trial(plan, plugins=WAITING)
    assert one.run() is PlanState.SUCCEEDED
    assert {a.outcome for a in one.plan().actions} == {Outcome.CHANGED}


def test_a_sleep_counts_against_the_workers_and_a_pause_does_not(trial):
    plan = plan_of(
        waiting("s1", seconds=0),
        waiting("s2", seconds=0),
        *(waiting(f"p{i}", "pause", seconds=0) for i in range(3)),
    )
    one = trial(plan, plugins=WAITING, max_workers=1)
    assert one.run() is PlanState.SUCCEEDED
    first = {r.uuid for r in one.store.commits[0]}
    assert first == {"s1", "p0", "p1", "p2"}


def test_a_stop_ends_a_wait_at_once(trial):
    plan = plan_of(waiting("a", seconds=3600), nop("b"))
    one = trial(plan, plugins=WAITING, grace_s=PATIENCE_S)

    def work(*given):
        one.runner.cancel("ann")
        return Outcome.CHANGED

    one.work = work
    assert one.run() is PlanState.CANCELLED
    assert one.states() == {"a": "CANCELLED", "b": "SUCCEEDED"}
    assert one.messages()["a"] == "aborted: it was to wait for 3600 s"


def test_a_type_that_cannot_say_how_long_it_waits_is_executed(trial, caplog):
    kind = type("Broken", (Pause,), {"waits_s": classmethod(lambda *_given: 1 / 0)})
    one = trial(plan_of(waiting("a", "pause", seconds=0)), plugins={"pause": kind})
    assert one.run() is PlanState.SUCCEEDED


# Limits on a running plan


def test_limits_change_while_the_plan_runs(trial):
    """Four at once; after the request, one after the other."""
    one = trial(
        plan_of(*(nop(f"a{i}") for i in range(12))), max_workers=4, request_interval_s=0.005
    )
    together = threading.Barrier(4)
    request = Request(verb="limit", who="ann", limits={"max_workers": 1})
    inside, most, lock = [], [], threading.Lock()

    def work(parameters, context, stop):
        with lock:
            inside.append(parameters["uuid"])
            most.append(len(inside))
        if parameters["uuid"] in ("a0", "a1", "a2", "a3"):
            if together.wait(PATIENCE_S) == 0:
                one.store.add_request("plan", request, now=NOW)
                one.store.heard.clear()
            assert one.store.heard.wait(PATIENCE_S)
        with lock:
            inside.remove(parameters["uuid"])
        return Outcome.CHANGED

    one.work = work
    assert one.run() is PlanState.SUCCEEDED
    assert most[:4] == [1, 2, 3, 4]
    starts = [sum(r.state == "ONGOING" for r in batch) for batch in one.store.commits]
    assert max(starts[-5:]) == 1


def test_more_workers_are_there_at_once(trial):
    one = trial(plan_of(nop("a"), nop("b")), max_workers=1, request_interval_s=0.005)
    one.store.max_workers = 2
    together = threading.Barrier(2)

    def work(parameters, context, stop):
        if parameters["uuid"] == "a":
            one.store.add_request(
                "plan", Request(verb="limit", who="ann", limits={"max_workers": 2}), now=NOW
            )
        together.wait(PATIENCE_S)
        return Outcome.CHANGED

    one.work = work
    assert one.run() is PlanState.SUCCEEDED


# What plugins do


def test_what_ends_at_once_takes_no_worker(trial):
    """While the only worker is busy, it is skipped, and what comes after both is not held up."""
    skipped = {"reason": "its condition is false"}
    plan = plan_of(
        nop("a"),
        *(
            nop(name, action_type="skipped", input_parameters=skipped, needs=needs)
            for name, needs in (("b", ()), ("c", ("b",)), ("d", ("c",)))
        ),
        nop("e", needs=("d",)),
    )
    ended = threading.Event()

    def work(parameters, context, stop):
        if parameters["uuid"] == "a":
            assert ended.wait(PATIENCE_S), "it waited for the worker"
        return Outcome.CHANGED

    one = trial(plan, work, max_workers=1, plugins={"skipped": Skipped})

    def note(reports):
        if any(r.uuid == "d" and r.state is ActionState.SKIPPED for r in reports):
            ended.set()

    one.store.before_commit = note
    assert one.run() is PlanState.SUCCEEDED
    states = one.states()
    assert {name for name, state in states.items() if state == "SKIPPED"} == {"b", "c", "d"}
    assert one.messages()["b"] == "its condition is false"
