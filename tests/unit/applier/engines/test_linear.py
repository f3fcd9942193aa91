# SPDX-License-Identifier: Apache-2.0
"""The engine as taskflow sees it: what it runs, what it refuses, what its listeners hear."""

from __future__ import annotations

import queue
import threading
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from functools import partial

import pytest
from taskflow import engines, exceptions, task
from taskflow.listeners import base as listeners
from taskflow.patterns import graph_flow
from temporary_store import TemporaryStore
from trials import CLAIMANT, changed, plugin

from applier.engines.engine import PlanRun
from applier.engines.environment import ActionEnvironment
from applier.engines.linear import PlanFlow
from applier.engines.recorder import Recorder
from applier.engines.tasks import task_maker
from applier.errors import ActionFailed
from applier.scheduling import waiting
from applier.scheduling.concurrency import Concurrency
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ActionState, Outcome, PlanState

NOW = datetime(2026, 11, 21, tzinfo=UTC)


class Nothing(task.Task):
    def execute(self):
        pass


def plan_of(*actions: Action) -> ActionPlan:
    return ActionPlan(uuid="plan", planner="test", state=PlanState.PENDING, actions=actions)


@pytest.fixture
def engine_for():
    """Return a function that makes an engine for a plan in a store of its own, and returns both."""
    with ExitStack() as stores:

        def make(plan, work=changed, *, links=None, max_workers=2, events=None):
            store = stores.enter_context(closing(TemporaryStore()))
            store.save_plan(plan)
            claim = store.claim_plan(plan.uuid, CLAIMANT, now=NOW)
            make_task = task_maker(plan.actions, ActionEnvironment(plugins={"nop": plugin(work)}))
            run = PlanRun(
                plan=plan,
                recorder=Recorder(store, store.load_plan(plan.uuid), claim, clock=lambda: NOW),
                events=events or queue.SimpleQueue(),
                make_task=make_task,
                concurrency=Concurrency(limits=plan.limits, max_workers=max_workers),
            )
            wanted = waiting.links(plan.actions) if links is None else links
            made = PlanFlow("plan", wanted, make_task)
            return load(made, run=run, max_workers=max_workers), store

        yield make


PAIR = plan_of(
    Action(uuid="a", action_type="nop"), Action(uuid="b", action_type="nop", needs=("a",))
)


class Heard(listeners.Listener):
    """A listener of taskflow's own kind."""

    def __init__(self, engine):
        super().__init__(engine)
        self.lines = []

    def _flow_receiver(self, state, details):
        self.lines.append(f"{details['flow_name']}: {details['old_state']} -> {state}")

    def _task_receiver(self, state, details):
        self.lines.append(f"{details['task_name']}: {details['old_state']} -> {state}")


def test_the_order_is_that_of_the_links_of_the_flow(engine_for):
    plan = plan_of(*(Action(uuid=uuid, action_type="nop") for uuid in "abc"))
    engine, _ = engine_for(plan, links={"a": ["b", "c"], "b": [], "c": []}, max_workers=3)
    with Heard(engine) as heard:
        engine.run()
    assert heard.lines[1:3] == ["a: PENDING -> RUNNING", "a: RUNNING -> SUCCESS"]
    assert heard.lines[-1] == "plan: RUNNING -> SUCCESS"
    assert len(heard.lines) == 8


NO_RUN = PlanRun(
    plan=plan_of(),
    recorder=None,
    events=queue.SimpleQueue(),
    make_task=lambda _: None,
    concurrency=Concurrency(limits={}, max_workers=1),
)
load = partial(engines.load, engine="actionplan", grace_s=30.0)


def test_only_the_flow_of_a_plan_is_run():
    with pytest.raises(exceptions.CompilationFailure, match="is not the flow of a plan"):
        load(graph_flow.Flow("other"), run=NO_RUN, max_workers=1).compile()


def test_options_that_it_cannot_do_without_are_asked_for():
    with pytest.raises(ValueError, match="lacks the options run, max_workers"):
        load(graph_flow.Flow("plan"))


