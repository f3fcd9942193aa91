# SPDX-License-Identifier: Apache-2.0
"""Plans to measure with: the same each time."""

from __future__ import annotations

import random
from typing import Any

from planner.plan.model import Action, ActionPlan
from planner.plan.states import PlanState

WIDTH = 20


def layers(number: int) -> ActionPlan:
    """Dense layers of 20: each action needs all of the layer before."""
    actions: list[Action] = []
    before: tuple[str, ...] = ()
    for start in range(0, number, WIDTH):
        uuids = tuple(f"a{i:035}" for i in range(start, min(start + WIDTH, number)))
        actions += [Action(uuid=u, action_type="nop", parents=before, needs=before) for u in uuids]
        before = uuids
    return _plan(actions)


def deployment(nodes: int = 39, tasks: int = 100) -> ActionPlan:
    """About 3,900 actions with 41,000 edges: a task on a node follows the one before on that node,
    and ten of the task before on other nodes. One task at a time on a node, six of a task."""
    chance = random.Random(1)
    actions: list[Action] = []
    for task in range(tasks):
        for node in range(nodes):
            parents: list[int] = []
            if task:
                others = [n for n in range(nodes) if n != node]
                parents = [node, *chance.sample(others, min(10, len(others)))]
            actions.append(
                Action(
                    uuid=_uuid(task, node),
                    action_type="nop",
                    parents=tuple(_uuid(task - 1, n) for n in parents[:1]),
                    needs=tuple(_uuid(task - 1, n) for n in parents[1:]),
                    tokens=(f"node:{node}", f"task:{task}"),
                )
            )
    return _plan(actions, limits={"node:*": 1, "task:*": 6})


def waiting(number: int) -> ActionPlan:
    """One action, and all others after it."""
    first = Action(uuid="first", action_type="nop")
    rest = (Action(uuid=f"a{i}", action_type="nop", parents=("first",)) for i in range(number))
    return _plan([first, *rest])


def edges(plan: ActionPlan) -> int:
    """Count what each action waits for."""
    return sum(len(action.before()) for action in plan.actions)


def _uuid(task: int, node: int) -> str:
    return f"t{task:03}n{node:031}"


def _plan(actions: list[Action], **fields: Any) -> ActionPlan:
    given = {"uuid": "plan", "planner": "test", "state": PlanState.PENDING, **fields}
    return ActionPlan(actions=tuple(actions), **given)
