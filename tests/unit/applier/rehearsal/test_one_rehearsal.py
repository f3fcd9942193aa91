# SPDX-License-Identifier: Apache-2.0
"""Rehearsed runs: without faults as the forecast says, with faults as the rules of failure say."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_plans import random_plan

from applier.rehearsal.faults import Attempts, chance, concerned, read
from applier.rehearsal.one_rehearsal import HomesOfPlan, Rehearsal, Rehearsed
from applier.rehearsal.rehearsal_figures import HANGS, NEEDS, figures, quantiles
from applier.scheduling.concurrency import Concurrency
from applier.scheduling.course import Course, Ranking
from applier.scheduling.failures import FailureRules, OnFailure, TypePolicy
from applier.scheduling.forecast import forecast
from planner.plan.model import Action, Effect, Touch
from planner.plan.states import OPEN, ActionState, PlanState

S = ActionState


def act(uuid: str, *needs: str, tokens: tuple[str, ...] = (), **fields: object) -> Action:
    """Make an action that takes ten seconds."""
    return Action(uuid=uuid, action_type="nop", name=uuid, needs=needs, tokens=tokens, **fields)


def rehearse(
    actions: list[Action],
    faults: str = "",
    *,
    runs: int = 1,
    workers: int = 4,
    limits: Mapping[str, int] | None = None,
    on_failure: OnFailure = OnFailure.SKIP_DESCENDANTS,
    policy: TypePolicy | None = None,
    verified: tuple[str, ...] = (),
    touches: Mapping[str, list[Touch]] | None = None,
) -> list[Rehearsed]:
    """Rehearse actions that take ten seconds each."""
    policies = {"nop": policy} if policy else {}
    concurrency = Concurrency(limits=limits or {}, max_workers=workers)
    seconds = {a.uuid: 10.0 for a in actions}
    attempts = Attempts(
        actions,
        lambda *_: 10.0,
        faults=concerned(read(faults) if faults else [], actions),
        policies=policies,
        verified=verified,
        seed=1,
    )
    rehearsal = Rehearsal(
        Course(actions, seconds, concurrency),
        Ranking(actions, seconds, concurrency).ranks,
        FailureRules(on_failure=on_failure, policies=policies),
        HomesOfPlan(actions, touches or {}),
    )
    return [rehearsal.run(lambda a, k, n=n: attempts.end(n, a, k)) for n in range(runs)]


@given(seed=st.integers(0, 1000), workers=st.integers(1, 4))
@settings(max_examples=20)
def test_without_faults_a_rehearsal_takes_as_long_as_the_forecast_says(seed, workers) -> None:
    plan = random_plan(seed, 20)
    concurrency = Concurrency(limits=plan.limits, max_workers=workers)
    seconds = {a.uuid: 1.0 + len(a.uuid) % 3 for a in plan.actions}
    actions = plan.actions
    found = forecast(actions, seconds, concurrency)
    attempts = Attempts(
        actions,
        lambda a, _: seconds[a.uuid],
        faults={},
        policies={},
        verified=(),
        seed=1,
    )
    rehearsal = Rehearsal(
        Course(actions, seconds, concurrency),
        found.ranks,
        FailureRules(),
        HomesOfPlan(actions, {}),
    )
    run = rehearsal.run(lambda a, k: attempts.end(1, a, k))
    assert run.makespan_s == found.timeline.makespan_s
    assert not [state for state in run.ends.values() if state in OPEN]


def test_a_failure_keeps_what_needs_it_from_running() -> None:
    (run,) = rehearse([act("a"), act("b", "a"), act("c")], "fail:a")
    assert run.ends == {"a": S.FAILED, "b": S.FAILED_DEPENDENCIES, "c": S.SUCCEEDED}
    assert (run.state, run.makespan_s) == (PlanState.FAILED, 10.0)


def test_a_pause_lets_what_runs_end() -> None:
    actions = [act(name) for name in "abcd"]
    (run,) = rehearse(actions, "fail:a", workers=2, on_failure=OnFailure.PAUSE)
    assert run.state is PlanState.PAUSED
    assert run.ends == {"a": S.FAILED, "b": S.SUCCEEDED, "c": S.PENDING, "d": S.PENDING}


def test_a_failed_attempt_is_retried_after_its_delay() -> None:
    found = rehearse(
        [act("a")], "fail:nop=50%", runs=300, policy=TypePolicy(retries=1, retry_delay_s=5.0)
    )
    failed = sum(run.state is PlanState.FAILED for run in found)
    assert {run.makespan_s for run in found} == {10.0, 25.0}
    assert 50 < failed < 100  # a quarter of 300


def test_what_hangs_without_a_time_out_never_ends_and_holds_what_needs_it() -> None:
    (run,) = rehearse([act("a"), act("b", "a"), act("c")], "hang:a")
    assert run.state is None
    assert run.makespan_s == math.inf
    assert run.ends == {"a": S.ONGOING, "b": S.PENDING, "c": S.SUCCEEDED}
    assert figures([act("a"), act("b", "a"), act("c")], [run]).states == {HANGS: 1}


@pytest.mark.parametrize(
    ("verified", "state"), [(("nop",), S.FAILED), ((), S.UNKNOWN)], ids=["verified", "in doubt"]
)
def test_what_hangs_is_stopped_by_its_time_out(verified, state) -> None:
    (run,) = rehearse([act("a", timeout_s=30.0)], "hang:a", verified=verified)
    assert (run.ends["a"], run.makespan_s) == (state, 30.0)


def test_a_slow_node_takes_longer() -> None:
    actions = [act("a", tokens=("node:n1",)), act("b", tokens=("node:n2",))]
    (run,) = rehearse(actions, "slow:node:n1=3x")
    assert run.makespan_s == 30.0


def test_a_bad_node_is_bad_for_all_its_actions_in_a_run() -> None:
    actions = [act(f"{n}{i}", tokens=(f"node:{n}",)) for n in "xyz" for i in range(3)]
    for run in rehearse(actions, "fail:node:*=30%", runs=100):
        for node in "xyz":
            assert len({run.ends[f"{node}{i}"] for i in range(3)}) == 1


def test_two_plans_of_one_document_meet_the_same_faults() -> None:
    def named(prefix: str) -> list[Action]:
        return [Action(uuid=f"{prefix}{i}", action_type="nop", name=f"n{i}") for i in range(5)]

    one, other = (rehearse(named(p), "fail:nop=40%", runs=20) for p in ("a", "b"))
    assert [list(run.ends.values()) for run in one] == [list(run.ends.values()) for run in other]


def test_a_lower_limit_loses_fewer_actions_to_a_bad_node() -> None:
    actions = [act(f"{n}{i}", tokens=(f"node:{n}",)) for n in range(10) for i in range(4)]
    means = []
    for limit in (4, 1):
        found = rehearse(
            actions,
            "fail:node:*=10%",
            runs=100,
            limits={"node:*": limit},
            on_failure=OnFailure.PAUSE,
        )
        means.append(figures(actions, found).wrong_mean)
    assert means[1] < 0.5 * means[0]


def test_instances_of_a_host_that_goes_down_have_no_home() -> None:
    move = act("move")
    down = act("down")
    touches = {
        "move": [Touch("instance:i"), Touch("node:c1", Effect.LEAVES)],
        "down": [Touch("node:c1", Effect.TAKES_DOWN)],
    }
    ordered = [move, act("down", "move")]
    (well,) = rehearse(ordered, touches=touches)
    assert (well.homeless_most, well.homeless_left) == (0, 0)
    (bad,) = rehearse(ordered, "fail:move", touches=touches, on_failure=OnFailure.CONTINUE)
    assert (bad.homeless_most, bad.homeless_left) == (1, 1)
    (kept,) = rehearse(ordered, "fail:move", touches=touches)
    assert kept.homeless_most == 0
    assert down.uuid in touches


def test_an_instance_has_no_home_from_its_stop_to_its_start() -> None:
    stop = Action(uuid="s", action_type="stop", name="s")
    start = Action(uuid="t", action_type="start", name="t", needs=("s",))
    touches = {"s": [Touch("instance:i")], "t": [Touch("instance:i")]}
    (well,) = rehearse([stop, start], touches=touches)
    assert (well.homeless_most, well.homeless_left) == (1, 0)
    (bad,) = rehearse([stop, start], "fail:start", touches=touches)
    assert (bad.homeless_most, bad.homeless_left) == (1, 1)


def test_figures_of_several_runs() -> None:
    actions = [
        act("a", tokens=("node:n",)),
        act("b", "a", tokens=("node:n",)),
        act("c", tokens=("node:m",)),
    ]
    found = figures(actions, rehearse(actions, "fail:b=50%", runs=40))
    failed = found.states[PlanState.FAILED]
    assert found.well + failed == 40
    assert 8 < failed < 32
    assert [(of.action.uuid, of.wrong) for of in found.actions] == [("b", failed)]
    assert [(of.resource, of.runs) for of in found.half_done] == [("node:n", failed)]
    assert NEEDS not in found.stopped_by


def test_quantiles_are_values_that_occurred() -> None:
    assert quantiles(range(1, 11)) == (5, 9, 10)
    assert quantiles([3.0]) == (3.0, 3.0, 3.0)


@given(st.lists(st.text(), max_size=3))
def test_chances_are_numbers_from_0_to_below_1(words) -> None:
    assert 0 <= chance(*words) < 1


def test_chances_are_even() -> None:
    found = [chance(1, number) for number in range(4000)]
    assert sum(value < 0.1 for value in found) == pytest.approx(400, abs=80)
