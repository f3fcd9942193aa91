# SPDX-License-Identifier: Apache-2.0
"""Who starts when many wait, one by one, and by which rank; that each costs the same work.

``tests/property/test_gates.py`` tries at random, against a reference, what holds for all of them.
"""

from __future__ import annotations

import random
from collections import deque

import pytest

from applier.scheduling.concurrency import Concurrency
from applier.scheduling.course import Ranking
from applier.scheduling.gates import PATIENCE, Gates
from planner.plan.model import Action, ActionPlan
from planner.plan.states import PlanState


def test_who_needs_no_worker_does_not_wait_for_one_behind_another_of_its_token():
    gates = Gates({"x": 1}, 1)
    gates.submit("holds x", ["x"], worker=False)
    gates.submit("works")
    assert [gates.take(), gates.take()] == ["holds x", "works"]
    gates.submit("wants both", ["x"], rank=0)
    gates.submit("wants x", ["x"], rank=1, worker=False)
    assert gates.take() is None
    gates.release("holds x")
    assert gates.take() == "wants x"


def test_an_action_of_two_tokens_is_not_starved_by_those_of_one():
    """It is first by rank, but whenever one of its tokens comes free, the other is held."""
    gates = Gates({"a": 1, "b": 1}, max_workers=3)
    running, started = deque[str](), []
    for number in range(20 * PATIENCE):
        gates.submit(f"a{number}", ["a"], rank=1)
        gates.submit(f"b{number}", ["b"], rank=1)
        while (key := gates.take()) is not None:
            running.append(key)
            started.append(key)
        if number == 0:
            gates.submit("both", ["a", "b"], rank=0)
        gates.release(running.popleft())
    assert PATIENCE // 2 < started.index("both") < 2 * PATIENCE


def test_the_tokens_of_a_collector_that_is_withdrawn_come_back():
    gates = Gates({"a": 1, "b": 1}, max_workers=3, patience=1)
    gates.submit("first", ["a"])
    assert gates.take() == "first"
    gates.submit("both", ["a", "b"], rank=1)
    assert gates.take() is None  # it has b now, and waits for a
    gates.submit("other", ["b"], rank=2)
    assert gates.take() is None
    assert gates.why("other") == "b"
    gates.withdraw("both")
    assert gates.take() == "other"


def test_an_action_that_is_submitted_again_after_it_was_withdrawn_starts_once():
    gates = Gates({}, max_workers=3)
    gates.submit("a")
    gates.withdraw("a")
    gates.submit("a")
    assert [gates.take(), gates.take()] == ["a", None]


def test_a_token_named_twice_is_held_once():
    gates = Gates({"a": 2}, max_workers=2)
    gates.submit("twice", ["a", "a"])
    gates.submit("once", ["a"])
    assert [gates.take(), gates.take()] == ["twice", "once"]


def test_who_has_collected_all_gets_the_next_worker():
    """It holds what others wait for, so nobody of a better rank goes first."""
    gates = Gates({"a": 1, "b": 1}, max_workers=2, patience=1)
    gates.submit("first", ["a"])
    assert gates.take() == "first"
    gates.submit("both", ["a", "b"], rank=9)
    assert gates.take() is None
    gates.submit("second")
    assert gates.take() == "second"
    gates.submit("third")
    gates.release("first")
    assert [gates.take(), gates.take()] == ["both", None]


LOADS = {
    "nothing limited": ({}, 4, lambda _i, _chance: ()),
    "one type, few at once": ({"type:a": 2}, 50, lambda _i, _chance: ("type:a",)),
    "migrations between hosts": (
        {"type:migrate": 20, "node:*": 1, "instance:*": 1},
        50,
        lambda i, chance: (
            "type:migrate",
            f"instance:{i}",
            f"node:{chance.randint(0, 99)}",
            f"node:{chance.randint(100, 199)}",
        ),
    ),
    "deployment: one task a node, 50 busy, 5 of an id": (
        {"node:*": 1, "busy": 50, "task:*": 5},
        200,
        lambda i, chance: (f"node:{chance.randint(0, 99)}", "busy", f"task:{i % 150}"),
    ),
    "every second on one node": (
        {"type:a": 2, "node:*": 1},
        50,
        lambda i, _chance: ("type:a", "node:0" if i % 2 else f"node:{i}"),
    ),
}


@pytest.mark.parametrize("load", LOADS)
def test_the_work_for_an_action_does_not_grow_with_the_number_of_actions(load):
    assert examined(load, 8000) <= 1.3 * examined(load, 1000) + 0.1


def examined(load: str, number: int) -> float:
    """How often an action was examined, on average."""
    limits, workers, tokens = LOADS[load]
    chance, gates = random.Random(1), Gates(limits, workers)
    for i in range(number):
        gates.submit(f"a{i}", tokens(i, chance), chance.random())
    running: deque[str] = deque()
    for _ in range(number):
        while (key := gates.take()) is not None:
            running.append(key)
        gates.release(running.popleft())
    print(f"{load}: {number} actions, each examined {gates.examined / number:.2f} times")
    return gates.examined / number


def test_a_collector_starts_anew_when_a_limit_changes():
    gates = Gates({"node:*": 1}, max_workers=9)
    gates.submit("x", ("node:1",))
    gates.submit("y", ("node:2",))
    assert (gates.take(), gates.take()) == ("x", "y")
    gates.submit("big", ("node:1", "node:2"))
    for number in range(PATIENCE):
        gates.submit(f"s{number}", ("node:1",), rank=-number)
        assert gates.take() is None
    gates.set_limit("node:1", 2)
    gates.release("y")
    started = [gates.take() for _ in range(2)]
    assert len([key for key in started if key]) == 1, "one unit of node:1 came free"


def test_a_plan_with_very_many_actions_gets_ranks_without_a_simulation(monkeypatch):
    monkeypatch.setattr("applier.scheduling.course.MANY", 3)
    plan = ActionPlan(
        uuid="plan",
        planner="test",
        state=PlanState.PENDING,
        actions=tuple(
            Action(uuid=u, action_type="nop", parents=p)
            for u, p in (("a", ()), ("b", ()), ("c", ("b",)), ("d", ("c",)))
        ),
    )
    monkeypatch.setattr("applier.scheduling.course.Course.run", None)
    durations = dict.fromkeys("abcd", 1.0)
    found = Ranking(plan.actions, durations, Concurrency(limits={}, max_workers=1)).ranks
    assert sorted(found, key=found.get) == ["b", "c", "a", "d"]
