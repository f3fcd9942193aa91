# SPDX-License-Identifier: Apache-2.0
"""Planned against taken durations."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from applier.run.expected_durations import by_type
from planner.plan.model import Action
from planner.plan.states import ActionState

NOW = datetime(2026, 11, 23, tzinfo=UTC)


def ran(uuid: str, took_s: float, action_type="migrate", state=ActionState.SUCCEEDED) -> Action:
    ended = NOW + timedelta(seconds=took_s)
    return Action(uuid=uuid, action_type=action_type, state=state, started_at=NOW, ended_at=ended)


def test_the_error_of_a_type_is_that_of_the_sum_of_its_actions():
    actions = [
        ran("a", 50),
        ran("b", 60),
        ran("c", 5, "resize"),
        ran("failed", 500, state=ActionState.FAILED),
        ran("nobody planned it", 500),
        Action(uuid="open", action_type="migrate"),
    ]
    planned = {"a": 40.0, "b": 40.0, "c": 0.0, "failed": 1.0, "open": 1.0}
    found = by_type(actions, planned)
    assert found == {"migrate": (2, 80.0, 110.0), "resize": (1, 0.0, 5.0)}
    assert (found["migrate"].error, found["resize"].error) == (0.375, None)
