# SPDX-License-Identifier: Apache-2.0
"""One plan, from PENDING to its end."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from trials import CLAIMANT, Trial, changed

from applier.contracts import Request
from applier.engines.taskflow_engine import TaskFlowEngine
from applier.errors import GuardRefusal, PlanConflict, UnknownActionTypes
from applier.scheduling.verdict import ActionEnd
from planner.errors import InvalidPlan
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ActionState, Outcome, PlanState

NOW = datetime(2026, 11, 21, tzinfo=UTC)
PATIENCE_S = 120.0
CHANGED = ActionEnd(ActionState.SUCCEEDED, Outcome.CHANGED)


def chain(*types: str, **fields) -> ActionPlan:
    """Actions a, b, c, ..., each after the one before."""
    uuids = "abcdef"[: len(types)]
    actions = tuple(
        Action(uuid=u, name=u, action_type=t, needs=(uuids[i - 1],) if i else ())
        for i, (u, t) in enumerate(zip(uuids, types, strict=True))
    )
    given = {"planner": "test", "state": PlanState.PENDING, "actions": actions, **fields}
    return ActionPlan(uuid="plan", **given)


@pytest.fixture
def trial(open_trial):
    """Return a function that makes a trial of a plan."""

    def make(plan, work=changed, **options) -> Trial:
        return open_trial(plan, TaskFlowEngine(max_workers=2), work, max_workers=2, **options)

    return make


def test_a_plan_without_actions_succeeds(trial):
    assert trial(chain()).run() is PlanState.SUCCEEDED


def test_the_final_message_counts(trial):
    one = trial(chain("nop", "nop"))
    one.run()
    assert one.plan().status_message == "2 succeeded"


def test_action_types_that_nobody_offers_are_listed_before_the_plan_is_claimed(trial):
    one = trial(chain("nop", "teleport", "bake", "join"))
    with pytest.raises(UnknownActionTypes, match=r"bake, teleport\. Known: nop") as raised:
        one.run()
    assert raised.value.names == ("bake", "teleport")
    assert one.plan().state is PlanState.PENDING


def test_a_loop_is_refused_before_the_plan_is_claimed(trial):
    loop = (Action(uuid="a", action_type="nop", parents=("a",)),)
    one = trial(chain(actions=loop))
    with pytest.raises(InvalidPlan, match="cycle"):
        one.run()
    assert one.plan().state is PlanState.PENDING


@pytest.mark.parametrize("state", [PlanState.RECOMMENDED, PlanState.ONGOING, PlanState.SUCCEEDED])
def test_only_a_pending_plan_is_run(trial, state):
    one = trial(chain("nop", state=state))
    with pytest.raises(PlanConflict, match=f"is {state}"):
        one.run()
    assert one.store.started == []


def test_a_plan_that_was_taken_away_is_left_alone(trial):
    """The claim goes to another while the first action runs."""
    one = trial(chain("nop", "nop"))

    def work(parameters, context, stop):
        one.store.resume_plan("plan", [], now=NOW)
        one.store.claim_plan("plan", CLAIMANT, now=NOW)
        return Outcome.CHANGED

    one.work = work
    with pytest.raises(PlanConflict):
        one.run()
    assert one.states() == {"a": "ONGOING", "b": "PENDING"}


def test_a_limit_that_is_none_fails_the_plan_with_the_reason(trial):
    one = trial(chain("nop", limits={"node:*": 0}))
    with pytest.raises(ValueError, match="at least 1"):
        one.run()
    assert one.plan().state is PlanState.FAILED
    assert "limit node:* is 0" in one.plan().status_message


def test_a_signal_handler_may_pause(trial):
    """The handler runs in the engine's own thread, while it waits for reports."""
    one = trial(chain("nop", "nop"), request_interval_s=0.01)
    handled = threading.Event()

    def handler(_number, _frame):
        one.runner.pause("a signal")
        handled.set()

    def work(parameters, context, stop):
        os.kill(os.getpid(), signal.SIGUSR1)
        assert handled.wait(PATIENCE_S), "the signal was not handled while the engine waited"
        return Outcome.CHANGED

    one.work = work
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        assert one.run() is PlanState.PAUSED
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert one.states() == {"a": "SUCCEEDED", "b": "PENDING"}


def test_an_interrupt_without_a_handler_ends_the_plan(trial):
    """What runs is told to stop and awaited; nothing is left open."""
    one = trial(chain("nop", "nop"), request_interval_s=0.01)

    def work(parameters, context, stop):
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.wait(PATIENCE_S), "it was not told to stop"
        return Outcome.CHANGED

    one.work = work
    with pytest.raises(KeyboardInterrupt):
        one.run()
    assert one.plan().state is PlanState.FAILED
    assert one.states() == {"a": "SUCCEEDED", "b": "CANCELLED"}


