# SPDX-License-Identifier: Apache-2.0
"""Our engine beside taskflow's own parallel engine: one flow, the same ends, the same order.

taskflow knows no failure policy that lets a flow go on, so the oracle runs the plans in which
needs are order only: there every action runs, and those that fail tell so in their reports.
"""

from __future__ import annotations

import itertools
import queue
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime

import networkx as nx
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from random_plans import random_fate
from taskflow import engines
from taskflow.patterns import graph_flow
from temporary_store import TemporaryStore
from trials import CLAIMANT, plugin

from applier.contracts import Report
from applier.engines import PlanRun
from applier.engines.environment import ActionEnvironment
from applier.engines.linear import PlanFlow
from applier.engines.recorder import Recorder
from applier.engines.tasks import task_maker
from applier.errors import ActionFailed
from applier.scheduling import waiting
from applier.scheduling.submissions import Concurrency
from applier.scheduling.verdict import ActionEnd, FailureRules, OnFailure
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ActionState, Outcome, PlanState

NOW = datetime(2026, 11, 21, tzinfo=UTC)
WORKERS = 3


@st.composite
def plans(draw) -> ActionPlan:
    """Small acyclic graphs: each action has some of those before it as parents."""
    size = draw(st.integers(1, 9))
    uuids = [f"a{i}" for i in range(size)]
    chosen = [draw(st.sets(st.sampled_from(uuids[:i]))) if i else set() for i in range(size)]
    actions = tuple(
        Action(
            uuid=uuid,
            action_type="nop",
            parents=tuple(sorted(parents)),
            input_parameters={"uuid": uuid},
        )
        for uuid, parents in zip(uuids, chosen, strict=True)
    )
    return ActionPlan(uuid="plan", planner="test", state=PlanState.PENDING, actions=actions)


class Journal:
    """What happened inside the actions: when each began and ended, counted, not timed."""

    def __init__(self, seed: int) -> None:
        self.fate = random_fate(seed, failing=0.3)
        self.clock, self.lock = itertools.count(), threading.Lock()
        self.began: dict[str, int] = {}
        self.ended: dict[str, int] = {}

    def work(self, parameters, context, stop) -> Outcome:
        uuid = parameters["uuid"]
        with self.lock:
            assert uuid not in self.began, "an action runs once"
            self.began[uuid] = next(self.clock)
        end = self.fate(uuid)
        with self.lock:
            self.ended[uuid] = next(self.clock)
        if end.state is ActionState.FAILED:
            raise ActionFailed("fate")
        return end.outcome

    def check_order(self, plan: ActionPlan) -> None:
        for action in plan.actions:
            for parent in action.before():
                assert self.ended[parent] < self.began[action.uuid]


def make_flow(plan: ActionPlan, journal: Journal, groups: bool) -> graph_flow.Flow:
    make_task = task_maker(
        plan.actions, ActionEnvironment(plugins={"nop": plugin(journal.work)}, cloud=lambda: None)
    )
    whole = waiting.open_graph(plan.actions)
    if not groups:
        whole = nx.DiGraph([(one, a.uuid) for a in plan.actions for one in a.before()])
        whole.add_nodes_from(a.uuid for a in plan.actions)
    return PlanFlow("plan", whole, make_task)


def by_taskflow(plan: ActionPlan, journal: Journal, groups: bool) -> dict[str, ActionEnd]:
    # Their own pool idles a second before it ends.
    with ThreadPoolExecutor(WORKERS) as executor:
        engine = engines.load(
            make_flow(plan, journal, groups), engine="parallel", executor=executor
        )
        engine.run()
    reports = [engine.storage.get(a.uuid) for a in plan.actions]
    assert all(isinstance(report, Report) for report in reports)
    return {r.uuid: ActionEnd(r.state, r.outcome) for r in reports}


def by_ours(plan: ActionPlan, journal: Journal, groups: bool) -> dict[str, ActionEnd]:
    with closing(TemporaryStore()) as store:
        store.save_plan(plan)
        claim = store.claim_plan(plan.uuid, CLAIMANT, now=NOW)
        recorder = Recorder(store, store.load_plan(plan.uuid), claim, clock=lambda: NOW)
        run = PlanRun(
            plan=plan,
            recorder=recorder,
            events=queue.SimpleQueue(),
            make_task=lambda _: None,
            concurrency=Concurrency(limits={}, max_workers=WORKERS),
            failures=FailureRules(on_failure=OnFailure.CONTINUE),
        )
        made = make_flow(plan, journal, groups)
        engine = engines.load(made, engine="actionplan", run=run, max_workers=WORKERS, grace_s=30)
        engine.run()
        return {a.uuid: ActionEnd(a.state, a.outcome) for a in store.load_plan(plan.uuid).actions}


@settings(max_examples=examples(60))
@given(plans(), st.integers(0, 1000), st.booleans())
def test_the_engines_agree(plan, seed, groups):
    theirs, ours = Journal(seed), Journal(seed)
    assert by_taskflow(plan, theirs, groups) == by_ours(plan, ours, groups)
    theirs.check_order(plan)
    ours.check_order(plan)
