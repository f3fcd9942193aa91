# SPDX-License-Identifier: Apache-2.0
"""Plans of ours as rows of Watcher: joins flattened, needs among the parents."""

from __future__ import annotations

from applier.watcher.plans import action_rows
from planner.plan.model import JOIN, Action, ActionPlan


def plan(*actions: Action) -> ActionPlan:
    return ActionPlan(uuid="p", planner="weight", actions=actions)


def test_what_follows_a_join_follows_all_before_it() -> None:
    made = plan(
        Action(uuid="a", action_type="nop"),
        Action(uuid="b", action_type="nop"),
        Action(uuid="j", action_type=JOIN, parents=("a", "b")),
        Action(uuid="c", action_type="nop", parents=("j",)),
        Action(uuid="k", action_type=JOIN, parents=("j", "c")),
        Action(uuid="d", action_type="nop", parents=("k",), needs=("b",)),
    )
    found = {row["uuid"]: row["parents"] for row in action_rows(made)}
    assert found == {"a": [], "b": [], "c": ["a", "b"], "d": ["a", "b", "c"]}


def test_needs_stand_among_the_parents_once() -> None:
    made = plan(
        Action(uuid="a", action_type="nop"),
        Action(uuid="b", action_type="nop"),
        Action(uuid="c", action_type="nop", parents=("a",), needs=("a", "b")),
    )
    assert action_rows(made)[2]["parents"] == ["a", "b"]
    assert {row["state"] for row in action_rows(made)} == {"PENDING"}
