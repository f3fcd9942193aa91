# SPDX-License-Identifier: Apache-2.0
"""What an action of a solution has when its entry does not say it."""

from __future__ import annotations

from typing import Any

import pytest

from planner.model import Action
from planner.planners.weight import WeightPlanner
from planner.testing import action_type, plan

NOP = action_type("nop", estimate_s=7.0)


def planned(*entries: dict[str, Any]) -> tuple[Action, ...]:
    actions = [{"action_type": "nop", **entry} for entry in entries]
    return plan(WeightPlanner, {"actions": actions}, NOP).actions


def test_without_a_word_it_is_tried_once_and_without_a_limit_of_time() -> None:
    (action,) = planned({})
    assert (action.retries, action.timeout_s, action.name) == (0, None, "nop-1")


@pytest.mark.parametrize(("estimate", "seconds"), [({}, 7.0), ({"estimate_s": 0}, 0)])
def test_an_estimate_of_its_own_comes_before_that_of_its_type(
    estimate: dict[str, Any], seconds: float
) -> None:
    (action,) = planned(estimate)
    assert action.estimate_s == seconds


def test_names_are_numbered_past_those_that_are_taken() -> None:
    actions = planned({}, {"name": "nop-2"}, {}, {})
    assert [action.name for action in actions] == ["nop-1", "nop-2", "nop-3", "nop-4"]