def test_taskflow_listeners_hear_flow_and_tasks(engine_for):
    engine, _ = engine_for(PAIR)
    with Heard(engine) as heard:
        engine.run()
    assert heard.lines == [
        "plan: PENDING -> RUNNING",
        "a: PENDING -> RUNNING",
        "a: RUNNING -> SUCCESS",
        "b: PENDING -> RUNNING",
        "b: RUNNING -> SUCCESS",
        "plan: RUNNING -> SUCCESS",
    ]


def test_taskflow_listeners_hear_of_a_failure_and_of_what_did_not_run(engine_for):
    def work(*_given):
        raise ActionFailed("no")

    engine, _ = engine_for(PAIR, work)
    with Heard(engine) as heard:
        engine.run()
    assert heard.lines[2:] == [
        "a: RUNNING -> FAILURE",
        "b: PENDING -> IGNORE",
        "plan: RUNNING -> FAILURE",
    ]


def test_suspending_pauses(engine_for):
    engine, store = engine_for(PAIR, lambda *_given: engine.suspend() or Outcome.CHANGED)
    with Heard(engine) as heard:
        engine.run()
    assert heard.lines[-2:] == ["plan: RUNNING -> SUSPENDING", "plan: SUSPENDING -> SUSPENDED"]
    assert [str(a.state) for a in store.load_plan("plan").actions] == ["SUCCEEDED", "PENDING"]


def test_statistics_count_turns_and_examined_actions(engine_for):
    engine, _ = engine_for(PAIR)
    assert engine.statistics == {}
    engine.run()
    assert engine.statistics == {"decisions": 3, "examined": 2}


class BothAtOnce(queue.Queue):
    """Gives nothing before two events are there, and does not tell of the second."""

    def __init__(self):
        super().__init__()
        self.put_one = threading.Semaphore(0)

    def put(self, event):
        super().put(event)
        self.put_one.release()

    def get(self, timeout=None):
        if timeout is None:
            self.put_one.acquire()
            self.put_one.acquire()
        return super().get(timeout=timeout)

    def empty(self):
        return True


def test_ends_that_come_one_after_the_other_share_a_commit(engine_for):
    two = plan_of(*(Action(uuid=uuid, action_type="nop") for uuid in "ab"))
    engine, store = engine_for(two, events=BothAtOnce())
    engine.run()
    assert engine.statistics["decisions"] == 2
    assert {a.state for a in store.load_plan("plan").actions} == {ActionState.SUCCEEDED}


def test_the_work_of_a_run_is_linear_in_the_number_of_actions(engine_for):
    """Dense layers: counted are examined actions and turns, not time."""
    counted = {}
    for number in (200, 400):
        actions, before = [], ()
        for start in range(0, number, 20):
            uuids = tuple(f"a{i}" for i in range(start, start + 20))
            actions += [
                Action(uuid=u, action_type="nop", parents=before, needs=before) for u in uuids
            ]
            before = uuids
        engine, _ = engine_for(plan_of(*actions))
        engine.run()
        counted[number] = engine.statistics["examined"]
        assert engine.statistics["decisions"] <= number + 1
    assert counted == {200: 200, 400: 400}


class Inline:
    """Workers that do what they are given at once, in the engine's thread."""

    def __init__(self, _maximum, done):
        self.done = done

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def grow(self, number, extra=0):
        pass

    def submit(self, work):
        self.done(work())


def test_work_begins_after_the_commit_that_holds_its_start(engine_for, monkeypatch):
    """And an end is on record before what depends on it begins."""
    monkeypatch.setattr("applier.engines.attempts_in_progress.ThreadPool", Inline)
    seen = []

    def work(*_given):
        seen.append([str(a.state) for a in store.load_plan("plan").actions])
        return Outcome.CHANGED

    engine, store = engine_for(PAIR, work)
    engine.run()
    assert seen == [["ONGOING", "PENDING"], ["SUCCEEDED", "ONGOING"]]
