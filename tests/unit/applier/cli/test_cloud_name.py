# SPDX-License-Identifier: Apache-2.0
"""Whoever reads a plan, or runs it, is told which cloud it works on and what of it is real."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from applier.run.plan_cloud import cloud_of
from planner.model import Action, ActionPlan


def plan(*actions: tuple[str, dict[str, Any]]) -> ActionPlan:
    """Return a plan of actions with these types and parameters."""
    made = (
        Action(uuid=str(i), action_type=kind, input_parameters=given)
        for i, (kind, given) in enumerate(actions)
    )
    return ActionPlan(uuid="u", planner="weight", actions=tuple(made))


NOTHING = "simulated: nothing real is touched"


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        ([("migrate", {}), ("join", {}), ("sleep", {})], NOTHING),
        ([("shell", {"command": "reboot"})], f"{NOTHING}, except by shell"),
        ([("shell", {"node": "3", "command": "x"}), ("reboot", {"node": "3"})], NOTHING),
        ([("puppet", {"node": "3", "address": "h"})], f"{NOTHING}, except by puppet"),
        (
            [("http_check", {}), ("from_elsewhere", {})],
            f"{NOTHING}, except by from_elsewhere, http_check",
        ),
        ([("revert", {"action_type": "migrate", "parameters": {}})], NOTHING),
        ([("revert", {"action_type": "shell", "parameters": {}})], f"{NOTHING}, except by shell"),
    ],
)
def test_a_plan_names_what_of_it_is_real(actions: Any, expected: str) -> None:
    assert cloud_of(plan(*actions)) == expected


@pytest.mark.parametrize(
    ("cloud", "expected"), [("toy:east", "toy:east"), ("a\nb", "a b"), (None, NOTHING)]
)
def test_another_cloud_is_told_by_its_name_on_one_line(cloud: str | None, expected: str) -> None:
    shell = plan(("migrate", {}))
    assert cloud_of(replace(shell, cloud=cloud)) == expected
