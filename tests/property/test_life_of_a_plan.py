# SPDX-License-Identifier: Apache-2.0
"""The life of a plan: whatever operators, failures and crashes do to it, in any order.

One thread plays the applier: the scheduler says what starts, the recorder writes it, and a world of
counters stands for what actions do. A crash drops all of that but the store and the world.
"""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from examples import examples
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from random_plans import random_plan
from temporary_store import TemporaryStore
from trials import CLAIMANT

from applier.contracts import Report, Request, Verified
from applier.engines.recorder import Recorder
from applier.errors import PlanConflict
from applier.run.resume import to_reset
from applier.scheduling import waiting
from applier.scheduling.concurrency import Concurrency
from applier.scheduling.decisions import Decisions
from applier.scheduling.failures import FailureRules, OnFailure, TypePolicy
from applier.scheduling.final_state import fold
from applier.scheduling.gates import Gates
from applier.scheduling.interrupted import TO_VERIFY, decide
from applier.scheduling.scheduler import Scheduler
from applier.scheduling.verdict import ends
from applier.storage import check_and_backup
from applier.storage.sql_store import SqlStore
from planner.plan.model import JOIN, Action, ActionPlan
from planner.plan.states import (
    ACTION_TRANSITIONS,
    ENDED_PLAN,
    OPEN,
    PLAN_TRANSITIONS,
    ActionState,
    Outcome,
    PlanState,
)

NOW = datetime(2026, 11, 21, tzinfo=UTC)
WORKERS = 3
#: Types of actions: one that can be verified, one that may run again, and one that is neither.
SURE, SAFE, DOUBTFUL = "sure", "safe", "doubtful"
POLICIES = {SURE: TypePolicy(retries=1, retry_delay_s=1.0)}
#: How an operator finds a plan that nobody runs and that may go on.
STANDS = {PlanState.ONGOING, PlanState.CANCELLING, PlanState.PAUSED} | {
    PlanState.FAILED,
    PlanState.CANCELLED,
}
DIED = {PlanState.ONGOING, PlanState.CANCELLING}
NOT_STARTED = {PlanState.RECOMMENDED, PlanState.PENDING, PlanState.PAUSED}


def reachable(table):
    """Return all pairs of states that steps of a table lead from and to."""
    pairs = {(t.old, t.new) for t in table}
    while more := {(a, d) for a, b in pairs for c, d in pairs if b is c} - pairs:
        pairs |= more
    return pairs


MOVES = {
    **dict.fromkeys(reachable(ACTION_TRANSITIONS)),
    **dict.fromkeys(reachable(PLAN_TRANSITIONS)),
}


class World:
    """What the actions did: it survives every crash."""

    def __init__(self, plan: ActionPlan, failures: dict[str, int]) -> None:
        self.actions = {a.uuid: a for a in plan.actions}
        self.failures, self.done = failures, Counter()

    def work(self, uuid: str) -> Report:
        """Do what an action does, which fails a few times."""
        if self.failures.get(uuid, 0):
            self.failures[uuid] -= 1
            return report(uuid, ActionState.FAILED, Outcome.FAILED)
        self.done[uuid] += 1
        twice = self.actions[uuid].action_type != SAFE and self.done[uuid] > 1
        assert not twice, f"{uuid} was done twice"
        return report(uuid, ActionState.SUCCEEDED, Outcome.CHANGED)

    def verify(self, action: Action) -> Verified:
        """Say what a plugin would find."""
        if action.action_type != SURE:
            return Verified.IN_DOUBT
        return Verified.DONE if self.done[action.uuid] else Verified.NOT_DONE


def report(uuid: str, state: ActionState, how: Outcome | None = None, **more) -> Report:
    """Say how an action that runs has ended."""
    return Report(uuid=uuid, old=ActionState.ONGOING, state=state, outcome=how, **more)


