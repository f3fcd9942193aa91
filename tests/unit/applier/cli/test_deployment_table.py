# SPDX-License-Identifier: Apache-2.0
"""The table of a deployment's nodes: what stands in it, and that it fits."""

from __future__ import annotations

import io
from collections.abc import Iterable

import pytest

from applier.cli.reporters import formatting, recap
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ActionState, PlanState

S = ActionState


def deployment(state: PlanState, tasks: Iterable[tuple[str, ActionState]]) -> ActionPlan:
    actions = tuple(
        Action(
            uuid=name,
            name=name,
            action_type="puppet",
            tokens=(f"node:{name.partition('/')[0]}",),
            state=each,
        )
        for name, each in tasks
    )
    return ActionPlan(uuid="12345678-9", planner="deployment", actions=actions, state=state)


def shown(made: ActionPlan) -> list[str]:
    out = io.StringIO()
    recap.show_nodes(made, out)
    return out.getvalue().splitlines()


def rows(lines: list[str]) -> list[list[str]]:
    return [line.split() for line in lines if "──" not in line]


def test_each_of_few_nodes_has_a_line() -> None:
    tasks = [("2/a", S.FAILED), ("2/b", S.FAILED_DEPENDENCIES), ("1/a", S.SUCCEEDED)]
    tasks += [("1/b", S.SKIPPED), ("10/a", S.CANCELLED)]
    head, _, *told = shown(deployment(PlanState.FAILED, tasks))
    assert head.endswith("3 nodes: 1 error, 1 stopped, 1 ready")
    assert rows(told) == [
        ["nodes", "status", "Success", "Skipped", "Error", "Dependencies", "Cancelled"],
        ["1", "ready", "1", "1", "0", "0", "0"],
        ["2", "error", "0", "0", "1", "1", "0"],
        ["10", "stopped", "0", "0", "0", "0", "1"],
    ]


def test_of_many_nodes_those_that_are_alike_share_a_line() -> None:
    tasks = [(f"{n}/a", S.SUCCEEDED) for n in range(1, 101)]
    tasks += [(f"{n}/b", S.FAILED if n in (7, 70) else S.SUCCEEDED) for n in range(1, 101)]
    assert rows(shown(deployment(PlanState.FAILED, tasks)))[2:] == [
        ["7", "70", "error", "1", "1"],
        ["1", "2", "3", "4", "+94", "ready", "2", "0"],
    ]


ENDED = [s for s in S if s not in (S.PENDING, S.ONGOING)]
UNDER_WAY = [s for s in S if s is not S.REVERTED]


@pytest.mark.parametrize(
    ("state", "states"), [(PlanState.ONGOING, UNDER_WAY), (PlanState.FAILED, ENDED)]
)
@pytest.mark.parametrize("name", ["{}", "node-{}.with.a.very-long-name.of.some.example.org"])
def test_it_fits_however_many_nodes_and_states(state, states, name) -> None:
    tasks = [
        (f"{name.format(n)}/{i}", each)
        for n in range(60)
        for i, each in enumerate([*states, *[S.SUCCEEDED] * n])
    ]
    lines = shown(deployment(state, tasks))
    assert max(map(len, lines)) <= formatting.WIDTH
    assert lines[-1] == "and 20 more nodes"
    # No part of a name is left out, wherever it is broken.
    assert "".join(line.split()[0] for line in lines[:-1]).endswith(name.format(39))
    row = [line for line in lines if line.startswith(name.format(39)[:5])][-1]
    assert row.split()[-1] == "1"


def test_a_recap_of_a_deployment_tells_of_its_nodes() -> None:
    made = deployment(PlanState.FAILED, [("1/a", S.SUCCEEDED), ("2/a", S.FAILED)])
    out = io.StringIO()
    recap.show(made, 1.0, out)
    assert "2 nodes: 1 error, 1 ready" in out.getvalue()
    assert "2/a" in out.getvalue()
    assert "not run" not in out.getvalue()


def test_nothing_is_told_of_one_that_has_not_begun_or_of_another_planner() -> None:
    made = deployment(PlanState.RECOMMENDED, [("1/a", S.PENDING)])
    assert not recap.is_shown(made)
    begun = deployment(PlanState.ONGOING, [("1/a", S.ONGOING)])
    assert recap.is_shown(begun)
    assert not recap.is_shown(ActionPlan(uuid="p", planner="weight", actions=begun.actions))
