# SPDX-License-Identifier: Apache-2.0
"""Whoever reads a plan, or runs it, is told which cloud it works on and what of it is real."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from applier.run.plan_cloud import cloud_of
from planner.plan.model import Action, ActionPlan


def plan(*actions: tuple[str, dict[str, Any]]) -> ActionPlan:
    """Return a plan of actions with these types and parameters."""
    made = (
        Action(uuid=str(i), action_type=kind, input_parameters=given)
        for i, (kind, given) in enumerate(actions)
    )
    return ActionPlan(uuid="u", planner="weight", actions=tuple(made))


NOTHING = "simulated: nothing real is touched"


def test_a_plan_names_what_of_it_is_real() -> None:
    for actions, real in (
        ([("migrate", {}), ("join", {}), ("sleep", {})], ""),
        ([("shell", {"command": "reboot"})], "shell"),
        ([("shell", {"node": "3", "command": "x"}), ("reboot", {"node": "3"})], ""),
        ([("puppet", {"node": "3", "address": "h"})], "puppet"),
        ([("http_check", {}), ("from_elsewhere", {})], "from_elsewhere, http_check"),
        ([("revert", {"action_type": "migrate", "parameters": {}})], ""),
        ([("revert", {"action_type": "shell", "parameters": {}})], "shell"),
    ):
        assert cloud_of(plan(*actions)) == NOTHING + (f", except by {real}" if real else "")


def test_another_cloud_is_told_by_its_name_on_one_line() -> None:
    for cloud, expected in (("toy:east", "toy:east"), ("a\nb", "a b"), (None, NOTHING)):
        assert cloud_of(replace(plan(("migrate", {})), cloud=cloud)) == expected
