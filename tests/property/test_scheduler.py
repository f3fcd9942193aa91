# SPDX-License-Identifier: Apache-2.0
"""The scheduler against the rules as they are written down: plans and orders of ends at random."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import replace

from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from random_plans import expected_ends, random_fate, random_plan

from applier.contracts import Report, Request
from applier.scheduling import waiting
from applier.scheduling.concurrency import Concurrency
from applier.scheduling.failures import FailureRules, OnFailure
from applier.scheduling.gates import Gates
from applier.scheduling.scheduler import Decisions, HaltReason, Scheduler
from applier.scheduling.verdict import ActionEnd, ends
from planner.plan.model import JOIN, Action, ActionPlan
from planner.plan.states import ActionState

seeds = st.integers(0, 1_000_000)
policies = st.sampled_from([OnFailure.SKIP_DESCENDANTS, OnFailure.CONTINUE])
often = settings(max_examples=examples(200))


def in_state_of(
    action: Action, ended: Mapping[str, ActionEnd], continued: Collection[str]
) -> Action:
    """Give an action the end that it had in an earlier run, or let it run since then."""
    if action.uuid in ended:
        return replace(action, **ended[action.uuid]._asdict())
    return replace(action, state=ActionState.ONGOING) if action.uuid in continued else action


class Drive:
    """Drives a scheduler in an order of ends at random, and checks what no order may break."""

    def __init__(
        self,
        plan: ActionPlan,
        seed: int,
        *,
        groups: bool = True,
        max_workers: int = 4,
        ended: Mapping[str, ActionEnd] | None = None,
        continued: Collection[str] = (),
        **options,
    ) -> None:
        actions = [in_state_of(a, ended or {}, continued) for a in plan.actions]
        self.plan, self.chance, self.fate = plan, random.Random(seed), random_fate(seed)
        self.actions = {a.uuid: a for a in actions}
        self.ends: dict[str, ActionEnd] = ends(actions)
        self.ran: list[str] = []
        gone = waiting.completed(actions, self.ends)
        links = waiting.links(actions, gone)
        if not groups:
            left = [a for a in actions if a.uuid not in gone]
            links = {a.uuid: [b.uuid for b in left if a.uuid in b.before()] for a in left}
        self.workers, ranks = max_workers, options.pop("ranks", None)
        concurrency = Concurrency(limits=plan.limits, max_workers=max_workers)
        self.scheduler = Scheduler(actions, links, concurrency, FailureRules(**options), ranks)
        self.limit = Gates(plan.limits, 1).limit

    def run(self, requests_at: dict[int, list[Request]] | None = None) -> dict[str, ActionEnd]:
        requests = dict(requests_at or {})
        turn, number = self.scheduler.begin(requests.get(0, ())), 0
        self.take(turn)
        while not self.scheduler.done:
            number += 1
            running = list(self.scheduler.running)
            some = self.chance.sample(running, self.chance.randint(1, len(running)))
            reports = [self.report(uuid) for uuid in some]
            for report in reports:
                self.note(report)
            self.take(self.scheduler.decide(reports, requests.get(number, ())))
        assert not self.scheduler.running
        return self.ends

    def report(self, uuid: str) -> Report:
        end = self.fate(uuid)
        return Report(uuid=uuid, old=ActionState.ONGOING, state=end.state, outcome=end.outcome)

    def note(self, report: Report) -> None:
        assert report.uuid not in self.ends, "an action ends once"
        self.ends[report.uuid] = ActionEnd(report.state, report.outcome)

    def take(self, turn: Decisions) -> None:
        for report in turn.ended:
            assert report.old is ActionState.PENDING
            assert report.uuid not in self.scheduler.running, "what runs ends by its own report"
            self.note(report)
        for uuid in turn.starts:
            assert uuid not in self.ends, "what has ended does not start"
            assert self.actions[uuid].action_type != JOIN, "a join takes no worker"
            assert all(u in self.ends for u in self.actions[uuid].before()), "all before has ended"
        self.ran += turn.starts
        self.check_limits()

    def check_limits(self) -> None:
        running = list(self.scheduler.running)
        assert len(running) <= self.workers, "max_workers holds"
        held = [t for uuid in running for t in self.actions[uuid].tokens]
        for token in set(held):
            limit = self.limit(token)
            assert limit is None or held.count(token) <= limit, f"the limit of {token} holds"


@often
@given(seeds, policies, st.booleans(), st.integers(1, 6), st.integers(0, 6), st.integers(0, 3))
def test_every_action_ends_as_the_rules_say_also_if_some_are_skipped(
    seed, policy, groups, workers, number, skips
):
    plan = random_plan(seed)
    wanted = {a.uuid for a in random.Random(seed).sample(plan.actions, skips)}
    requests = [Request(verb="skip", who="ann", action=uuid) for uuid in wanted]
    drive = Drive(plan, seed, groups=groups, on_failure=policy, max_workers=workers)
    found = drive.run({number: requests})
    skipped = wanted.difference(drive.ran)
    if number == 0:
        assert skipped == wanted, "a request that is there from the beginning is never too late"
    too_late = {u for u in skipped if found[u].state is not ActionState.SKIPPED}
    assert found == expected_ends(plan, random_fate(seed), policy, skipped=skipped - too_late)


@often
@given(seeds, policies, st.integers(0, 12))
def test_a_paused_plan_that_goes_on_ends_as_if_it_had_never_paused(seed, policy, number):
    plan = random_plan(seed)
    first = Drive(plan, seed, on_failure=policy)
    ended = dict(first.run({number: [Request(verb="pause", who="ann")]}))
    second = Drive(plan, seed, on_failure=policy, ended=ended)
    assert second.run() == expected_ends(plan, random_fate(seed), policy)
    assert not set(first.ran) & set(second.ran), "nothing runs twice"


@often
@given(seeds)
def test_what_ended_early_still_orders_what_comes_after_it(seed):
    """An operator skipped some before the plan ran: what is behind waits for what is before."""
    plan = random_plan(seed)
    chance = random.Random(seed)
    ended = {a.uuid: ActionEnd(ActionState.SKIPPED) for a in chance.sample(plan.actions, 5)}
    drive = Drive(plan, seed, ended=ended)
    assert drive.run() == expected_ends(plan, random_fate(seed), ended=ended)
    position = {uuid: i for i, uuid in enumerate(drive.ran)}
    for action in plan.actions:
        for middle in set(action.before()) & set(ended):
            for first in drive.actions[middle].before():
                if action.uuid in position and first in position:
                    assert position[first] < position[action.uuid], f"order through {middle}"


@often
@given(seeds, policies, st.integers(0, 12), st.integers(1, 4))
def test_what_goes_on_from_an_earlier_run_holds_what_it_held(seed, policy, number, workers):
    """An applier died: its running actions run in the next run from the beginning, not started."""
    plan = random_plan(seed)
    first = Drive(plan, seed, on_failure=policy)
    turn = first.scheduler.begin()
    first.take(turn)
    for _ in range(number):
        if not first.scheduler.running:
            break
        reports = [first.report(first.chance.choice(list(first.scheduler.running)))]
        first.note(reports[0])
        first.take(first.scheduler.decide(reports))
    running = list(first.scheduler.running)
    second = Drive(
        plan,
        seed,
        on_failure=policy,
        ended=dict(first.ends),
        continued=running,
        max_workers=max(workers, len(running), 1),
    )
    assert set(second.scheduler.running) == set(running)
    assert second.run() == expected_ends(plan, random_fate(seed), policy)
    assert not set(first.ran) & set(second.ran), "nothing is started twice"


@often
@given(seeds)
def test_pausing_on_failure_starts_nothing_after_the_failure(seed):
    plan = random_plan(seed)
    drive = Drive(plan, seed, on_failure=OnFailure.PAUSE)
    found = drive.run()
    if len(found) < len(plan.actions):
        assert any(end.state is ActionState.FAILED for end in found.values())
        assert drive.scheduler.stopped is HaltReason.PAUSED
        blocked = ActionState.FAILED_DEPENDENCIES
        assert blocked not in {end.state for end in found.values()}, "a retry may yet succeed"


@often
@given(seeds)
def test_with_one_worker_actions_start_by_rank(seed):
    """Of those that wait at the gates, and whose tokens are free, the lowest rank starts."""
    plan = random_plan(seed)
    uuids = [a.uuid for a in plan.actions]
    ranks = dict(zip(random.Random(seed).sample(uuids, len(uuids)), range(len(uuids)), strict=True))
    drive = Drive(plan, seed, ranks=ranks, max_workers=1)
    waiting: set[str] = set()
    turn = drive.scheduler.begin()
    while not drive.scheduler.done:
        (started,) = turn.starts
        waiting = {u for u in uuids if _waits_for_a_worker(drive.scheduler, u)}
        assert all(ranks[started] < ranks[u] for u in waiting)
        turn = drive.scheduler.decide([drive.report(started)])


def _waits_for_a_worker(scheduler: Scheduler, uuid: str) -> bool:
    why = scheduler.why(uuid)
    return why is not None and why.kind == "worker"
