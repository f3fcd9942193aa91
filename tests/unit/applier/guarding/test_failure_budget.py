# SPDX-License-Identifier: Apache-2.0
"""A plan whose actions fail too often is paused, with the reason."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from sample_plans import new_plan
from trials import Trial

from applier.contracts import HistoryEntry
from applier.engines.taskflow_engine import TaskFlowEngine
from applier.errors import ActionFailed
from applier.guarding import failure_budget as failures
from applier.guarding.failure_budget import FailureBudget
from planner.guards import failure_budget
from planner.plan.model import Action
from planner.plan.states import ActionState, PlanState

FAILED, UNKNOWN, DONE = ActionState.FAILED, ActionState.UNKNOWN, ActionState.SUCCEEDED


def actions(**types):
    return [
        Action(uuid=f"{name}{n}", name=f"{name}-{n}", action_type=name)
        for name, number in types.items()
        for n in range(number)
    ]


class Counted:
    """A budget, with a clock that a test sets."""

    def __init__(self, text, **types):
        self.now, self.actions = 0.0, actions(**types)
        texts = failure_budget.budgets(text)
        self.budget = FailureBudget(texts, self.actions, lambda: self.now)

    def fails(self, index, state=FAILED, after_s=0.0):
        self.now += after_s
        return self.budget.note(self.actions[index], state)


def test_more_failures_than_the_budget_are_told_with_the_last_one():
    counted = Counted("1", migrate=3)
    assert counted.fails(0) is None
    assert counted.fails(1, DONE) is None
    told = counted.fails(2, UNKNOWN)
    for fact in ("2 actions ", "migrate-2", "budget is 1"):
        assert fact in told
    assert "nop-0" in Counted("0", nop=1).fails(0)


def test_failures_of_long_ago_do_not_count():
    counted = Counted("1 in 1h", nop=9)
    assert counted.fails(0) is None
    assert counted.fails(1, after_s=3601) is None
    assert counted.fails(2, after_s=3600)


def test_a_share_is_of_the_actions_of_the_type():
    counted = Counted("migrate=20%, nop=0", migrate=10, nop=2)
    assert [counted.fails(n) for n in (0, 1)] == [None, None]
    assert "3 migrate actions failed" in counted.fails(2)
    assert "the failure budget is nop=0" in counted.fails(10)
    assert Counted("stop=0", nop=1).fails(0) is None


def test_what_failed_in_earlier_runs_counts_until_an_operator_looks():
    at, found = datetime(2026, 11, 24, tzinfo=UTC), actions(nop=4)
    ended = [
        replace(a, state=state, ended_at=at - timedelta(minutes=minutes))
        for a, (state, minutes) in zip(
            found, [(FAILED, 50), (DONE, 45), (UNKNOWN, 40), (FAILED, 10)], strict=True
        )
    ]

    def looked(verb):
        return HistoryEntry(verb=verb, who="ada", at=at - timedelta(minutes=30))

    def budget_of(text, *history):
        before = failures.earlier(ended, history, at)
        return FailureBudget([text], ended, lambda: 0.0, before)

    told = budget_of("2 in 1h").exceeded()
    for fact in ("3 actions ", "nop-3", "budget is 2 in 1h"):
        assert fact in told
    assert budget_of("3 in 1h").exceeded() is None
    assert budget_of("3 in 1h").note(ended[1], FAILED)
    assert budget_of("2 in 45m").exceeded() is None
    assert budget_of("2", looked("start")).exceeded() is None
    assert "nop-3" in budget_of("0", looked("start")).exceeded()
    assert budget_of("2 in 1h", looked("apply"), looked("resume")).exceeded() == told


def test_a_run_that_begins_with_an_exceeded_budget_starts_nothing():
    plan = new_plan("a", "b", state=PlanState.PENDING)
    gone = replace(plan.actions[0], state=FAILED, ended_at=plan.created_at, attempts=1)
    plan = replace(plan, actions=(gone, replace(plan.actions[1], parents=())))

    def budget_of(found):
        before = failures.earlier(found.actions, [], plan.created_at)
        return FailureBudget(["0"], found.actions, lambda: 0.0, before)

    engine = TaskFlowEngine(max_workers=1)
    with Trial(plan, engine, max_workers=1, budget_of=budget_of) as trial:
        assert trial.run() is PlanState.PAUSED
        assert list(trial.states().values()) == ["FAILED", "PENDING"]
        for fact in ("by the failure budget", "1 action ", "one a,", "budget is 0"):
            assert fact in trial.plan().status_message


def test_a_plan_is_paused_and_the_rest_does_not_start():
    plan = new_plan(*"abcd", state=PlanState.PENDING)
    bare = [a.uuid for a in plan.actions]

    def work(parameters, _context, _stop):
        raise ActionFailed(f"no {bare.index(parameters['uuid'])}")

    plan = replace(plan, actions=tuple(replace(a, parents=()) for a in plan.actions))
    engine = TaskFlowEngine(max_workers=1)

    def budget_of(found):
        return FailureBudget(["1 in 1h"], found.actions, lambda: 0.0)

    with Trial(plan, engine, work, max_workers=1, budget_of=budget_of) as trial:
        assert trial.run() is PlanState.PAUSED
        assert list(trial.states().values()) == ["FAILED", "FAILED", "PENDING", "PENDING"]
        for fact in ("2 actions ", "one b,", "budget is 1 in 1h"):
            assert fact in trial.plan().status_message
