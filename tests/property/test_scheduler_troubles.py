# SPDX-License-Identifier: Apache-2.0
"""The scheduler while operators, other plans, retries and changed limits come between."""

from __future__ import annotations

import random

from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from random_plans import random_fate, random_plan

from applier.contracts import MAX_WORKERS, Report, Request
from applier.scheduling import waiting
from applier.scheduling.concurrency import Concurrency
from applier.scheduling.decisions import Decisions, WaitKind
from applier.scheduling.failures import FailureRules, TypePolicy
from applier.scheduling.gates import Gates
from applier.scheduling.scheduler import Scheduler
from applier.store import Reservation
from planner.plan.model import JOIN, ActionPlan
from planner.plan.states import ActionState

TURNS = 15
NODES = [f"node:{i}" for i in range(4)]


class Troubles:
    """Drives a scheduler with everything that may happen, and checks what may never happen."""

    def __init__(self, plan: ActionPlan, seed: int) -> None:
        self.chance, self.fate = random.Random(seed), random_fate(seed, failing=0.2)
        self.actions = {a.uuid: a for a in plan.actions}
        self.limits, self.workers = dict(plan.limits), self.chance.randint(1, 6)
        self.scheduler = Scheduler(
            plan.actions,
            waiting.links(plan.actions, {}),
            Concurrency(limits=self.limits, max_workers=self.workers),
            FailureRules(policies={"nop": TypePolicy(retries=1, retry_delay_s=5)}),
        )
        self.ended: set[str] = set()
        #: The actions whose retry has a delay, also if they have ended meanwhile.
        self.delayed: set[str] = set()
        self.skipped: set[str] = set()
        self.hanging: set[str] = set()
        self.held: set[str] = set()

    def run(self) -> None:
        """Let trouble come for some turns; then let everything end that can."""
        self.held = self.some_nodes()
        self.take([], self.scheduler.begin(held_by_others=self.reservations()))
        for _ in range(TURNS):
            self.turn(self.requests(), self.some_nodes())
        turns = 0
        while not self.scheduler.done:
            turns += 1
            assert turns <= 3 * len(self.actions), "without trouble a plan comes to its end"
            self.turn([], set())

    def turn(self, requests: list[Request], held: set[str]) -> None:
        running, delayed = list(self.scheduler.running), sorted(self.delayed)
        some = self.chance.sample(running, self.chance.randint(min(1, len(running)), len(running)))
        elapsed = self.chance.sample(delayed, self.chance.randint(0, len(delayed)))
        if not running:
            elapsed = delayed
        reports = [self.report(uuid) for uuid in some]
        self.held = held
        waiting = set(self.actions) - self.ended - set(running)
        self.skipped |= {r.action for r in requests if r.verb == "skip" and r.action in waiting}
        for request in requests:
            for name, number in request.limits.items():
                if name == MAX_WORKERS:
                    self.workers = number
                else:
                    self.limits[name] = number
        turn = self.scheduler.decide(
            reports, requests, elapsed=elapsed, held_by_others=self.reservations()
        )
        self.delayed -= set(elapsed)
        self.take(reports, turn)

    def some_nodes(self) -> set[str]:
        return {node for node in NODES if self.chance.random() < 0.3}

    def reservations(self) -> list[Reservation]:
        return [
            Reservation(resource=node, plan="other", name=None, user="bob") for node in self.held
        ]

    def requests(self) -> list[Request]:
        made = []
        for verb, likely in (("skip", 0.4), ("abort", 0.4), ("limit", 0.2), ("cancel", 0.03)):
            if self.chance.random() < likely:
                limits = {self.chance.choice([*NODES, "type:a", MAX_WORKERS]): 1}
                number = self.chance.randint(1, 4)
                some = [u for u in self.delayed if self.chance.random() < 0.5]
                uuid = self.chance.choice(sorted(some) or list(self.actions))
                made.append(
                    Request(
                        verb=verb,
                        who="ann",
                        action=uuid if verb in ("skip", "abort") else None,
                        limits=dict.fromkeys(limits, number) if verb == "limit" else {},
                    )
                )
        return made

    def report(self, uuid: str) -> Report:
        if self.chance.random() < 0.02:
            state, outcome = ActionState.UNKNOWN, None
            self.hanging.add(uuid)
        else:
            state, outcome = self.fate(uuid)
        return Report(
            uuid=uuid,
            old=ActionState.ONGOING,
            state=state,
            outcome=outcome,
            given_up=uuid in self.hanging,
        )

    def take(self, reports: list[Report], turn: Decisions) -> None:
        again = {uuid for uuid, _ in turn.delays}
        self.delayed |= again
        # Nothing that started is ended behind its back.
        assert all(report.old is ActionState.PENDING for report in turn.ended)
        for report in [*(r for r in reports if r.uuid not in again), *turn.ended]:
            assert report.uuid not in self.ended, "an action ends once"
            self.ended.add(report.uuid)
        for uuid in turn.starts:
            assert self.scheduler.halt is None, "after a halt nothing starts"
            assert uuid not in self.ended | self.delayed | self.skipped
            assert self.ended.issuperset(self.actions[uuid].before())
            self.check_tokens(uuid)
        if turn.starts:
            assert len(self.scheduler.running) <= self.workers
        self.check_reasons()

    def check_tokens(self, uuid: str) -> None:
        """Check that no limit is exceeded, and that no other plan holds what an action needs."""
        assert self.held.isdisjoint(self.actions[uuid].tokens)
        limit = Gates(self.limits, 1).limit
        for token in self.actions[uuid].tokens:
            holders = [*self.scheduler.running, *self.hanging]
            number = sum(token in self.actions[u].tokens for u in holders)
            assert number <= (limit(token) or number)

    def check_reasons(self) -> None:
        """Check that each waiting action has a reason, and that the reason is true."""
        for uuid, action in self.actions.items():
            why = self.scheduler.why(uuid)
            waits = uuid not in self.ended and uuid not in self.scheduler.running
            assert (why is not None) == (waits and self.scheduler.halt is None)
            if why is None:
                continue
            assert self.ended.isdisjoint(set(why.actions) - self.hanging)
            assert (why.kind is WaitKind.DELAY) == (uuid in self.delayed)
            if why.kind is WaitKind.PLAN:
                assert why.token in self.held.intersection(action.tokens)
            elif why.kind in (WaitKind.TOKEN, WaitKind.WORKER):
                assert self.held.isdisjoint(action.tokens)
                assert action.action_type != JOIN


@settings(max_examples=examples(150))
@given(st.integers(0, 1_000_000))
def test_whatever_comes_between_no_rule_is_broken_and_all_actions_end(seed: int) -> None:
    troubles = Troubles(random_plan(seed), seed)
    troubles.run()
    assert troubles.ended == set(troubles.actions)
