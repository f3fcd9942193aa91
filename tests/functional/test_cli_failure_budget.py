# SPDX-License-Identifier: Apache-2.0
"""A plan of which too much fails, or whose site is not well, is PAUSED with the reason."""

from __future__ import annotations

from command_line import CommandLine


def failing(actionplan: CommandLine, **fields: object) -> str:
    """Write a document of four actions that fail, one after the other."""
    command = {"action_type": "shell", "input_parameters": {"command": "exit 1"}}
    return actionplan.document("plan.yaml", *({**command, "name": n} for n in "abcd"), **fields)


def test_too_many_failures_pause_the_plan(actionplan: CommandLine) -> None:
    file = failing(actionplan, guards={"failure_budget": ["shell=25% in 1h"]})
    ended = actionplan("apply", file, "--yes")
    assert ended.code == 5
    assert "plan PAUSED: paused because 2 shell actions failed, the last one " in ended.out
    assert "the failure budget is shell=25% in 1h" in ended.out
    plan = actionplan.plan()
    assert sorted(a.state for a in plan.actions) == ["FAILED", "FAILED", "PENDING", "PENDING"]


def test_a_site_that_is_not_well_pauses_the_plan(actionplan: CommandLine) -> None:
    actionplan.configure(watcher_applier={"health_probe": "sh -c 'echo no quorum; exit 2'"})
    file = actionplan.document("plan.yaml", {"name": "a", "action_type": "nop"})
    ended = actionplan("apply", file, "--yes")
    assert ended.code == 5
    assert "paused by the health probe: sh -c 'echo no quorum; exit 2' ended with 2: " in ended.out
    actionplan.configure(watcher_applier={"health_probe": "true"})
    assert "SUCCEEDED" in actionplan.good("apply", "last", "--yes")


def test_a_wrong_budget_is_refused_at_start(actionplan: CommandLine) -> None:
    actionplan.configure(watcher_applier={"failure_budget": "10%"})
    ended = actionplan.inside("list")
    assert ended.code == 1
    assert "[watcher_applier] failure_budget: '10%' is not N, TYPE=N or TYPE=N%" in ended.err
