# SPDX-License-Identifier: Apache-2.0
"""Which links and joins a deployment gets, and what they make of a part of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from planner.errors import InvalidInput
from planner.plan.model import JOIN, ActionPlan
from planner.planners.deployment.planner import DeploymentPlanner
from planner.planners.deployment.task_links import DENSE
from planner.testing import applied, plan


def task(name: str, role: str, **fields: Any) -> dict[str, Any]:
    return {"id": name, "type": "puppet", "version": "2.0.0", "role": role, **fields}


def deployment(*tasks: Mapping[str, Any], roles: Mapping[str, int], **fields: Any) -> ActionPlan:
    """Plan tasks on so many nodes of each role, numbered from 1."""
    names = [role for role, count in roles.items() for _ in range(count)]
    nodes = [{"uid": str(i), "roles": [role]} for i, role in enumerate(names, 1)]
    document = {"kind": "deployment", "tasks": list(tasks), "nodes": nodes, **fields}
    return plan(DeploymentPlanner, document, check_types=False)


def joins(made: ActionPlan) -> list[str]:
    return [action.label for action in made.actions if action.action_type == JOIN]


MANY = DENSE + 1


@pytest.mark.parametrize(
    ("first", "then", "joined"),
    [(1, MANY, False), (MANY, 1, False), (2, DENSE // 2, False), (2, DENSE // 2 + 1, True)],
)
def test_a_join_stands_where_it_saves_links(first: int, then: int, joined: bool) -> None:
    after = task("b", "y", **{"cross-depends": [{"name": "a"}]})
    made = deployment(task("a", "x"), after, roles={"x": first, "y": then})
    assert bool(joins(made)) is joined
    by_uuid = {action.uuid: action for action in made.actions}
    for action in made.actions:
        if action.label.endswith("/b"):
            before = [by_uuid[uuid] for uuid in action.before()]
            if joined:
                (join,) = before
                before = [by_uuid[uuid] for uuid in join.before()]
            assert len(before) == first


def test_groups_of_one_wave_run_whatever_the_strategy_of_the_others() -> None:
    strategies = {
        "one": {"type": "one_by_one"},
        "all": {"type": "parallel"},
        "some": {"type": "parallel", "amount": 1},
        "others": {"type": "parallel"},
    }
    groups = [
        {"id": name, "type": "group", "role": name, "strategy": strategy}
        for name, strategy in strategies.items()
    ]
    made = deployment(
        *groups,
        {"id": "t", "type": "puppet", "groups": list(strategies)},
        roles=dict.fromkeys(strategies, 2),
        deployment_engine="role",
    )
    run = [[], []]
    for action in made.actions:
        if action.action_type == JOIN:
            run.append([])
        else:
            run[-1].append(action.label)
    stages = [stage for stage in run if stage]
    assert stages == [["1/t"], ["2/t"], ["5/t"], ["6/t"], ["3/t", "4/t", "7/t", "8/t"]]


def test_an_alternative_that_would_close_a_cycle_is_left_out() -> None:
    tasks = [
        task("a", "x"),
        task("b", "y", **{"cross-depends": [{"name": "a", "policy": "any"}]}),
        task("c", "z", required_for=["a"], **{"cross-depends": [{"name": "b"}]}),
    ]
    nodes = [{"uid": "1", "roles": ["x"]}, {"uid": "2", "roles": ["x", "z"]}]
    document = {"tasks": tasks, "nodes": [*nodes, {"uid": "3", "roles": ["y"]}]}
    made = plan(DeploymentPlanner, {"kind": "deployment", **document}, check_types=False)
    found = {action.label: action for action in made.actions}
    assert found["2/c"].needs == (found["3/b"].uuid,)
    assert found["3/b"].needs_any == ((found["1/a"].uuid,),)


def test_each_cycle_of_groups_is_named() -> None:
    after = {"a": "b", "b": "a", "c": "d", "d": "c"}
    groups = [
        {"id": name, "type": "group", "role": "x", "requires": [other]}
        for name, other in after.items()
    ]
    with pytest.raises(InvalidInput) as refused:
        deployment(*groups, roles={"x": 1}, deployment_engine="role")
    assert [str(mistake) for mistake in refused.value.mistakes] == [
        "tasks[0]: a cycle: a -> b -> a",
        "tasks[2]: a cycle: c -> d -> c",
    ]


def test_what_depends_on_a_change_says_on_which() -> None:
    tasks = [
        task("a", "x", parameters={"manifest": "a.pp"}),
        task("b", "x", requires=["a"]),
        task("c", "y", **{"cross-depends": [{"name": "b"}]}),
        task("d", "y"),
    ]
    before = deployment(*tasks, roles={"x": 1, "y": 1})
    tasks[0] = task("a", "x", parameters={"manifest": "b.pp"})
    made = deployment(*tasks, roles={"x": 1, "y": 1}, changed_since=applied(before).to_dict())
    assert {action.label: action.reason for action in made.actions} == {
        "1/a": "its manifest changed",
        "1/b": "depends on 1/a, which changed",
        "2/c": "depends on 1/a, which changed",
    }
