# SPDX-License-Identifier: Apache-2.0
"""Actions start only if they are expected to end inside of a window; the others wait, and tell."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sample_plans import new_plan
from trials import Trial

from applier.engines.taskflow_engine import TaskFlowEngine
from applier.errors import GuardRefusal
from applier.guarding import nights, windows
from applier.guarding.open_times import OpenTimes
from applier.guarding.windows import NodeWork, WindowHolding
from applier.scheduling.concurrency import Concurrency
from planner.plan.place_rules import HeldPlace, PlaceRule
from planner.plan.states import ActionState, PlanState

NO_LIMITS = {}
TOKEN = "serial:p"  # noqa: S105
MONDAY = datetime(2026, 11, 23, tzinfo=UTC)
TIMES = OpenTimes([["daily 01:00-02:00 UTC"]])
PLAN = new_plan("a", "b", uuid="6a1f0000-0000-4000-8000-000000000001", state=PlanState.PENDING)


def needs(expected_s, plan=PLAN):
    return NodeWork(plan.actions, expected_s)


class Clock:
    """A clock that a test sets, and the sentences that were told."""

    def __init__(self, hours):
        self.now, self.told = MONDAY + timedelta(hours=hours), []

    def holding(self, seconds=60.0, **options):
        return WindowHolding(
            TIMES, needs(lambda _: seconds), lambda: self.now, tell=self.told.append, **options
        )


def test_what_would_end_too_late_does_not_start():
    clock, (action, _) = Clock(1.5), PLAN.actions
    assert not clock.holding(30 * 60).holds(action, begins=True)
    assert clock.holding(30 * 60 + 1).holds(action, begins=True)
    assert clock.holding(1e12).holds(action, begins=True)
    clock.now -= timedelta(hours=1)
    assert clock.holding(0).holds(action, begins=True)


def test_the_clock_is_looked_at_every_minute_and_at_the_opening():
    clock = Clock(0)
    assert clock.holding().again_s() == 60
    clock.now += timedelta(minutes=59, seconds=58)
    assert clock.holding().again_s() == 2


@pytest.mark.parametrize("hours", [3, 1.9])
def test_a_service_hands_back_what_waits_for_another_window(hours):
    clock, (one, other) = Clock(hours), PLAN.actions
    holding = clock.holding(3600, hands_back=True)
    assert holding.holds(one, begins=True)
    holding.tell(1)
    assert holding.again_s() is None
    holding.tell(2)
    assert holding.again_s() is not None, "something else holds the other one back"
    assert holding.holds(other, begins=True)
    holding.tell(2)
    assert holding.again_s() is None
    assert clock.holding(3600).again_s() is not None, "apply waits in its process"


def test_a_service_does_not_begin_what_would_be_handed_back_at_once():
    """What could start now is too long for the rest of the window; what is short has to wait."""
    seconds = {"a": 1800.0, "b": 1.0}

    def begin(hours):
        at = MONDAY + timedelta(hours=hours)
        windows.require(PLAN, TIMES, needs(lambda a: seconds[a.name]), at, has_to_be_open=True)

    begin(1.5)
    with pytest.raises(GuardRefusal, match="2026-11-24 01:00 UTC"):
        begin(1.6)
    first = replace(PLAN.actions[0], state=ActionState.SUCCEEDED)
    plan = replace(PLAN, actions=(first, PLAN.actions[1]))
    at = MONDAY + timedelta(hours=1.6)
    windows.require(plan, TIMES, needs(lambda a: seconds[a.name]), at, has_to_be_open=True)


def test_each_sentence_is_told_once():
    clock = Clock(3)
    holding = clock.holding()
    holding.tell(0)
    holding.tell(1)
    assert holding.holds(PLAN.actions[0], begins=True)
    for number in (2, 2, 0, 0):
        holding.tell(number)
    waits, opened = clock.told
    for fact in ("2 actions ", "daily 01:00-02:00 UTC", "2026-11-24 01:00 UTC"):
        assert fact in waits
    assert "open" in opened


def test_a_run_waits_for_its_window():
    clock = Clock(0)
    holding, asked = clock.holding(), []

    def again_s():
        asked.append(clock.now)
        clock.now += timedelta(hours=1)
        return 0.01

    holding.again_s = again_s
    engine = TaskFlowEngine(max_workers=2)
    with Trial(PLAN, engine, max_workers=2, holding_of=lambda *_: holding) as trial:
        assert trial.run() is PlanState.SUCCEEDED
    assert len(asked) == 1
    assert len(clock.told) == 2


def test_a_run_that_may_not_wait_hands_its_plan_back():
    clock = Clock(3)
    holding = clock.holding(hands_back=True)
    engine = TaskFlowEngine(max_workers=2)
    with Trial(PLAN, engine, max_workers=2, holding_of=lambda *_: holding) as trial:
        assert trial.run() is PlanState.PENDING
        assert "all that is left waits for a window" in trial.plan().status_message
        assert set(trial.states().values()) == {"PENDING"}


def test_what_fits_into_no_window_is_refused():
    now = MONDAY + timedelta(hours=1)
    windows.require(PLAN, TIMES, needs(lambda _: 3600), now, has_to_be_open=True)
    with pytest.raises(GuardRefusal, match=r"a of plan 6a1f0000 .* 1h00m"):
        windows.require(PLAN, TIMES, needs(lambda _: 3601), now, has_to_be_open=False)


def test_a_service_does_not_begin_outside_of_a_window():
    windows.require(PLAN, TIMES, needs(lambda _: 1), MONDAY, has_to_be_open=False)
    with pytest.raises(GuardRefusal, match=r"which opens at 2026-11-23 01:00 UTC"):
        windows.require(PLAN, TIMES, needs(lambda _: 1), MONDAY, has_to_be_open=True)


def test_what_a_dead_applier_left_running_is_looked_after_at_any_time():
    first = replace(PLAN.actions[0], state=ActionState.ONGOING)
    plan = replace(PLAN, actions=(first, PLAN.actions[1]))
    windows.require(plan, TIMES, needs(lambda _: 1), MONDAY, has_to_be_open=True)


def test_an_action_says_for_which_window_it_waits():
    action = PLAN.actions[0]
    told = windows.waiting(action, TIMES, needs(lambda _: 1), MONDAY)
    assert "daily 01:00-02:00 UTC" in told
    assert told.endswith("2026-11-23 01:00 UTC")
    inside = MONDAY + timedelta(hours=1)
    assert windows.waiting(action, TIMES, needs(lambda _: 1), inside) is None
    assert "2026-11-24" in windows.waiting(action, TIMES, needs(lambda _: 3601), inside)
    assert windows.waiting(action, None, needs(lambda _: 1), MONDAY) is None


def split(plan, seconds, workers=1, now=MONDAY, limits=NO_LIMITS):
    expected = dict(zip((a.uuid for a in plan.actions), seconds, strict=True))
    ranks = {a.uuid: i for i, a in enumerate(plan.actions)}
    concurrency = Concurrency(limits=limits, max_workers=workers, places=plan.places)
    found = nights.nights(plan.actions, expected, concurrency, ranks, TIMES, now)
    names = {a.uuid: a.name for a in plan.actions}
    return [(n.interval.start.day, "".join(names[u] for u in n.actions)) for n in found]


def test_a_plan_is_split_over_nights():
    plan = new_plan(*"abcd")
    assert split(plan, [1800, 1800, 2000, 1600]) == [(23, "ab"), (24, "cd")]
    assert split(plan, [1800, 1801, 1800, 1]) == [(23, "a"), (24, "b"), (25, "cd")]
    assert split(plan, [1, 1, 3601, 1]) == [(23, "ab")]
    assert split(plan, [3601, 1, 1, 1]) == []


def test_what_is_short_fills_the_rest_of_a_night():
    plan = new_plan(*"abc")
    plan = replace(plan, actions=tuple(replace(a, parents=()) for a in plan.actions))
    assert split(plan, [2000, 2000, 1000]) == [(23, "ac"), (24, "b")]
    assert split(plan, [2000, 2000, 1000], workers=3) == [(23, "abc")]


def rollout(*seconds):
    """Return a plan of two nodes with such steps each, one node at a time."""
    plan = new_plan(*(f"{node}{k}" for node in "ab" for k in range(len(seconds))))
    actions = [
        replace(
            a, parents=() if a.name[1] == "0" else a.parents, places=(HeldPlace(TOKEN, a.name[0]),)
        )
        for a in plan.actions
    ]
    return replace(plan, actions=tuple(actions), places={TOKEN: PlaceRule()}, limits={TOKEN: 1})


def test_a_node_begins_only_if_all_of_its_steps_fit_and_then_nothing_holds_it_back():
    plan = rollout(1000, 1000)
    seconds = [1000] * 4
    assert split(plan, seconds, limits=plan.limits) == [(23, "a0a1"), (24, "b0b1")]
    holding = WindowHolding(TIMES, needs(lambda _: 1000, plan), lambda: MONDAY)
    assert holding.holds(plan.actions[1], begins=True)
    assert not holding.holds(plan.actions[1], begins=False)


def test_a_node_that_fits_into_no_window_is_refused_and_one_that_has_begun_goes_on():
    plan, seconds = rollout(1, 1), needs(lambda _: 1801, rollout(1, 1))
    with pytest.raises(GuardRefusal, match=r"all on a .* up to 1h00m"):
        windows.require(plan, TIMES, seconds, MONDAY, has_to_be_open=False)
    done = replace(plan.actions[0], state=ActionState.SUCCEEDED, attempts=1)
    begun = replace(plan, actions=(done, *plan.actions[1:]))
    work = needs(lambda _: 1, begun)
    windows.require(begun, TIMES, work, MONDAY, has_to_be_open=True)
    assert windows.waiting(begun.actions[1], TIMES, work, MONDAY) is None
    assert windows.waiting(begun.actions[2], TIMES, work, MONDAY) is not None