def test_requests_of_an_earlier_run_do_not_come_back_but_skips_do(trial, store):
    store.save_plan(chain("nop", "nop", "nop"))
    claim = store.claim_plan("plan", CLAIMANT, now=NOW)
    for request in (
        Request(verb="cancel", who="ann"),
        Request(verb="pause", who="ann"),
        Request(verb="skip", who="ann", action="b"),
    ):
        store.add_request("plan", request, now=NOW)
    store.move_claimed("plan", claim, PlanState.PAUSED, now=NOW)
    store.move_plan("plan", PlanState.PENDING, now=NOW)
    one = trial(chain("nop", "nop", "nop"), inner=store, request_interval_s=0.001)

    def work(parameters, context, stop):
        assert one.store.heard.wait(PATIENCE_S), "nobody asks for requests"
        return Outcome.CHANGED

    one.work = work
    assert one.run() is PlanState.SUCCEEDED
    assert one.states() == {"a": "SUCCEEDED", "b": "SKIPPED", "c": "SUCCEEDED"}


def test_listeners_hear_the_whole_story(trial):
    heard = []

    class Log:
        def on_reports(self, reports):
            heard.extend(f"{r.uuid} {r.state}" for r in reports)

        def on_plan(self, state, message):
            heard.append(f"plan {state}")

    trial(chain("nop", "nop"), listeners=[Log()]).run()
    assert heard == [
        "plan ONGOING",
        "a ONGOING",
        "a SUCCEEDED",
        "b ONGOING",
        "b SUCCEEDED",
        "plan SUCCEEDED",
    ]


def test_no_thread_is_left_behind(trial):
    before = set(threading.enumerate())
    trial(chain("nop", "nop"), request_interval_s=0.001).run()
    for thread in set(threading.enumerate()) - before:
        thread.join(PATIENCE_S)
        assert not thread.is_alive(), f"{thread.name} goes on"


@pytest.mark.parametrize("halted", ["hand_back", "pause"])
@pytest.mark.parametrize(
    ("asked", "state", "rest"),
    [("pause", "PAUSED", "PENDING"), ("cancel", "CANCELLED", "CANCELLED")],
)
def test_a_request_after_the_last_look_is_followed(trial, halted, asked, state, rest):
    """It comes right before the claim ends."""
    one = trial(chain("nop", "nop"), request_interval_s=3600.0)

    def work(parameters, context, stop):
        getattr(one.runner, halted)(why="it ends")
        return Outcome.CHANGED

    requests, made = one.store.requests, []

    def late(plan, after=0):
        found = requests(plan, after)
        if one.store.load_plan("plan").actions[0].state is ActionState.SUCCEEDED and not made:
            made.append(asked)
            one.store.add_request("plan", Request(verb=asked, who="wanda", why="late"), now=NOW)
        return found

    one.store.requests, one.work = late, work
    assert one.run() is PlanState(state)
    assert one.states() == {"a": "SUCCEEDED", "b": rest}
    assert one.plan().state is PlanState(state)
    if asked == "cancel":
        assert one.plan().status_message == "cancelled by wanda: late"


@pytest.mark.parametrize(("asked", "state"), [(None, "PENDING"), ("pause", "PAUSED")])
def test_a_plan_that_is_handed_back_is_pending_unless_an_operator_paused_it(trial, asked, state):
    one = trial(chain("nop", "nop"))

    def work(parameters, context, stop):
        one.runner.hand_back(why="it ends")
        if asked:
            one.store.add_request("plan", Request(verb=asked, who="wanda"), now=NOW)
        return Outcome.CHANGED

    one.work = work
    assert one.run() is PlanState(state)
    assert one.states() == {"a": "SUCCEEDED", "b": "PENDING"}
    assert one.plan().state is PlanState(state)


@pytest.mark.parametrize("asked", [None, "cancel"])
def test_what_changes_between_the_guard_and_the_claim_is_not_run_unless_it_is_allowed(trial, asked):
    """Somebody skips an action after the guard has looked at the plan, before it is claimed."""

    def require_allowed(plan):
        if plan.actions[0].state is ActionState.SKIPPED:
            raise GuardRefusal(plan.uuid, "it is not what was approved")

    one = trial(chain("nop", "nop"), require_allowed=require_allowed)
    claim_plan = one.store.claim_plan

    def skipped_before(uuid, *given, **named):
        one.store.skip_action(uuid, "a", now=NOW, message="skipped by eve: hurry")
        claim = claim_plan(uuid, *given, **named)
        if asked:
            one.store.add_request(uuid, Request(verb=asked, who="wanda"), now=NOW)
        return claim

    one.store.claim_plan = skipped_before
    with pytest.raises(GuardRefusal, match="it is not what was approved"):
        one.run()
    plan = one.plan()
    assert [action.attempts for action in plan.actions] == [0, 0]
    assert one.store.claimant("plan") is None
    assert plan.state is (PlanState.CANCELLED if asked else PlanState.PENDING)
    if not asked:
        assert "not what was approved" in plan.status_message


def test_what_changes_between_the_guard_and_the_claim_is_run_if_it_is_allowed(trial):
    plan = chain("nop", "nop")
    apart = tuple(replace(action, needs=()) for action in plan.actions)
    one = trial(replace(plan, actions=apart), require_allowed=lambda _: None)
    claim_plan = one.store.claim_plan

    def skipped_before(uuid, *given, **named):
        one.store.skip_action(uuid, "a", now=NOW, message="skipped by eve: hurry")
        return claim_plan(uuid, *given, **named)

    one.store.claim_plan = skipped_before
    assert one.runner.run("plan") is PlanState.SUCCEEDED
    assert one.states() == {"a": "SKIPPED", "b": "SUCCEEDED"}