class Applier:
    """Does what runner and engine do, one turn at a time."""

    def __init__(self, store: SqlStore, uuid: str, world: World) -> None:
        earlier = store.requests(uuid)
        self.claim = store.claim_plan(uuid, CLAIMANT, now=NOW)
        plan = store.load_plan(uuid)
        self.store, self.uuid, self.world = store, uuid, world
        self.recorder = Recorder(store, plan, self.claim, clock=lambda: NOW)
        found = [
            decide(a, world.verify(a), rerun_safe=a.action_type == SAFE)
            for a in plan.actions
            if a.state in TO_VERIFY
        ]
        self.recorder.commit(Decisions(ended=[report for report in found if report]))
        plan = store.load_plan(uuid)
        self.gates = Gates(plan.limits, WORKERS)
        self.workers = WORKERS
        self.running: dict[str, Report | None] = {}
        self.stopped, self.lost, self.delayed = set(), [], []
        self.heard = len(earlier)
        self.scheduler = Scheduler(
            plan.actions,
            waiting.links(plan.actions, waiting.completed(plan.actions, ends(plan.actions))),
            Concurrency(limits=plan.limits, max_workers=WORKERS),
            FailureRules(on_failure=OnFailure(plan.on_failure), policies=POLICIES),
        )
        self.begun = False
        self.before = [w for w in earlier if w.verb in ("skip", "limit")]

    def turn(self, *, elapsed: bool, dies: bool) -> PlanState | None:
        """Take everything in, write it, do it; gives the state of the plan once it has ended."""
        requests = [*self.before, *self.store.requests(self.uuid, self.heard)]
        self.before, self.heard = [], len(self.store.requests(self.uuid))
        self._hear(requests)
        incoming = [found for found in self.running.values() if found is not None]
        over, self.delayed = (self.delayed, []) if elapsed else ([], self.delayed)
        if self.begun:
            turn = self.scheduler.decide(incoming, requests, elapsed=over)
        else:
            turn, self.begun = self.scheduler.begin(requests), True
        if dies:
            return None
        self.recorder.incoming += incoming
        self.recorder.commit(turn)
        self._carry_out(turn, incoming)
        if not self.scheduler.done:
            return None
        state, message = fold(self.recorder.states.values(), self.scheduler.halt)
        self.recorder.move(state, message)
        return state

    def _hear(self, requests: list[Request]) -> None:
        for request in requests:
            for name, number in request.limits.items():
                if name == "max_workers":
                    self.workers = number
                else:
                    self.gates.set_limit(name, number)

    def _carry_out(self, turn: Decisions, incoming: list[Report]) -> None:
        for ended in incoming:
            del self.running[ended.uuid]
            self.stopped.discard(ended.uuid)
            if ended.given_up:
                self.lost.append(ended.uuid)
        self.delayed += [uuid for uuid, _ in turn.delays]
        self.stopped |= set(turn.stops)
        for uuid in turn.starts:
            self._start(self.world.actions[uuid])

    def _start(self, action: Action) -> None:
        self.running[action.uuid] = None
        assert len(self.running) <= self.workers, "more run at once than there are workers"
        held = Counter(t for u in [*self.running, *self.lost] for t in self.world.actions[u].tokens)
        for token in action.tokens:
            limit = self.gates.limit(token)
            assert limit is None or held[token] <= limit, f"{token} is held too often"
        for uuid in action.before():
            assert self.recorder.states[uuid] not in OPEN, f"{uuid} has not ended"


