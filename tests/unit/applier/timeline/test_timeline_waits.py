# SPDX-License-Identifier: Apache-2.0
"""Why actions waited: links, limits, pauses, windows; and which chain decided the end."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from applier.contracts import HistoryEntry
from applier.scheduling.concurrency import Concurrency
from applier.scheduling.course import Timeline
from applier.store import Attempt
from applier.timeline.holds import Holds, runs, standstills, taken
from applier.timeline.times import NOTHING, times
from applier.timeline.values import Hold, Reason, Wait
from applier.timeline.waits import RunLimits, are_unexplained, critical_path, waits
from planner.plan.model import JOIN, Action, ActionPlan, Trigger
from planner.plan.states import ActionState, Outcome, PlanState

BEGAN = datetime(2026, 1, 2, tzinfo=UTC)


def at(second: float) -> datetime:
    """Return a time after the beginning."""
    return BEGAN + timedelta(seconds=second)


def ran(name: str, start: float, end: float, **fields: Any) -> Action:
    """Return an action that ran from one second to another."""
    return Action(
        uuid=name,
        name=name,
        action_type="nop",
        state=ActionState.SUCCEEDED,
        started_at=at(start),
        ended_at=at(end),
        **fields,
    )


def entry(verb: str, second: float, why: str | None = None) -> HistoryEntry:
    """Return an entry of the history, by Ada."""
    return HistoryEntry(verb=verb, who="ada", at=at(second), why=why)


def plan_of(*actions: Action, state: PlanState = PlanState.SUCCEEDED) -> ActionPlan:
    """Return a plan in a state."""
    return ActionPlan(uuid="p", planner="weight", actions=actions, state=state)


def held(
    plan: ActionPlan,
    history: list[HistoryEntry],
    *more: Hold,
    workers: int = 9,
    planned: Timeline = NOTHING,
    now_s: float = 100,
) -> dict[str, list[Wait]]:
    """Return the waits of each action of a plan with a history, and with more holds."""
    every = runs(plan, history)
    found = times(
        plan,
        now=at(now_s),
        expected=NOTHING,
        planned=planned,
        attempts={},
        first_run=every[0].began,
    )
    holds = (*standstills(plan, found, every, history, at(now_s)), *more)
    limits = RunLimits(concurrency=Concurrency(limits={}, max_workers=workers), holds=holds)
    return {uuid: list(one.waits) for uuid, one in waits(plan, found, limits).items()}


def test_the_axis_begins_with_the_first_run_and_not_with_the_first_start() -> None:
    plan = plan_of(ran("a", 20, 30))
    found = times(plan, now=at(99), expected=NOTHING, attempts={}, first_run=at(5))
    assert (found.began, found.intervals["a"]) == (at(5), (15, 25))
    late = times(plan, now=at(99), expected=NOTHING, attempts={}, first_run=at(25))
    assert late.began == at(20)


def test_a_pause_is_waited_for_from_when_it_was_asked_for_until_the_next_run() -> None:
    history = [entry("apply", 0), entry("pause", 10, "too much load"), entry("apply", 50)]
    waited = held(plan_of(ran("a", 0, 20), ran("b", 50, 60)), history)
    before, pause = waited["b"]
    assert before == Wait(0, 10, Reason.OTHER, "no limit was reached")
    assert pause[:3] == (10, 50, Reason.PAUSE)
    assert pause[3].endswith("by ada: too much load")


def test_an_action_that_comes_after_another_waits_for_that_also_during_a_pause() -> None:
    history = [entry("apply", 0), entry("pause", 10), entry("apply", 50)]
    waited = held(plan_of(ran("a", 0, 20), ran("b", 50, 60, parents=("a",))), history)
    assert waited["b"] == [
        Wait(0, 20, Reason.ORDER, "a"),
        Wait(20, 50, Reason.PAUSE, "the end of the pause by ada"),
    ]


def test_between_two_runs_without_a_pause_the_next_run_is_waited_for() -> None:
    history = [entry("apply", 0), entry("apply", 80)]
    waited = held(plan_of(ran("a", 0, 20), ran("b", 80, 90)), history)
    assert waited["b"][-1] == Wait(20, 80, Reason.PAUSE, "the next run of the plan")


def test_a_plan_that_is_paused_stands_still_until_now() -> None:
    left = Action(uuid="b", name="b", action_type="nop")
    plan = plan_of(ran("a", 0, 20), left, state=PlanState.PAUSED)
    history = [entry("apply", 0), entry("pause", 15)]
    found = times(plan, now=at(70), expected=NOTHING, attempts={}, first_run=at(0))
    [hold] = standstills(plan, found, runs(plan, history), history, at(70))
    assert (hold.start_s, hold.end_s) == (15, 70)


@pytest.mark.parametrize("state", [PlanState.ONGOING, PlanState.CANCELLING])
def test_a_plan_that_runs_stands_not_still(state: PlanState) -> None:
    plan = plan_of(ran("a", 0, 20), state=state)
    found = times(plan, now=at(70), expected=NOTHING, attempts={}, first_run=at(0))
    history = [entry("apply", 0)]
    assert list(standstills(plan, found, runs(plan, history), history, at(70))) == []


@pytest.mark.parametrize(
    ("state", "told"),
    [
        (PlanState.SUCCEEDED, "took 50s in 2 runs"),
        (PlanState.FAILED, "took 50s in 2 runs"),
        (PlanState.PAUSED, "ran 50s in 2 runs, and stands still"),
        (PlanState.ONGOING, "has run 1m10s in 2 runs"),
    ],
)
def test_a_plan_took_what_its_runs_took_from_their_beginnings(state: PlanState, told: str) -> None:
    # The second run waits ten seconds for another plan before anything starts.
    history = [entry("apply", 0), entry("pause", 15), entry("apply", 50)]
    plan = plan_of(ran("a", 5, 20), ran("b", 60, 80), state=state)
    assert taken(plan, runs(plan, history, now=at(100))) == told


def test_how_long_a_run_went_on_whose_applier_died_is_not_said() -> None:
    history = [entry("apply", 0), entry("resume", 49), entry("apply", 50)]
    plan = plan_of(ran("a", 5, 20), ran("b", 20, 80))
    assert [run.cut_off for run in runs(plan, history)] == [True, False]
    assert taken(plan, runs(plan, history)) == "took at least 50s in 2 runs"


def test_a_plan_without_a_history_took_from_its_first_start_to_its_last_end() -> None:
    plan = plan_of(ran("a", 5, 20), ran("b", 60, 80))
    assert taken(plan, runs(plan, [])) == "took 1m15s"
    assert runs(plan_of(Action(uuid="a", action_type="nop")), []) == []


def test_the_plan_of_another_is_waited_for_by_actions_on_its_resource_alone() -> None:
    other = Hold(0, 30, Reason.PLAN, "node:c1, on which plan x of ada worked", "node:c1")
    plan = plan_of(
        ran("a", 30, 40, tokens=("node:c1",)), ran("b", 30, 40, tokens=("node:c2",)), ran("z", 0, 1)
    )
    waited = held(plan, [entry("apply", 0)], other)
    assert [wait.reason for wait in waited["a"]] == [Reason.PLAN]
    assert [wait.reason for wait in waited["b"]] == [Reason.OTHER]


def test_an_action_that_would_not_end_in_a_window_waits_from_before_its_end() -> None:
    closed = Hold(50, 90, Reason.WINDOW, "the window daily")
    planned = Timeline(start_s={"b": 0}, end_s={"b": 20}, makespan_s=20)
    plan = plan_of(ran("a", 0, 30), ran("b", 90, 95, parents=("a",)))
    waited = held(plan, [entry("apply", 0)], closed, planned=planned)
    assert waited["b"] == [
        Wait(0, 30, Reason.ORDER, "a"),
        Wait(30, 90, Reason.WINDOW, "the window daily"),
    ]


def test_holds_that_overlap_cut_a_wait_into_parts_without_gaps() -> None:
    action = replace(ran("a", 0, 1), tokens=("node:c1",))
    first, second = Hold(2, 6, Reason.PAUSE, "x"), Hold(4, 8, Reason.PLAN, "y", "node:c1")
    found = Holds([second, first, Hold(20, 30, Reason.PAUSE, "z")]).pieces(action, 0, 10, 0.0)
    assert found == [
        (0, 2, None),
        (2, 6, first),
        (6, 8, second),
        (8, 10, None),
    ]


def test_what_nothing_known_held_back_is_unexplained() -> None:
    concurrency = Concurrency(limits={}, max_workers=9)
    found = times(plan_of(ran("a", 0, 9), ran("b", 5, 9)), now=at(9), expected=NOTHING, attempts={})
    plan = plan_of(ran("a", 0, 9), ran("b", 5, 9))
    assert are_unexplained(waits(plan, found, RunLimits(concurrency=concurrency)))
    hold = Hold(0, 5, Reason.PAUSE, "x")
    assert not are_unexplained(
        waits(plan, found, RunLimits(concurrency=concurrency, holds=(hold,)))
    )


# Why actions waited, in small plans, and which chain of them decided the end.


def found(
    *actions: Action, workers: int = 9, now_s: float = 100, **limits: int
) -> tuple[dict[str, list[Wait]], tuple[str, ...]]:
    """Return the waits of each action, and the critical path."""
    plan = ActionPlan(uuid="p", planner="weight", actions=actions)
    now = BEGAN + timedelta(seconds=now_s)
    when = times(plan, now=now, expected=NOTHING, attempts={})
    named = {name.replace("_", ":"): number for name, number in limits.items()}
    waiting = waits(
        plan, when, RunLimits(concurrency=Concurrency(limits=named, max_workers=workers))
    )
    return {uuid: list(one.waits) for uuid, one in waiting.items()}, critical_path(when, waiting)


def test_a_need_and_then_an_order_are_waited_for() -> None:
    waited, path = found(
        ran("a", 0, 10), ran("b", 0, 30), ran("c", 30, 40, needs=("a",), parents=("b",))
    )
    assert waited["c"] == [Wait(0, 10, Reason.NEED, "a"), Wait(10, 30, Reason.ORDER, "b")]
    assert path == ("b", "c")


def test_a_join_is_waited_for_until_its_last_member_has_ended() -> None:
    join = Action(uuid="j", name="j", action_type=JOIN, parents=("a", "b"), needs=("a", "b"))
    waited, _ = found(ran("a", 0, 10), ran("b", 0, 30), join, ran("c", 30, 40, needs=("j",)))
    assert waited["c"] == [Wait(0, 30, Reason.NEED, "b")]


def test_one_of_a_group_is_enough() -> None:
    group = (("a", "b"),)
    waited, _ = found(ran("a", 0, 10), ran("b", 0, 30), ran("c", 10, 40, needs_any=group))
    assert waited["c"] == [Wait(0, 10, Reason.NEED, "a")]


def test_a_trigger_is_an_order() -> None:
    event = (Trigger("a", (Outcome.CHANGED,)),)
    waited, _ = found(ran("a", 0, 10), ran("b", 10, 40, triggers=event))
    assert waited["b"] == [Wait(0, 10, Reason.ORDER, "a")]


def test_a_token_that_is_held_is_a_limit() -> None:
    waited, path = found(
        ran("a", 0, 20, tokens=("node:c1",)), ran("b", 20, 40, tokens=("node:c1",)), **{"node_*": 1}
    )
    assert waited["b"] == [Wait(0, 20, Reason.LIMIT, "node:c1 (at most 1 at once)")]
    assert path == ("a", "b")


def test_workers_that_are_all_busy_are_the_reason() -> None:
    waited, path = found(ran("a", 0, 20), ran("b", 0, 30), ran("c", 20, 40), workers=2)
    assert waited["c"] == [Wait(0, 20, Reason.WORKER, "all 2 workers")]
    assert path == ("a", "c")


def test_what_no_limit_explains_is_something_else() -> None:
    waited, _ = found(ran("a", 0, 5), ran("b", 30, 40))
    assert waited["b"] == [Wait(0, 30, Reason.OTHER, "no limit was reached")]


def test_actions_that_did_not_run_waited_for_nothing() -> None:
    blocked = Action(
        uuid="b", action_type="nop", needs=("a",), state=ActionState.FAILED_DEPENDENCIES
    )
    waited, path = found(ran("a", 0, 5), blocked)
    assert waited == {"a": []}
    assert path == ("a",)


@pytest.mark.parametrize("state", [ActionState.SUCCEEDED, ActionState.PENDING])
def test_earlier_attempts_are_between_waits(state: ActionState) -> None:
    last = ran("a", 20, 40)
    plan = ActionPlan(uuid="p", planner="weight", actions=(ran("b", 0, 1), last))
    tried = [
        Attempt(number=1, started_at=BEGAN, ended_at=BEGAN + timedelta(seconds=10)),
        Attempt(number=2, started_at=BEGAN + timedelta(seconds=20), ended_at=last.ended_at),
    ]
    when = times(plan, now=BEGAN, expected=NOTHING, attempts={"a": tried})
    assert when.earlier == {"a": ((0, 10),)}
    waiting = waits(plan, when, RunLimits(concurrency=Concurrency(limits={}, max_workers=1)))
    assert waiting["a"].waits == (Wait(10, 20, Reason.OTHER, "its next attempt"),)
