# SPDX-License-Identifier: Apache-2.0
"""With ``rollback_when_actionplan_failed``, what failed is undone: by apply, and by a service."""

from __future__ import annotations

import subprocess

import pytest
from command_line import PROGRAM

from planner.plan.states import ActionState, PlanState

INSTANCE = "6a1f0001-0000-4000-8000-000000000001"
ACTIONS = (
    {"name": "halt", "action_type": "stop", "resource_id": INSTANCE},
    {
        "name": "breaks",
        "action_type": "shell",
        "needs": ["halt"],
        "input_parameters": {"argv": ["false"]},
    },
)


@pytest.fixture
def undone(actionplan):
    """Return the command line with a configuration that undoes what failed."""
    actionplan.configure(watcher_applier={"rollback_when_actionplan_failed": "true"})
    actionplan.document("plan.yaml", *ACTIONS)
    return actionplan


def check(actionplan):
    """Two plans: one FAILED, whose one done action is undone by the other; both say so."""
    back, failed = actionplan.plans()
    assert (failed.state, back.state) == (PlanState.FAILED, PlanState.SUCCEEDED)
    assert [a.state for a in failed.actions] == [ActionState.REVERTED, ActionState.FAILED]
    assert f"plan {back.uuid} undoes it" in actionplan.good("history", failed.uuid, "-f", "json")
    told = actionplan.good("history", back.uuid, "-f", "json")
    assert f"undoes plan {failed.uuid}" in told


def test_apply_undoes_what_failed_and_ends_with_the_code_of_the_failure(undone):
    ended = undone("apply", "plan.yaml", "--yes")
    assert (ended.code, ended.out.count("RECAP")) == (3, 2)
    check(undone)


def test_a_plan_that_fails_to_undo_is_not_undone_and_nor_is_what_did_nothing(undone):
    undone.document("nothing.yaml", ACTIONS[1] | {"needs": []})
    ended = undone("apply", "nothing.yaml", "--yes")
    assert ended.code == 3
    assert "nothing that it did can be undone" in ended.out
    assert len(undone.plans()) == 1


@pytest.mark.long
def test_a_service_undoes_what_failed(undone):
    undone.good("create", "plan.yaml")
    undone.good("start", "last")
    program = PROGRAM.with_name("actionplan-applier")
    words = [program, "--config-file", undone.configuration]
    with subprocess.Popen(words, env=undone.environment) as process:
        try:
            undone.wait_for(PlanState.SUCCEEDED)
        finally:
            process.terminate()
    check(undone)