class LifeOfAPlan(RuleBasedStateMachine):
    """One plan, from RECOMMENDED on."""

    @initialize(
        seed=st.integers(0, 10_000),
        policy=st.sampled_from(OnFailure),
        state=st.sampled_from([PlanState.PENDING, PlanState.RECOMMENDED]),
    )
    def begin(self, seed, policy, state):
        plan = random_plan(seed, 12)
        types = (SURE, DOUBTFUL, SAFE, DOUBTFUL)
        actions = tuple(
            a if a.action_type == JOIN else replace(a, action_type=types[number % 4])
            for number, a in enumerate(plan.actions)
        )
        self.store, self.uuid = TemporaryStore(), plan.uuid
        plan = replace(plan, actions=actions, state=state, on_failure=str(policy))
        self.store.save_plan(plan)
        self.world = World(plan, {a.uuid: (seed + i) % 4 % 3 for i, a in enumerate(actions[::3])})
        self.applier: Applier | None = None
        self.ghost: Applier | None = None
        self.seen = plan

    @property
    def plan(self) -> ActionPlan:
        """The plan as it is on record."""
        return self.store.refresh_plan(self.seen)

    def some(self, data, states: set[ActionState]) -> str | None:
        """Choose an action in one of these states, if there is one."""
        found = [a.uuid for a in self.seen.actions if a.state in states]
        return data.draw(st.sampled_from(found)) if found else None

    @precondition(lambda self: self.seen.state is PlanState.RECOMMENDED)
    @rule()
    def start(self):
        self.store.move_plan(self.uuid, PlanState.PENDING, now=NOW)

    @precondition(lambda self: self.seen.state is PlanState.PENDING)
    @rule()
    def claim(self):
        self.applier = Applier(self.store, self.uuid, self.world)
        self.turn(elapsed=False)

    @precondition(lambda self: self.applier and self.applier.running)
    @rule(data=st.data(), number=st.integers(1, WORKERS))
    def work(self, data, number):
        """A few actions come to their end; nobody has written it down yet."""
        for uuid in list(self.applier.running)[:number]:
            if self.applier.running[uuid] is not None:
                continue
            if uuid in self.applier.stopped:
                hangs = data.draw(st.booleans())
                state = ActionState.UNKNOWN if hangs else ActionState.CANCELLED
                self.applier.running[uuid] = report(uuid, state, given_up=hangs)
            else:
                self.applier.running[uuid] = self.world.work(uuid)

    @precondition(lambda self: self.applier)
    @rule(turns=st.integers(1, 5))
    def run_on(self, turns):
        """A few turns in which nothing happens but work."""
        for _ in range(turns):
            if self.applier is not None:
                self.finish_all()
                self.turn(elapsed=True)

    @precondition(lambda self: self.applier)
    @rule(elapsed=st.booleans())
    def turn(self, elapsed):
        if self.applier.turn(elapsed=elapsed, dies=False) is not None:
            self.applier = None

    @precondition(lambda self: self.applier)
    @rule(data=st.data(), verb=st.sampled_from(["pause", "cancel", "skip", "abort", "limit"]))
    def request(self, data, verb):
        action = self.some(data, OPEN) if verb in ("skip", "abort") else None
        token = data.draw(st.sampled_from(["type:a", "node:0", "node:*", "max_workers"]))
        limits = {token: data.draw(st.integers(1, 3))} if verb == "limit" else {}
        request = Request(verb=verb, who="ann", action=action, limits=limits)
        self.store.add_request(self.uuid, request, now=NOW)

    @precondition(lambda self: self.applier)
    @rule(worked=st.booleans(), in_commit=st.booleans())
    def crash(self, worked, in_commit):
        if worked:
            self.finish_all()
        if in_commit:
            self.applier.turn(elapsed=True, dies=True)
        self.ghost, self.applier = self.applier, None

    @precondition(lambda self: self.ghost and self.seen.state not in DIED)
    @rule()
    def who_was_taken_for_dead_can_write_nothing(self):
        ghost = self.ghost
        pending = [u for u, s in ghost.recorder.states.items() if s is ActionState.PENDING]
        with pytest.raises(PlanConflict):
            self.store.beat(self.uuid, ghost.claim, now=NOW)
        if pending:
            with pytest.raises(PlanConflict):
                ghost.recorder.commit(Decisions(starts=pending[:1]))
        self.ghost = None

    @precondition(lambda self: self.applier is None and self.seen.state in STANDS)
    @rule()
    def resume(self):
        self.store.resume_plan(self.uuid, to_reset(self.seen), now=NOW)

    @precondition(lambda self: self.applier is None and self.seen.state not in DIED)
    @rule(data=st.data())
    def settle(self, data):
        uuid = self.some(data, {ActionState.UNKNOWN})
        if uuid is not None:
            done = self.world.done[uuid] > 0
            state = ActionState.SUCCEEDED if done else ActionState.FAILED
            self.store.settle_action(self.uuid, uuid, state, now=NOW, message="ann looked")

    @precondition(lambda self: self.applier is None and self.seen.state in NOT_STARTED)
    @rule(data=st.data())
    def skip_what_nobody_runs(self, data):
        uuid = self.some(data, {ActionState.PENDING})
        if uuid is not None:
            self.store.skip_action(self.uuid, uuid, now=NOW, message="skipped by ann")

    @precondition(lambda self: self.applier is None and self.seen.state in NOT_STARTED)
    @rule(sure=st.sampled_from([False, False, False, True]))
    def cancel_what_nobody_runs(self, sure):
        if sure:
            self.store.move_plan(self.uuid, PlanState.CANCELLED, now=NOW)

    @invariant()
    def states_move_along_the_table_and_what_succeeded_stays(self):
        if not hasattr(self, "seen"):
            return
        before, self.seen = self.seen, self.plan
        pairs = [(before.state, self.seen.state)]
        old, new = before.actions, self.seen.actions
        pairs += [(a.state, b.state) for a, b in zip(old, new, strict=True)]
        for pair in pairs:
            assert pair[0] is pair[1] or pair in MOVES, pair
        for a, b in zip(old, new, strict=True):
            succeeded = a.state is ActionState.SUCCEEDED
            assert not succeeded or (b.state, b.attempts) == (a.state, a.attempts), b

    @invariant()
    def a_plan_that_ended_has_nothing_open(self):
        if hasattr(self, "seen") and self.seen.state in ENDED_PLAN:
            assert not [a.uuid for a in self.seen.actions if a.state in OPEN]

    @invariant()
    def what_succeeded_was_done(self):
        for action in self.seen.actions if hasattr(self, "seen") else ():
            if action.state is ActionState.SUCCEEDED and action.action_type != JOIN:
                assert self.world.done[action.uuid]

    def teardown(self):
        """Whatever happened, the plan can be brought to its end."""
        if hasattr(self, "seen"):
            with closing(self.store):
                for _ in range(2):
                    assert check_and_backup.check(f"sqlite:///{self.store.path}").problems == []
                    self.bring_to_its_end()

    def bring_to_its_end(self) -> None:
        """Resume and run the plan, if that is allowed."""
        self.seen = self.plan
        if self.applier is None and self.seen.state in STANDS - ENDED_PLAN:
            self.resume()
        if self.applier is None and self.plan.state is PlanState.PENDING:
            self.claim()
        self.drive()
        state = self.plan.state
        assert state in ENDED_PLAN | {PlanState.RECOMMENDED, PlanState.PAUSED}, state
        self.a_plan_that_ended_has_nothing_open()

    def drive(self) -> None:
        """Let whoever has the plan finish it."""
        while self.applier is not None:
            self.finish_all()
            self.turn(elapsed=True)

    def finish_all(self) -> None:
        """Let all that runs come to its end."""
        for uuid, found in self.applier.running.items():
            if found is None and uuid in self.applier.stopped:
                self.applier.running[uuid] = report(uuid, ActionState.CANCELLED)
            elif found is None:
                self.applier.running[uuid] = self.world.work(uuid)


TestLifeOfAPlan = pytest.mark.slow(LifeOfAPlan.TestCase)
TestLifeOfAPlan.settings = settings(max_examples=examples(400), stateful_step_count=40)
