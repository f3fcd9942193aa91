# SPDX-License-Identifier: Apache-2.0
"""Why actions waited, in small plans, and which chain of them decided the end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from applier.scheduling.submissions import Concurrency
from applier.store import Attempt
from applier.timeline.times import NOTHING, times
from applier.timeline.values import Reason, Wait
from applier.timeline.waits import RunLimits, critical_path, waits
from planner.plan.model import JOIN, Action, ActionPlan, Trigger
from planner.plan.states import ActionState, Outcome

BEGAN = datetime(2026, 1, 2, tzinfo=UTC)


def ran(name: str, start: float, end: float, **fields: Any) -> Action:
    """Return an action that ran from one second to another."""
    return Action(
        uuid=name,
        name=name,
        action_type="nop",
        state=ActionState.SUCCEEDED,
        started_at=BEGAN + timedelta(seconds=start),
        ended_at=BEGAN + timedelta(seconds=end),
        **fields,
    )


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
