# SPDX-License-Identifier: Apache-2.0
"""A job on a machine is a leftover unless it runs or an action still waits for its end."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sample_plans import new_plan

from applier.cli.services import Leftover, leftover
from applier.machines.found_jobs import FoundJob, JobState
from applier.machines.job_names import AttemptName, unnamed
from planner.plan.states import ActionState, PlanState

PLAN = new_plan("before", "reboot", "after")
REBOOT = PLAN.actions[1].uuid
IN_DOUBT = (ActionState.ONGOING, ActionState.UNKNOWN)


def ended(attempt, action=REBOOT):
    folder = AttemptName(PLAN.uuid, action, attempt).job(1).folder
    return FoundJob(folder, JobState.ENDED, code=0)


def with_reboot(state, attempts):
    """Return the plan with its second action in this state; the others have no attempt."""
    actions = (replace(a, state=state, attempts=attempts) for a in PLAN.actions if a.uuid == REBOOT)
    return replace(PLAN, actions=(PLAN.actions[0], *actions, PLAN.actions[2]))


@pytest.mark.parametrize("state", ActionState)
def test_the_last_attempt_is_needed_until_its_end_is_on_record_and_while_in_doubt(state):
    expected = Leftover.NO if state in IN_DOUBT else Leftover.YES
    assert leftover(ended(attempt=2), with_reboot(state, attempts=2)) is expected


@pytest.mark.parametrize("state", ActionState)
def test_an_attempt_that_was_followed_by_another_is_a_leftover(state):
    assert leftover(ended(attempt=1), with_reboot(state, attempts=2)) is Leftover.YES


@pytest.mark.parametrize("state", PlanState)
def test_a_permit_is_needed_before_its_start_is_recorded_as_long_as_its_plan_runs(state):
    permit = FoundJob(AttemptName(PLAN.uuid, REBOOT, 3).permit("boot"), JobState.NONE)
    plan = replace(with_reboot(ActionState.PENDING, attempts=2), state=state)
    expected = Leftover.NO if state is PlanState.ONGOING else Leftover.YES
    assert leftover(permit, plan) is expected


@pytest.mark.parametrize("plan", [None, with_reboot(ActionState.SUCCEEDED, attempts=2)])
def test_what_runs_is_no_leftover_even_if_nobody_knows_it(plan):
    for job in (ended(attempt=1), ended(attempt=1, action="unknown")):
        assert leftover(replace(job, state=JobState.RUNS), plan) is Leftover.NO
        assert leftover(replace(job, state=JobState.KILLED, left=(7,)), plan) is Leftover.NO


def test_a_job_of_an_unknown_action_or_of_no_attempt_is_a_leftover():
    plan = with_reboot(ActionState.ONGOING, attempts=2)
    assert leftover(ended(attempt=2, action="unknown"), plan) is Leftover.YES
    of_no_attempt = FoundJob(unnamed().folder, JobState.ENDED, code=0)
    assert leftover(of_no_attempt, plan) is Leftover.YES
    assert leftover(of_no_attempt, None) is Leftover.YES


def test_a_job_or_a_permit_of_an_unknown_plan_may_be_needed_by_another_record():
    permit = FoundJob(AttemptName(PLAN.uuid, REBOOT, 3).permit("boot"), JobState.NONE)
    assert leftover(permit, None) is Leftover.UNKNOWN_PLAN
    assert leftover(ended(attempt=2), None) is Leftover.UNKNOWN_PLAN
