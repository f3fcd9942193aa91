# SPDX-License-Identifier: Apache-2.0
"""What held a plan back: pauses, other runs, windows, other plans; in small plans."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from applier.contracts import HistoryEntry
from applier.scheduling.course import Timeline
from applier.scheduling.submissions import Concurrency
from applier.timeline.holds import Holds, Piece, runs, standstills, taken
from applier.timeline.times import NOTHING, times
from applier.timeline.values import Hold, Reason, Wait
from applier.timeline.waits import RunLimits, are_unexplained, waits
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ActionState, PlanState

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
        Piece(0, 2, None),
        Piece(2, 6, first),
        Piece(6, 8, second),
        Piece(8, 10, None),
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
